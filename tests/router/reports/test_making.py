"""Reports of whole logs: anchors, tails, findings, several processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.audit.commands import UsageError
from router.entries.recipients import SELF
from router.reports.gathering import Scope
from router.reports.making import Asked, NotWhole, make
from router.reports.period import between, zone
from tests.router.audit.logbox import LogBox
from tests.router.folders import AT, two_continents
from tests.router.reloading import CLINIC, watched
from tests.router.reports.logs import Did
from tests.router.reports.made import facts, filled, keep, report, rows


async def test_every_figure_is_counted_from_the_log(plain: LogBox) -> None:
    await filled(plain, [Did()] * 7 + [Did("shop", code="no_grant")] * 2 + [Did(endpoint="iad")])
    found = report(plain)
    assert facts(found)["requests answered"] == 8
    assert facts(found)["requests refused"] == 2
    first, second = rows(found, "where")
    assert (first["region"], first["country"], first["requests"]) == ("self:fra1", "DE", 7)
    assert (second["country"], second["mechanism"], second["requests"]) == ("US", "scc", 1)
    assert rows(found, "where", 2)[0]["evidence"] == "contracts/iad.pdf"
    assert rows(found, "changes")[0]["who or signers"] == "dpo"


async def test_evidence_names_records_that_are_those_requests(plain: LogBox) -> None:
    made = await filled(plain, [Did(), Did("shop o'neil"), Did("shop o'neil")])
    found = report(plain)
    [line] = [one for one in found.sections[0].tables[0].lines if one.cells[0] == "shop o'neil"]
    [proof] = [one for one in found.evidence if one.id == line.evidence]
    known = [(f"{r.log}/{r.index}", f"q{n}") for n, r in enumerate(made.receipts, 1)]
    assert list(proof.records) == known[1:]
    assert """--tenant 'shop o'"'"'neil'""" in proof.command


async def test_requests_are_named_only_to_their_tenant(plain: LogBox) -> None:
    await filled(plain, [Did()] * 6)
    [proof] = report(plain, least=5).evidence
    assert [request for _, request in proof.records] == [""] * 5
    [proof] = report(plain, None, "clinic").evidence
    assert [request for _, request in proof.records] == ["q1", "q2", "q3", "q4", "q5"]


async def test_an_anchor_covers_what_lies_below_it(plain: LogBox, tmp_path: Path) -> None:
    made = await filled(plain, [Did()] * 4)
    held = keep(plain, tmp_path / "held.note")
    plain.clock.now += 100
    await made.all([Did()] * 3)
    await made.log.tick()
    found = report(plain, against=(held,))
    assert facts(found)["of these above every anchor given"] == 3
    [log] = rows(found, "whole")
    assert log["status"].startswith("unanchored tail: ")  # type: ignore[attr-defined]
    assert int(str(log["age of the anchor, s"]).replace(",", "")) > 80_000
    alone = report(plain)
    assert "of these above every anchor given" not in facts(alone)
    assert facts(alone)["verification"] == "consistent, unanchored"


async def test_a_log_that_does_not_verify_is_no_report_unless_asked(plain: LogBox) -> None:
    made = await filled(plain, [Did()] * 3)
    await made.log.close()
    [segment] = (plain.folder / "eu-1" / "segments").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"clinic"', b'"clinix"', 1))
    with pytest.raises(NotWhole, match="despite-findings"):
        report(plain)
    found = report(plain, despite=True)
    assert found.alarm.startswith("THIS LOG DOES NOT VERIFY")
    assert rows(found, "whole", 1)[0]["fault"] == "altered"
    assert json.dumps(found.to_json()).count("THIS LOG DOES NOT VERIFY") == 1


async def test_the_logs_of_several_processes_are_one_report(plain: LogBox) -> None:
    one = await filled(plain, [Did()] * 2)
    two = await filled(plain, [Did(), Did("shop", status="open")], "eu-2")
    found = report(plain)
    assert facts(found)["requests answered"] == 3
    assert facts(found)["requests open at the log's end"] == 1
    assert facts(found)["logs"] == "eu-1, eu-2"
    assert {row["log"] for row in rows(found, "whole", 4)} == {"eu-1", "eu-2"}
    await one.log.close()
    await two.log.close()


async def test_a_torn_tail_is_said_and_is_no_finding(plain: LogBox) -> None:
    made = await filled(plain, [Did()] * 2)
    await made.log.close()
    [segment] = (plain.folder / "eu-1" / "segments").glob("*.jsonl")
    with segment.open("ab") as file:
        file.write(b'{"b":{"torn')
    found = report(plain)
    assert "torn tail" in str(facts(found)["verification"])
    assert facts(found)["requests answered"] == 2


def test_a_folder_without_a_log(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no log"):
        report(LogBox(tmp_path))


async def test_across_a_boundary_there_are_counts_and_nothing_behind_them(plain: LogBox) -> None:
    abroad = Did("clinic", endpoint="iad", retain=("self:iad1",))
    await filled(plain, [Did()] * 6 + [abroad] * 7 + [Did("clinic", "health")] * 2)
    found = report(plain, None, "clinic", view_from="self:fra1")
    assert facts(found)["counted, but not to be named where the reader is"] == 7
    here, there = found.sections[0].tables[0].lines[1], found.sections[0].tables[0].lines[0]
    assert (there.cells[3], there.cells[-1], there.evidence) == ("self:iad1", 7, "")
    assert (here.cells[3], here.evidence) == ("self:fra1", "E1")
    assert found.least == 5  # what crosses a boundary tells no small group of its own tenant either
    nowhere = report(plain, None, "clinic", view_from="")
    assert not nowhere.evidence
    assert not rows(nowhere, "changes")
    assert facts(nowhere)["requests answered"] == 13
    beside = report(plain, None, "clinic", view_from="self:nowhere1")
    assert (beside.least, len(beside.evidence)) == (5, 0)


async def test_a_snapshot_that_is_gone_is_a_finding_and_what_it_told_is_not_known(
    plain: LogBox,
) -> None:
    made = await filled(plain, [Did()] * 2)
    (plain.folder / "snapshots" / f"{made.snapshot.digest}.json").unlink()
    with pytest.raises(NotWhole, match="snapshot"):
        report(plain)
    [row] = rows(report(plain, despite=True), "where")
    assert (row["country"], row["recipient"], row["mechanism"]) == ("not known",) * 3


async def test_a_real_routers_log_is_read_as_it_is_written(tmp_path: Path) -> None:
    async with watched(two_continents(tmp_path)) as world:
        for value in (b"health", b"health", b"internal"):
            said = (b"x-domicile-attr-data_class", value)
            exchange = world.arrive(CLINIC, "assistant", said)
            assert (await world.run(exchange)).status == 200
        assert (await world.run(world.arrive(CLINIC, "abroad"))).status == 403
    day = between(round(AT * 1e6) - 10**9, round(AT * 1e6) + 10**9, zone("UTC"))
    found = make(tmp_path / "log", Asked(Scope(day), 1, AT))
    served = rows(found, "where")
    assert {(one["data class"], one["requests"]) for one in served} == {
        ("health, internal", 2),
        ("internal", 1),
    }
    assert {one["country"] for one in served} <= {"DE", "FR"}
    assert {one["recipient"] for one in served} == {SELF}
    assert {one["mechanism"] for one in served} == {"none recorded"}
    assert [(one["what"], one["tenant"]) for one in rows(found, "unserved")] == [
        ("refused", "clinic")
    ]
    named = {one["rule"] for one in rows(found, "rules")}
    assert named == {"health-in-germany", "red-in-france"}  # nobody said the zone
    assert {one["rule"] for one in rows(found, "rules", 1)} == {"trial"}
    assert rows(found, "where", 1)[0]["country"] == "DE"
    assert facts(found)["verification"] == "consistent, unanchored"
