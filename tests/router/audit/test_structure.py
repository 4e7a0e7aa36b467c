from hashlib import sha256
from pathlib import Path

import pytest

from router.audit.layout import Folder
from router.audit.lines import EntryLine, SegmentLine, Value
from router.audit.reading import Place
from router.audit.structure import Structure, endpoints

SECOND = 1_000_000


def follow(structure: Structure, *entries: tuple[str, str, int, dict[str, Value]]) -> list[str]:
    for index, (kind, id_, time, body) in enumerate(entries):
        line = EntryLine(kind, id_, time * SECOND, body)
        structure.entry(Place("eu-1", "s", index + 1, index), line, body)
    structure.end()
    structure.judge_roster([b"\x01" * 32])
    return [finding.fault for finding in structure.findings]


@pytest.fixture
def structure(tmp_path: Path) -> Structure:
    return Structure(Folder(tmp_path))


def test_a_request_from_decision_to_outcome(structure: Structure) -> None:
    assert not follow(
        structure,
        ("decision", "r", 1, {"plan": [{"endpoint": "a"}, "b"]}),
        ("attempt", "r", 2, {"endpoint": "b"}),
        ("outcome", "r", 3, {"attempts": [{"endpoint": "a"}, {"endpoint": "b"}]}),
        ("refusal", "q", 4, {}),
    )
    assert not structure.notices


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([("outcome", "r", 1, {})], "orphan"),
        ([("attempt", "r", 1, {"endpoint": "a"})], "orphan"),
        ([("decision", "r", 1, {}), ("decision", "r", 2, {})], "duplicate"),
        ([("decision", "r", 2, {}), ("outcome", "r", 1, {})], "out_of_order"),
        ([("decision", "r", 1, {"plan": ["a"]}), ("attempt", "r", 1, {"endpoint": "b"})],
         "outside_plan"),
        ([("decision", "r", 1, {"plan": []}), ("outcome", "r", 1, {"attempts": ["a"]})],
         "outside_plan"),
        ([("decision", "r", 1, {}), ("administration", "", 2, {"event": "start"})], "unsettled"),
        ([("decision", "r", 1, {}), ("administration", "", 2, {"event": "stop"})], "unsettled"),
        ([("decision", "r", 1, {"snapshot": "ab" * 32})], "snapshot"),
        ([("decision", "r", 1, {"snapshot": "../../etc/passwd"})], "snapshot"),
        ([("heartbeat", "", 1, {"roster": {"lines": 2, "digest": "01" * 32}})], "roster"),
        ([("heartbeat", "", 1, {"roster": {"lines": 1, "digest": "02" * 32}})], "roster"),
        ([("decision", "r", 1, {}), ("outcome", "r", 1, {}), ("outcome", "r", 1, {})], "orphan"),
    ],
)  # fmt: skip
def test_each_law_has_a_finding(
    structure: Structure, entries: list[tuple[str, str, int, dict[str, Value]]], fault: str
) -> None:
    assert follow(structure, *entries) == [fault]


def test_a_roster_may_have_grown_since(structure: Structure) -> None:
    for lines in (0, 1):
        seen: dict[str, Value] = {"roster": {"lines": lines, "digest": "01" * 32}}
        assert not follow(structure, ("heartbeat", "", 1, seen))


def test_a_stored_snapshot_satisfies(tmp_path: Path) -> None:
    digest = sha256(b"{}").hexdigest()
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / f"{digest}.json").write_bytes(b"{}")
    structure = Structure(Folder(tmp_path))
    assert not follow(structure, ("decision", "r", 1, {"snapshot": digest}))
    assert structure.notices == ["1 requests are open: recovery will settle them"]


def stored(root: Path, data: bytes) -> str:
    digest = sha256(data).hexdigest()
    (root / "snapshots").mkdir(exist_ok=True)
    (root / "snapshots" / f"{digest}.json").write_bytes(data)
    return digest


@pytest.mark.parametrize("kind", ["decision", "refusal"])
def test_the_facts_that_a_snapshot_names_are_as_they_were(tmp_path: Path, kind: str) -> None:
    """Countries and recipients of a report come from there."""
    facts = stored(tmp_path, b'{"regions.yaml":"a"}')
    body: dict[str, Value] = {"snapshot": stored(tmp_path, b'{"data":"%b"}' % facts.encode())}
    entry = (kind, "r", 1, body)
    assert not follow(Structure(Folder(tmp_path)), entry)
    path = tmp_path / "snapshots" / f"{facts}.json"
    path.write_bytes(b'{"regions.yaml":"b"}')
    assert follow(Structure(Folder(tmp_path)), entry) == ["snapshot"]
    path.unlink()
    assert follow(Structure(Folder(tmp_path)), entry) == ["snapshot"]


def test_silence_of_a_running_process_is_a_named_gap(structure: Structure) -> None:
    follow(
        structure,
        ("administration", "", 1, {"event": "start"}),
        ("heartbeat", "", 61, {}),
        ("heartbeat", "", 400, {}),
        ("administration", "", 401, {"event": "stop"}),
        ("administration", "", 9000, {"event": "start"}),
        ("outcome", "", 9001, {"by": "recovery"}),
    )
    assert [n for n in structure.notices if n.startswith("gap")] == [
        "gap: eu-1/segments/s:3 (index 2): nothing for 339 s before it"
    ]


def test_a_segment_line_repeats_what_is_open(structure: Structure) -> None:
    follow(structure, ("decision", "r", 1, {}))
    place = Place("eu-1", "s2", 1, 1)
    structure.segment(place, SegmentLine("eu-1", 1, 0, (("r", 0),), (bytes(32),)))
    assert not structure.findings
    structure.segment(place, SegmentLine("eu-1", 1, 0, (), (bytes(32),)))
    assert [finding.fault for finding in structure.findings] == ["segment"]


@pytest.mark.parametrize(
    ("value", "names"),
    [(None, []), ("a", []), (["a", {"endpoint": "b"}, {"x": 1}, 5, None], ["a", "b"])],
)
def test_endpoint_names(value: Value, names: list[str]) -> None:
    assert list(endpoints(value)) == names
