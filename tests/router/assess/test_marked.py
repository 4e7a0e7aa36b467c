import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_merges_of_merges_stay_few() -> None:
    nine = [", ".join([f"*a{n}"] * 9) for n in range(30)]
    levels = ["a0: &a0 {x: 1}"]
    levels += [f"a{n}: &a{n} {{<<: [{nine[n - 1]}], k{n}: 1}}" for n in range(1, 30)]
    last = read_marked("\n".join(levels).encode(), "f").at("a29")
    assert last is not None
    assert len(list(last.pairs)) == 30
    assert last.text_at("x") == "1"


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


@given(st.binary(max_size=200) | st.text("ab:-[]{}*&<?,\n #|>'\"", max_size=80).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        root = read_marked(content, "f")
    except ConfigError:
        return
    assert root.line >= 1
    for _, value in root.pairs:
        assert value.text is None or isinstance(value.text, str)
    assert root.text_at("a", "b") is None or root.at("a") is not None
