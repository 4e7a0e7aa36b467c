from pathlib import Path

import pytest

from router.audit import reading
from router.audit.layout import Folder
from router.audit.lines import Line, LineInvalid, parse_line
from router.audit.note import parse_checkpoint
from router.audit.reading import LogReader, NotInLog
from router.audit.tree import leaf_hash, verify_consistency, verify_inclusion
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def reader(tmp_path: Path) -> LogReader:
    box = LogBox(tmp_path, segment_bytes=2000)
    await box.refill(20)
    return LogReader(Folder(box.folder).log("eu-1"))


def test_every_line_is_provable_across_segments(reader: LogReader, tmp_path: Path) -> None:
    head = parse_checkpoint((tmp_path / "logs" / "eu-1" / "checkpoint").read_text())
    for index in range(head.size):
        proof = reader.inclusion(index, head.size)
        assert proof.leaf == leaf_hash(reader.line(index))
        assert verify_inclusion(proof.leaf, index, head.size, proof.path, head.root)
    old = reader.tree(head.size).root(9)
    proof_of_growth = reader.tree(head.size).consistency(9, head.size)
    assert verify_consistency(9, old, head.size, head.root, proof_of_growth)


def test_entries_come_in_order_with_values_in_place(reader: LogReader) -> None:
    shown = list(reader.entries())
    assert [one.place.index for one in shown] == sorted(one.place.index for one in shown)
    decisions = [one for one in shown if one.kind == "decision"]
    assert len(decisions) == 20
    assert {one.body["tenant"] for one in decisions} == {"a", "b"}
    assert [reader.entry(one.place.index) for one in shown] == shown
    assert str(decisions[0].place).startswith("eu-1/segments/00000000000000000000.jsonl:")


def test_one_entry_costs_no_parsing_of_those_before_it(
    reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = list[bytes]()

    def counting(raw: bytes) -> Line:
        parsed.append(raw)
        return parse_line(raw)

    shown = list(reader.entries())
    monkeypatch.setattr(reading, "parse_line", counting)
    for one in shown:
        parsed.clear()
        assert reader.entry(one.place.index) == one
        assert len(parsed) <= 3  # it, and the two values that a decision names here
    assert max(one.place.line for one in shown) > 3


@pytest.mark.parametrize("index", [-1, 0, 10_000])
def test_what_is_not_an_entry(reader: LogReader, index: int) -> None:
    with pytest.raises(NotInLog):
        reader.entry(index)


def test_what_is_beyond_the_log(reader: LogReader) -> None:
    with pytest.raises(NotInLog):
        reader.line(10_000)
    with pytest.raises(NotInLog):
        reader.inclusion(0, 10_000)
    with pytest.raises(NotInLog):
        reader.inclusion(5, 5)


def test_an_unreadable_line_stops_the_reader(reader: LogReader, tmp_path: Path) -> None:
    segment = min((tmp_path / "logs" / "eu-1" / "segments").glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes() + segment.read_bytes())
    with pytest.raises(LineInvalid, match="segment line"):
        list(reader.entries())
