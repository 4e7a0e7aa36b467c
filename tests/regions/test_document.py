from typing import Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from regions.document import (
    MAX_DEPTH,
    Document,
    DocumentError,
    DocumentErrors,
    Mark,
    Tree,
    parse_as,
    validate,
)


def errors(text: str | bytes) -> list[str]:
    with pytest.raises(DocumentErrors) as caught:
        Document.parse(text, "f.yaml")
    return str(caught.value).splitlines()


def test_every_scalar_is_text() -> None:
    tree = Document.parse(
        "{a: NO, b: 1.10, c: 0x10, d: null, e: 2026-01-01, f: , on: yes}", "f"
    ).tree
    assert tree == {
        "a": "NO", "b": "1.10", "c": "0x10", "d": "null", "e": "2026-01-01", "f": "", "on": "yes",
    }  # fmt: skip


def test_an_empty_file_is_an_empty_mapping() -> None:
    assert Document.parse("", "f").tree == {}
    assert Document.parse("# only a comment\n", "f").tree == {}
    assert Document.parse(b"\xef\xbb\xbfa: b", "f").tree == {"a": "b"}


def test_marks_count_lines_and_columns_from_one() -> None:
    document = Document.parse("a:\n  - b: x\n    cc: [y, z]\n", "f.yaml")
    assert document.mark(("a", 0, "cc", 1)) == Mark("f.yaml", 3, 13)
    assert document.key_mark(("a", 0, "cc")) == Mark("f.yaml", 3, 5)
    assert document.mark() == Mark("f.yaml", 1, 1)
    assert document.mark(("a", 7, "q")) == document.mark(("a",)) == Mark("f.yaml", 2, 3)


def test_all_that_is_refused_is_named_at_once_in_file_order() -> None:
    text = "a: &x 1\nb: *x\na: 2\nc: !!int 3\n? [1]\n: x\nd: ! e\nf: !own {}\n"
    assert errors(text) == [
        "f.yaml:1:4: anchor `&x` is refused; write the value twice",
        "f.yaml:2:4: alias `*x` is refused; write the value out",
        "f.yaml:3:1: key `a` stands twice; the first is at line 1",
        "f.yaml:4:4: tag `tag:yaml.org,2002:int` is refused; every scalar is text",
        "f.yaml:5:3: a key must be plain text",
        "f.yaml:7:4: tag `!` is refused; every scalar is text",
        "f.yaml:8:4: tag `!own` is refused; remove it",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a: b\nc: \xff\n", "f.yaml:2:4: not UTF-8; save the file as UTF-8"),
        ("a: b".encode("utf-16"), "f.yaml:1:1: not UTF-8; save the file as UTF-8"),
        ("a: \x01b", "f.yaml:1:4: not YAML: control characters are not allowed"),
        ("a: \ud800", "f.yaml:1:4: not text: a lone surrogate"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: a second document begins here; use one file for each"),
        ("%YAML 1.1\n---\na: b", "f.yaml:1:1: a `%` directive is refused; remove it"),
        (
            "[" * 100,
            f"f.yaml:1:{MAX_DEPTH + 1}: the document is more than 64 levels deep; split it",
        ),
    ],
)
def test_what_is_not_a_document_says_where(text: str | bytes, expected: str) -> None:
    assert errors(text) == [expected]


@pytest.mark.parametrize("text", ["a: [1\nb: 2", "\ta: b", "a: 'x", "a: b: c", "}", "- a\nb: c"])
def test_syntax_errors_have_a_place(text: str) -> None:
    (line,) = errors(text)
    assert line.startswith("f.yaml:")
    assert ": not YAML: " in line


def test_size_is_limited() -> None:
    with pytest.raises(DocumentErrors, match="more than 10; split it"):
        Document.parse("a: 1234567890", "f", max_bytes=10)


NO_INTEGER = "input should be a valid integer, unable to parse string as an integer"


class Item(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int
    kind: Literal["big", "small"] = "big"

    @field_validator("size")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value < 1:
            raise ValueError("give a size of 1 or more")
        return value


class Root(BaseModel):
    model_config = ConfigDict(extra="forbid")
    version: int
    items: list[Item] = Field(default_factory=list)
    named: dict[str, int | list[int]] = Field(default_factory=dict)


def test_pydantic_errors_are_mapped_back_all_at_once() -> None:
    text = "items:\n  - {size: x, colour: red}\n  - {size: 0, kind: huge}\nnamed:\n  a: [1, q]\n"
    document = Document.parse(text, "f.yaml")
    with pytest.raises(DocumentErrors) as caught:
        validate(document, Root)
    assert str(caught.value).splitlines() == [
        "f.yaml:1:1: `version`: is missing; add it",
        f"f.yaml:2:12: `items.0.size`: {NO_INTEGER}, not `x`",
        "f.yaml:2:15: unknown key `items.0.colour`; known keys: `size`, `kind`",
        "f.yaml:3:12: `items.1.size`: give a size of 1 or more, not `0`",
        "f.yaml:3:21: `items.1.kind`: input should be 'big' or 'small', not `huge`",
        "f.yaml:5:6: `named.a`: input should be a valid integer",
        f"f.yaml:5:10: `named.a.1`: {NO_INTEGER}, not `q`",
    ]


def test_a_valid_document_becomes_its_model() -> None:
    document, root = parse_as("{version: 1, items: [{size: 2}], named: {x: 4}}", "f", Root)
    assert root == Root(version=1, items=[Item(size=2)], named={"x": 4})
    assert document.error(("items", 0), "too small").message == "too small"


TREES = st.recursive(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcNO01 .-", max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(TREES.filter(lambda t: not isinstance(t, str)))
@settings(max_examples=100)
def test_what_is_written_as_text_is_read_as_it_was(tree: Tree) -> None:
    text = yaml.dump(tree, default_style='"', allow_unicode=True).replace("!!str ", "")
    assert Document.parse(text, "f").tree == tree


@given(st.binary(max_size=200) | st.text(max_size=200))
@settings(max_examples=300)
def test_any_bytes_are_a_document_or_a_located_error(text: str | bytes) -> None:
    found: tuple[DocumentError, ...] = ()
    try:
        Document.parse(text, "f.yaml")
    except DocumentErrors as problem:
        found = problem.errors
        assert found, "an error without errors"
    assert all(e.mark.line >= 1 and e.mark.column >= 1 for e in found)
