"""What a tool demands of its arguments arrives, or is named."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from router.providers.converse_schemas import restore, unkeepable, unkept

SENT: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
ONE = {"a": {"type": "string"}}
DEFS = {"x": {"type": "string"}}
REFERS = {"properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": DEFS}
KEPT: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    ({}, SENT, None),
    ({"properties": ONE}, {**SENT, "properties": ONE}, None),
    ({"type": "object", "$schema": "x", "title": "x", "description": "x"}, SENT, None),
    ({"properties": {}, "required": None, "additionalProperties": False}, SENT, None),
    ({"additionalProperties": True}, SENT, None),
    (REFERS, {**SENT, "properties": ONE}, None),
    (REFERS, {**SENT, "properties": REFERS["properties"]}, ""),
    ({"properties": ONE}, SENT, ".properties"),
    ({"required": ["a"]}, SENT, ".required"),
    ({"additionalProperties": {"type": "string"}}, SENT, ".additionalProperties"),
    ({"anyOf": [{"required": ["a"]}]}, SENT, ".anyOf"),
    ({"patternProperties": ONE}, SENT, ".patternProperties"),
    ({"minProperties": 1}, SENT, ".minProperties"),
    ({"type": "array"}, {**SENT, "type": "array"}, ".type"),
    ({"type": ["object", "null"]}, SENT, ".type"),
]


@pytest.mark.parametrize(("schema", "sent", "place"), KEPT)
def test_what_a_tool_demands_is_kept_or_named(
    schema: dict[str, Any], sent: dict[str, Any], place: str | None
) -> None:
    """tools-06: the translation keeps four keywords of a schema's root, and drops the others."""
    found = unkept(schema, sent)
    assert (None if found is None else found[0]) == place


@pytest.mark.parametrize(("schema", "sent", "place"), KEPT)
def test_what_is_never_kept_is_known_before(
    schema: dict[str, Any], sent: dict[str, Any], place: str | None
) -> None:
    """Never more than what is found after it."""
    found = unkeepable(schema)
    assert found is None or found[0] == place
    known = {".anyOf", ".patternProperties", ".minProperties", ".type"}
    assert (found is not None) == (place in known)


def body(properties: object) -> dict[str, Any]:
    schema = {**SENT, "properties": properties}
    return {"toolConfig": {"tools": [{"toolSpec": {"inputSchema": {"json": schema}}}]}}


def test_nulls_come_back() -> None:
    given = {"a": {"type": ["string", "null"], "enum": ["x", None], "default": None}}
    made = body({"a": {"type": ["string", "null"], "enum": ["x"]}})
    restore([{"function": {"parameters": {"properties": given}}}], made)
    assert made == body(given)


def test_references_stay_replaced() -> None:
    made = body(ONE)
    restore([{"function": {"parameters": REFERS}}], made)
    assert made == body(ONE)


@pytest.mark.parametrize("tools", [None, {}, [], [None], [{}], [{"function": {}}]])
def test_without_properties_nothing_changes(tools: object) -> None:
    made = body(ONE)
    before = copy.deepcopy(made)
    restore(tools, made)
    assert made == before
    restore(tools, {})
