"""Declarations are parsed, never judged or dropped."""

from __future__ import annotations

import pytest

from classifiers.declared import Declared, declared_in_headers, declared_in_metadata


def test_headers_in_order_with_any_case_and_repetition() -> None:
    headers = [
        ("X-Domicile-Attr-Data_Class", "health, internal"),
        ("accept", "x"),
        ("x-domicile-attr-data_class", "public"),
    ]
    assert declared_in_headers(headers) == (
        Declared("data_class", ("health", "internal"), "header"),
        Declared("data_class", ("public",), "header"),
    )


@pytest.mark.parametrize("value", ["", " ", ",", " , "])
def test_an_empty_declaration_is_kept_without_values(value: str) -> None:
    assert declared_in_headers([("x-domicile-attr-a", value)]) == (Declared("a", (), "header"),)


@pytest.mark.parametrize(
    ("value", "values"),
    [("a, b", ("a", "b")), (["a", " b "], ("a", "b")), (7, ()), (["a", 7], ()), (None, ())],
)
def test_metadata_values(value: object, values: tuple[str, ...]) -> None:
    body = {"metadata": {"domicile-attr-Kind": value, "other": "x"}}
    assert declared_in_metadata(body) == (Declared("kind", values, "metadata"),)


@pytest.mark.parametrize("metadata", [None, "x", [], {5: "x"}])
def test_other_metadata_declares_nothing(metadata: object) -> None:
    assert declared_in_metadata({"metadata": metadata}) == ()
