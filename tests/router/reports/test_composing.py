"""The whole: its parts in order, its facts, and JSON that says the same."""

from __future__ import annotations

from pathlib import Path

from router.reports.gathering import Scope
from router.reports.making import Asked, make
from tests.router.audit.logbox import START, LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import DAY, facts, filled, report, rows
from tests.router.reports.test_reconciled import written


async def test_its_parts_and_their_order(plain: LogBox, tmp_path: Path) -> None:
    await filled(plain, [Did()])
    found = report(plain, reconcile=written(tmp_path / "r.json"))
    assert [one.id for one in found.sections] == [
        "where", "when", "unserved", "failovers", "rules", "changes", "reconciled", "whole", "laws",
        "cannot",
    ]  # fmt: skip
    assert found.sections[-1].title == "What this evidence cannot show"
    assert len(found.sections[-1].bullets) >= 6
    assert {str(row["article"]).split()[0] for row in rows(found, "laws")} == {"GDPR", "EU"}


async def test_json_has_numbers_as_numbers(plain: LogBox) -> None:
    await filled(plain, [Did()] * 5 + [Did("shop")] * 2)
    found = report(plain, least=5).to_json()
    assert found["format"] == "domicile-report/1"
    sections = found["sections"]
    assert isinstance(sections, list)
    shown = [row["requests"] for row in sections[0]["tables"][0]["rows"]]
    assert shown == [5, None]
    assert sections[0]["tables"][0]["rows"][0]["evidence"] == "E1"


async def test_a_zero_on_top_does_not_hide_a_small_group(plain: LogBox) -> None:
    await filled(plain, [Did()] * 5 + [Did(code="no_endpoint_inside_boundary")])
    top = facts(report(plain, least=5))
    assert (top["requests answered"], top["requests refused"]) == (5, 0)
    assert top["in none of these numbers"] == "groups too small to tell: refused"
    assert "in none of these numbers" not in facts(report(plain, least=1))


async def test_a_tenants_own_report_tells_each_request(plain: LogBox) -> None:
    await filled(plain, [Did(), Did("shop")])
    found = report(plain, tenant="clinic")
    assert facts(found)["requests answered"] == 1
    assert "smallest group told" not in facts(found)
    assert "shop" not in str(found.to_json())
    assert len(rows(found, "changes")) == 1
    assert "Readings of the log by auditors" not in str(found.to_json())


async def test_an_empty_period_is_said_as_such(plain: LogBox) -> None:
    await filled(plain, [])
    found = report(plain, tenant="nobody-of-that-name")
    assert facts(found)["requests answered"] == 0
    assert found.sections[0].tables[0].empty == "None in this period."
    assert "nobody-of-that-name" in str(facts(found)["beware"])
    assert "beware" not in facts(report(plain, tenant="bank")), "it only asked nothing"
    assert str(facts(found)["recorded from, to"]).startswith("2027-01-15T08:00:00+00:00, ")


async def test_what_may_not_be_named_tells_no_small_group_by_subtraction(plain: LogBox) -> None:
    """Told requests and hidden ones are both totals: their difference would be the small group."""
    made = await filled(plain, [Did()] * 10 + [Did("shop")] * 2)
    scope = Scope(DAY, sits=frozenset({"self:iad1"}))
    seen, found = [], dict[str, object]()
    for _ in range(2):
        found = facts(make(plain.folder, Asked(scope, 5, START + 86_400)))
        seen.append(found["counted, but not to be named where the reader is"])
        await made.all([Did("shop")])
    assert found["requests answered"] == 10
    assert seen == [10, 10]
    one = facts(make(plain.folder, Asked(scope, 1, START + 86_400)))
    assert one["counted, but not to be named where the reader is"] == 14
