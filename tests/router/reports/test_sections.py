"""Sections tell what was counted, and nothing that would give a small group away."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from router.audit.layout import Folder
from router.audit.verdict import Verdict
from router.reports.composing import compose
from router.reports.document import Report
from router.reports.facts import Facts
from router.reports.figures import Group, Kept, Tally
from router.reports.gathering import Gathered, Scope
from router.reports.sections import points
from router.reports.view import Made, View
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import DAY, facts, filled, report, rows


def tally(count: int) -> Tally:
    made = Tally(count=count, covered=count)
    made.steps[3] = count
    made.statuses["ok"] = count
    made.rules["always", "GDPR"] = count
    made.trials["trial", "places allowed"] = count
    made.routers["eu-1", "self:fra1", "DE"] = count
    return made


def group(tenant: str, country: str) -> Group:
    return Group("processed", tenant, "health", Kept((country,), (f"self:{country}",)))


def made(counts: dict[tuple[str, str], int], least: int = 5) -> Made:
    found = Gathered(groups={group(*key): tally(count) for key, count in counts.items()})
    none = Facts(Folder(Path("gone")))
    return Made("log", Scope(DAY), found, none, Verdict([], [], []), [], least, 0.0)


def told(report: Report) -> str:
    pictures = [picture.svg for one in report.sections for picture in one.pictures]
    return json.dumps([report.to_json(), pictures])


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(5, 90))
def test_no_figure_of_a_report_depends_on_a_hidden_number(one: int, other: int, big: int) -> None:
    """The attack by differencing, on the whole report: pictures, totals, rules, timeline."""
    shared = {("clinic", "DE"): big, ("shop", "DE"): 40}
    first = compose(made({**shared, ("bank", "US"): one}))
    assert told(first) == told(compose(made({**shared, ("bank", "US"): other})))
    assert told(first) == told(compose(made({**shared, ("shop", "US"): one})))


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4))
def test_small_groups_that_stand_together_can_be_any_that_sum_up(one: int, other: int) -> None:
    whole = 6
    if not (whole - 4 <= one <= 4 and whole - 4 <= other <= 4):
        return
    shared = {("clinic", "DE"): 30}
    pairs = [{**shared, ("shop", "US"): n, ("bank", "US"): whole - n} for n in (one, other)]
    assert told(compose(made(pairs[0]))) == told(compose(made(pairs[1])))


def test_a_place_is_never_hidden() -> None:
    found = made({("clinic", "DE"): 30, ("shop", "US"): 1})
    [line] = [line for line in rows(compose(found), "where") if line["country"] == "US"]
    assert (line["tenant"], line["requests"]) == ("(small groups)", None)
    drawn = points(View(found), View(found).of("processed"))
    assert [(one.spot.id, one.sure, one.hidden) for one in drawn] == [
        ("self:DE", 30, False), ("self:US", 0, True),
    ]  # fmt: skip


async def test_sections_of_a_day(plain: LogBox) -> None:
    await filled(plain, [
        *[Did(endpoint="par", failed=("fra",))] * 6,
        *[Did("shop", "health", endpoint="sonnet")] * 5,
        *[Did(code="no_grant")] * 5, Did("shop", code="no_grant"),
    ])  # fmt: skip
    found = report(plain, least=5)
    assert rows(found, "failovers") == [
        {"endpoint": "fra", "result": "unavailable", "country": "DE", "region": "self:fra1",
         "recipient": "operator of the router", "attempts": 6},
    ]  # fmt: skip
    assert rows(found, "rules") == [
        {"rule": "health-in-eu", "because": "GDPR Art. 9, 44", "requests": 5}
    ]
    assert {row["effect"]: row["requests"] for row in rows(found, "rules", 1)} == {
        "places allowed": 6, "nothing was processed": 5,
    }  # fmt: skip
    refused = [(row["tenant"], row["requests"]) for row in rows(found, "unserved")]
    assert refused == [("clinic", 5), ("(small groups)", None)]
    assert facts(found)["requests refused"] == 5
    assert rows(found, "unserved", 1) == [{"outcome": "ok", "requests": 11}]
    assert rows(found, "where", 1)[0]["requests"] == 16
