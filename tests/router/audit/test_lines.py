import orjson
import pytest

from router.audit.entry import SegmentStart, canonical
from router.audit.lines import (
    EntryLine,
    InternLine,
    Interns,
    LineInvalid,
    SegmentLine,
    Value,
    parse_line,
)

N = "AAECAwQFBgcICQoLDA0ODw"
NONCE = N.encode()
ENTRY: dict[str, Value] = {"b": {"a": 1}, "k": "decision", "n": N, "r": "r1", "t": 5}


def test_each_form_is_recognised() -> None:
    assert parse_line(canonical({"i": 3, "k": "intern", "n": N, "v": [1]})) == InternLine(3, [1])
    start = SegmentStart("eu-1", 2, 1.0, [("r1", 1)], NONCE)
    assert parse_line(start.line([bytes(32)])) == SegmentLine(
        "eu-1", 2, 1_000_000, (("r1", 1),), (bytes(32),)
    )


@pytest.mark.parametrize(
    "change",
    [{"k": "gossip"}, {"k": 5}, {"b": []}, {"n": "AAE"}, {"n": "?" * 22}, {"r": 1}, {"t": -1},
     {"t": True}, {"t": "5"}, {"extra": 1}, {"t": None}],
)  # fmt: skip
def test_any_other_field_is_refused(change: dict[str, Value]) -> None:
    with pytest.raises(LineInvalid):
        parse_line(canonical({**ENTRY, **change}))


@pytest.mark.parametrize(
    "change",
    [{"f": 2}, {"o": {}}, {"o": [["r1"]]}, {"o": [[1, 1]]}, {"p": []}, {"p": ["00"]}, {"i": -1}],
)
def test_any_other_segment_line_is_refused(change: dict[str, Value]) -> None:
    good = orjson.loads(SegmentStart("eu-1", 1, 1.0, [], NONCE).line([bytes(32)]))
    with pytest.raises(LineInvalid):
        parse_line(canonical({**good, **change}))


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"5", b"\xff", b'{"a":1', b"null"])
def test_what_is_no_line(raw: bytes) -> None:
    with pytest.raises(LineInvalid):
        parse_line(raw)


def test_only_the_canonical_form_is_a_line() -> None:
    raw = canonical(ENTRY)
    assert isinstance(parse_line(raw), EntryLine)
    for other in (raw.replace(b",", b", "), raw.replace(b"r1", b"\\u0072\\u0031"), raw + b" "):
        with pytest.raises(LineInvalid):
            parse_line(other)


def test_references_are_put_in_place() -> None:
    interns = Interns({4: {"tenant": "a"}, 5: ["x"]})
    body: dict[str, Value] = {"@": 4, "plan": {"@": 5}, "list": [{"@": 4}]}
    assert interns.resolve(body) == {"tenant": "a", "plan": ["x"], "list": [{"tenant": "a"}]}


@pytest.mark.parametrize(
    "body",
    [{"@": 6}, {"@": "4"}, {"@": True}, {"@": 4, "tenant": "b"}, {"@": 5, "a": 1}, {"@": 5},
     {"a": 0.5}],
)  # fmt: skip
def test_references_that_lead_nowhere(body: dict[str, Value]) -> None:
    with pytest.raises(LineInvalid):
        Interns({4: {"tenant": "a"}, 5: ["x"]}).resolve(body)
