import pytest

from router.assess.marked import MAX_BYTES, read_marked
from router.config import ConfigError


def test_values_keep_their_lines_and_their_text() -> None:
    root = read_marked(b"a: 1\nb:\n  - {c: NO}\n  - x: null\n    y: ~\n    z: 'null'\n", "f")
    assert root.text_at("a") == "1"
    found = root.at("b")
    assert found is not None
    first, second = found.entries
    assert (first.line, first.text_at("c")) == (3, "NO"), "Norway stays text"
    assert (second.text_at("x"), second.text_at("y"), second.text_at("z")) == (None, None, "null")
    assert root.at("a", "deeper") is None
    assert root.text_at("nothing") is None


def test_merged_keys_come_after_a_mappings_own() -> None:
    text = b"base: &base {a: 1, b: 2}\nmore: &more {c: 3}\nm: {<<: [*base, *more], b: 9}\n"
    merged = read_marked(text, "f").at("m")
    assert merged is not None
    assert [(k, v.text) for k, v in merged.pairs] == [
        ("b", "9"),
        ("a", "1"),
        ("b", "2"),
        ("c", "3"),
    ]
    assert merged.text_at("b") == "9"


def test_a_mapping_that_merges_itself_ends() -> None:
    root = read_marked(b"a: &a {<<: *a, b: 1}\n", "f")
    assert root.text_at("a", "b") == "1"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"a: [1\nb: 2\n", "f:2"),
        (b"a: b: c\n", "f:1"),
        (b"a: \xff", "f"),
        (b"a: " + b"[" * 5000, "f"),
        (b"#" * (MAX_BYTES + 1), "at most"),
    ],
)
def test_what_cant_be_read_says_where(content: bytes, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_marked(content, "f")
