"""Which values fit a schema, and that no schema costs more than its share."""

from __future__ import annotations

import time

import pytest

from classifiers.difficulty.schema import fits

TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "next": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
            },
            "additionalProperties": False,
        },
        "a/b": {"const": 1},
    },
}


@pytest.mark.parametrize(
    ("value", "good"),
    [
        ({"name": "a"}, True), ({"name": "a", "next": None}, True), ({}, False),
        ({"name": "a", "next": {"name": "b"}}, True), ({"name": "a", "next": {"name": 1}}, False),
        ({"name": "a", "next": 5}, False), ([], False),
    ],
)  # fmt: skip
def test_references_and_choices(value: object, good: bool) -> None:
    assert fits(value, TREE) is good


@pytest.mark.parametrize(
    ("value", "schema", "good"),
    [
        (5.0, {"type": "integer"}, True), (5.5, {"type": "integer"}, False),
        (True, {"type": "integer"}, False), (True, {"enum": [1]}, False), (1, {"const": 1}, True),
        (False, {"const": 0}, False), (True, {"type": ["boolean", "null"]}, True),
        ([1, "x"], {"prefixItems": [{}, {}], "items": False}, True),
        ([1, "x", 2], {"prefixItems": [{}, {}], "items": False}, False),
        ({"x-a": 1}, {"patternProperties": {"^x-": {}}, "additionalProperties": False}, True),
        ({"a": 1}, {"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, False),
        ({"a": 1, "b": 1}, {"allOf": [{"required": ["a"]}, {"required": ["b"]}]}, True),
        (1, {"$ref": "https://example.com/s.json"}, True), (1, {"$ref": "#/nowhere"}, True),
        (2, {**TREE, "$ref": "#/$defs/a~1b"}, False), (1, False, False), (1, True, True),
    ],
)  # fmt: skip
def test_what_is_judged(value: object, schema: object, good: bool) -> None:
    assert fits(value, schema) is good


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"allOf": [{"$ref": "#"}] * 50},
        {"items": {"anyOf": [{"$ref": "#/items"}] * 9}},
    ],
)
def test_a_schema_that_leads_in_circles_costs_little(schema: object) -> None:
    began = time.process_time()
    assert fits([[1] * 1000] * 1000, schema) in (True, False)
    assert time.process_time() - began < 2.0
