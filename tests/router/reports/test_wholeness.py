"""Whether the log is whole, told so that nobody can miss it."""

from __future__ import annotations

import shutil
from dataclasses import replace

from router.audit.reading import Place
from router.audit.verdict import Finding, LogVerdict, Verdict
from router.reports.composing import compose
from router.reports.document import Report
from router.reports.wholeness import MOST, alarm, whole
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import facts, filled, report, rows
from tests.router.reports.test_sections import made


def test_an_alarm_counts_the_findings() -> None:
    finding = Finding("altered", Place("eu-1", "", 3, 2), "line 3")
    assert alarm(Verdict([], [finding] * 3, [])).startswith("THIS LOG DOES NOT VERIFY: 3 findings")
    assert alarm(Verdict([], [], ["a notice"])) == ""


def test_long_lists_are_cut_and_say_so() -> None:
    finding = Finding("altered", Place("eu-1", "", 3, 2), "line 3")
    found = replace(made({}), verdict=Verdict([], [finding] * (MOST + 5), []))
    section = whole(found)
    assert len(section.tables[1].lines) == MOST
    assert any(f"Only {MOST} of {MOST + 5} findings" in words for words in section.paragraphs)


def test_lines_that_were_released_are_said_to_be_in_no_figure() -> None:
    def told(absent: int) -> Report:
        log = LogVerdict("eu-1", 90, None, 0, [], [], absent)
        return compose(replace(made({}), verdict=Verdict([log], [], [])))

    def said(found: Report) -> str:
        [part] = [one for one in found.sections if one.id == "whole"]
        return " ".join(part.paragraphs)

    assert facts(told(40))["lines not here, and in no figure"] == 40
    assert "Every line that is here of every log" in said(told(40))
    assert "40 lines are not here" in said(told(40))
    assert "lines not here, and in no figure" not in facts(told(0))
    assert "Every line of every log" in said(told(0))
    assert "not here" not in said(told(0))


async def test_keys_of_a_day_are_counted_not_listed(plain: LogBox) -> None:
    await filled(plain, [Did()] * 2)
    found = report(plain)
    assert rows(found, "whole", 3) == [{"log": "eu-1", "lasting key": "file", "keys": 1}]
    assert "certificate" not in str(found.to_json())


async def test_a_request_that_names_no_snapshot_is_no_notice(plain: LogBox) -> None:
    await filled(plain, [Did(code="misdirected")])
    [notice] = rows(report(plain), "whole", 5)
    assert "keys were taken from the roster" in str(notice["notice"])


async def test_a_tenants_report_tells_where_a_finding_is_and_not_of_whom(plain: LogBox) -> None:
    await filled(plain, [Did("clinic"), Did("shop")])
    [segment] = (plain.folder / "eu-1" / "segments").glob("*.jsonl")
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([*lines[:-2], lines[-2].replace(b"1", b"2"), lines[-1]]))
    found = report(plain, tenant="clinic", despite=True)
    assert found.alarm
    told = rows(found, "whole", 1)
    assert told
    assert {row["detail"] for row in told} == {"told to who may read every tenant's records"}
    assert all("eu-1" in str(row["place"]) for row in told)
    every = rows(report(plain, despite=True), "whole", 1)
    assert "told to who may" not in str(every)


async def test_what_a_router_says_of_its_anchors_is_its_word(plain: LogBox) -> None:
    await filled(plain, [])
    found = report(plain, anchors=("w.example.org (ok) took 9 lines, 12 s ago",))
    [part] = [one for one in found.sections if one.id == "whole"]
    assert any("w.example.org (ok) took 9 lines" in said and "its word" in said
               for said in part.paragraphs)  # fmt: skip


async def test_processes_and_crashes_come_from_the_roster(plain: LogBox) -> None:
    await filled(plain, [Did(), Did(status="open")])
    # A copy of the folder while a process writes is what a crash leaves.
    after = plain.root / "after"
    plain.copy(after / "logs")
    shutil.copy(plain.key_file, after)
    box = LogBox(after, clock=plain.clock)
    second = await filled(box, [Did()])
    await second.log.close()
    events = [row["event"] for row in rows(report(box), "whole", 4)]
    assert events == ["start", "start after a crash", "stop"]
    shutil.copytree(plain.folder, plain.root / "lost" / "logs")
    lost = [row["event"] for row in rows(report(LogBox(plain.root / "lost")), "whole", 4)]
    assert lost == ["start", "no stop: it runs, or was lost after"]
    told = [row["what"] for row in rows(report(box), "changes", 2)]
    assert "recovery after a crash" in told
