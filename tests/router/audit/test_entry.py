import math
import tracemalloc

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.audit.entry import (
    MAX_LINE,
    Entry,
    Interned,
    Joined,
    Json,
    SegmentStart,
    canonical,
    entry_line,
    intern_line,
    keyed_digest,
    nonce_text,
    stand_in,
)
from router.audit.errors import EntryRefused
from router.audit.lines import EntryLine, Interns, parse_line

NONCE = nonce_text(bytes(range(16)))
names = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8).filter(
    lambda name: name != "@"
)
values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def line(body: dict[str, Json], shared: Interned | None = None) -> bytes:
    return entry_line(
        Entry("decision", "r1", 1.5, body, shared), NONCE, lambda _: 7, stand_in(lambda _: 7)
    )


def test_what_is_joined_to_an_interned_object_are_other_names() -> None:
    shared = Interned({"endpoint": "a"})
    written = line({"attempts": [Joined(shared, {"ms": 3})]})
    assert b'"attempts":[{"@":7,"ms":3}]' in written
    parsed = parse_line(written)
    assert isinstance(parsed, EntryLine)
    resolved = Interns({7: {"endpoint": "a"}}).resolve(parsed.body)
    assert resolved == {"attempts": [{"endpoint": "a", "ms": 3}]}
    wrong: list[Joined] = [
        Joined(shared, {"endpoint": "b"}), Joined(shared, {}), Joined(Interned(3), {"a": 1}),
        Joined(shared, {"ms": 0.5}), Joined(shared, {"@": 1}),  # type: ignore[dict-item]
    ]  # fmt: skip
    for one in wrong:
        with pytest.raises(EntryRefused):
            line({"attempts": [one]})


def test_the_form_of_a_line() -> None:
    assert (
        line({"b": 1, "a": "ü"})
        == (
            '{"b":{"a":"ü","b":1},"k":"decision","n":"AAECAwQFBgcICQoLDA0ODw","r":"r1","t":1500000}'
        ).encode()
    )


@given(st.dictionaries(names, values, max_size=5))
def test_what_is_written_is_read_back(body: dict[str, Json]) -> None:
    read = parse_line(line(body))
    assert isinstance(read, EntryLine)
    assert (read.kind, read.id, read.time) == ("decision", "r1", 1_500_000)
    assert read.body == body


@given(st.dictionaries(names, values, max_size=5))
def test_the_order_of_names_does_not_matter(body: dict[str, Json]) -> None:
    assert line(body) == line(dict(reversed(body.items())))


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        math.nan,
        math.inf,
        2**53,
        -(2**53),
        2**70,
        "\ud800",
        b"bytes",
        {1: "a"},
        {"ü": 1},
        {"@": 1},
        {1, 2},
        object(),
        {"a": [{"b": 0.5}]},
    ],
)
def test_values_with_no_closed_form_are_refused(value: Json) -> None:
    with pytest.raises(EntryRefused):
        line({"a": value})
    with pytest.raises(EntryRefused):
        Interned(value)


def test_depth_and_size_are_bounded() -> None:
    deep: Json = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(EntryRefused, match="nested"):
        line({"a": deep})
    with pytest.raises(EntryRefused, match="limit"):
        line({"a": "x" * MAX_LINE})


@pytest.mark.parametrize(
    ("kind", "id_", "time"),
    [("gossip", "r", 1), ("decision", "r 1", 1), ("decision", "r\n", 1), ("decision", "r" * 129, 1),
     ("decision", "r", -1), ("decision", "r", math.nan), ("decision", "r", math.inf)],
)  # fmt: skip
def test_heads_are_closed_too(kind: str, id_: str, time: float) -> None:
    entry = Entry(kind, id_, time, {})  # type: ignore[arg-type]
    with pytest.raises(EntryRefused):
        entry_line(entry, NONCE, lambda _: 0, stand_in(lambda _: 0))


def test_interned_values_become_references() -> None:
    shared, item = Interned({"tenant": "clinic"}), Interned(["a", "b"])
    body = orjson.loads(line({"plan": item, "n": 1}, shared))["b"]
    assert body == {"@": 7, "n": 1, "plan": {"@": 7}}


def test_shared_is_an_object_apart_from_the_body() -> None:
    with pytest.raises(EntryRefused):
        line({"tenant": "x"}, Interned({"tenant": "clinic"}))
    with pytest.raises(EntryRefused):
        line({}, Interned(["clinic"]))


def test_interned_values_do_not_nest() -> None:
    with pytest.raises(EntryRefused):
        Interned({"a": Interned(1)})


def test_an_intern_line_is_canonical() -> None:
    raw = intern_line(5, Interned({"b": 1, "a": [True, None]}), NONCE)
    assert canonical(orjson.loads(raw)) == raw


def test_get_looks_in_body_and_shared() -> None:
    entry = Entry("decision", "r", 1, {"a": 1, "p": Interned([1])}, Interned({"b": 2}))
    assert [entry.get(name) for name in ("a", "b", "c", "p")] == [1, 2, None, [1]]


def test_a_segment_line_is_canonical() -> None:
    raw = SegmentStart("eu-1", 1, 2.0, [("r1", 0)], NONCE).line([bytes(32)])
    assert canonical(orjson.loads(raw)) == raw


def test_keyed_digests_differ_by_key_and_text() -> None:
    digests = {keyed_digest(key, text) for key in (b"k1", b"k2") for text in ("a", b"b")}
    assert len(digests) == 4
    assert all(len(digest) == 43 for digest in digests)
    assert keyed_digest(b"k", "a") == keyed_digest(b"k", b"a")


def test_a_nonce_has_sixteen_bytes() -> None:
    with pytest.raises(EntryRefused):
        nonce_text(b"short")


def test_what_is_interned_takes_little_more_than_its_text() -> None:
    """Thousands are kept: what writes JSON leaves 4 KB of room in each of its texts."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [Interned([f"e{number}"]) for number in range(200)]
        assert (tracemalloc.get_traced_memory()[0] - before) / len(kept) < 1000
    finally:
        tracemalloc.stop()
