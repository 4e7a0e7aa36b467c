"""Every request of a period is counted once, in the right group, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.audit.entry import KINDS, Entry, Json
from router.audit.layout import Folder
from router.audit.lines import Value
from router.audit.reading import Place, Shown
from router.audit.verdict import Verdict
from router.audit.verify import verify
from router.entries.recipients import SELF
from router.reports.composing import compose
from router.reports.facts import NONE, Facts
from router.reports.figures import Failed, Group
from router.reports.gathering import Gathered, Gatherer, Scope, data_class
from router.reports.period import between, zone
from router.reports.view import Made
from tests.router.audit.logbox import START, LogBox
from tests.router.reports.logs import EU, Did, opened

DAY = between(round(START * 1e6), round((START + 86_400) * 1e6), zone("UTC"))


def gathered(box: LogBox, scope: Scope, anchors: dict[str, int] | None = None) -> Gathered:
    reader = Gatherer(scope, Facts(Folder(box.folder)), anchors or {}, lambda _: None)
    assert verify(box.folder, reader=reader).ok
    return reader.end()


@pytest.fixture
async def box(plain: LogBox) -> LogBox:
    made = await opened(plain)
    await made.all([
        Did(), Did(data_class="health"), Did("shop", endpoint="sonnet"),
        Did("shop", endpoint="sonnet", told="aws:eu-west-1"),
        Did(endpoint="par", failed=("fra",)),
        Did(endpoint="", failed=("fra", "par"), status="failed"),
        Did("shop", code="no_grant"), Did(code="misdirected"), Did("bank", status="open"),
        Did("bank", purpose="shadow"), Did("bank", endpoint="iad"),
    ])  # fmt: skip
    await made.log.tick()
    return plain


def count(found: Gathered, **wanted: object) -> int:
    def fits(group: Group) -> bool:
        return all(
            getattr(group, name, None) == value or getattr(group.kept, name, None) == value
            for name, value in wanted.items()
        )

    return sum(tally.count for group, tally in found.groups.items() if fits(group))


def test_each_request_is_in_one_group(box: LogBox) -> None:
    found = gathered(box, Scope(DAY))
    assert sum(tally.count for tally in found.groups.values()) == 11
    assert count(found, family="processed") == 7
    assert count(found, family="unanswered", code="failed") == 1
    assert count(found, family="refused", code="no_grant", tenant="shop") == 1
    assert count(found, family="misdirected", tenant="") == 1
    assert count(found, family="open", tenant="bank") == 1
    assert count(found, data_class="health", countries=("DE",)) == 1
    assert count(found, data_class="internal · shadow") == 1


def test_where_comes_from_what_was_told_or_from_all_it_may_be(box: LogBox) -> None:
    found = gathered(box, Scope(DAY))
    [many] = [one.kept for one in found.groups if one.kept.places == EU]
    assert (many.told, many.countries) == (False, ("DE", "ES", "FR", "IE", "IT", "SE"))
    assert "Amazon Web Services EMEA SARL (LU)" in many.recipient
    assert many.mechanism == "dpa"
    [told] = [one.kept for one in found.groups if one.kept.told]
    assert (told.places, told.countries) == (("aws:eu-west-1",), ("IE",))
    [abroad] = [one.kept for one in found.groups if one.kept.countries == ("US",)]
    assert (abroad.mechanism, abroad.recipient) == ("scc", "operator of the router")


async def test_what_an_entry_says_of_its_recipients_comes_first(plain: LogBox) -> None:
    made = await opened(plain)
    await made.all([Did(endpoint="sonnet", recipients=("ACME (DE)", "Other (US)")), Did()])
    await made.log.close()
    found = {
        group.kept.recipient: group.kept.mechanism for group in gathered(plain, Scope(DAY)).groups
    }
    assert found == {"ACME (DE); Other (US)": "scc, told", SELF: NONE}


def test_failed_attempts_name_the_places_they_may_have_reached(box: LogBox) -> None:
    found = gathered(box, Scope(DAY))
    failed = [one for tally in found.groups.values() for one in tally.failed.elements()]
    frankfurt = Failed("fra", "unavailable", ("self:fra1",), ("DE",), "operator of the router")
    assert failed.count(frankfurt) == 2
    assert len(failed) == 3
    assert sum(tally.moved for tally in found.groups.values()) == 1


async def test_a_prompt_computed_where_its_answer_says_is_no_failure(plain: LogBox) -> None:
    """The places of an answer in two steps are those of both. A prompt that was computed and not
    used, or elsewhere, is told."""
    made = await opened(plain)
    await made.all([
        Did(prefilled=("self:fra1",)), Did(prefilled=("self:par1",)),
        Did(endpoint="", prefilled=("self:fra1",), status="gone"),
    ])  # fmt: skip
    await made.log.tick()
    found = gathered(plain, Scope(DAY))
    told = [one for tally in found.groups.values() for one in tally.failed.elements()]
    assert sorted((one.endpoint, one.result, one.places) for one in told) == [
        ("pre", "prefilled", ("self:fra1",)), ("pre", "prefilled", ("self:par1",)),
    ]  # fmt: skip
    assert sum(tally.moved for tally in found.groups.values()) == 1


def test_trials_are_judged_by_the_places_used(box: LogBox) -> None:
    found = gathered(box, Scope(DAY))
    trials = [one for tally in found.groups.values() for one in tally.trials.elements()]
    assert trials.count(("only-france", "places allowed")) == 1  # par
    assert trials.count(("only-france", "nothing was processed")) == 3
    assert trials.count(("only-france", "places not allowed")) == 5


async def test_requests_sent_home_to_two_places_are_two_groups(plain: LogBox) -> None:
    made = await opened(plain)
    for target in ("self:iad1", "self:par1"):
        body: dict[str, Json] = {"key": "k", "target": target, "when": "early"}
        await made.log.record(Entry("misdirected", target, plain.clock.now, body))
    codes = {group.kept.code for group in gathered(plain, Scope(DAY)).groups}
    assert codes == {"to self:iad1, early", "to self:par1, early"}


def test_one_tenants_report_holds_nothing_of_another(box: LogBox) -> None:
    found = gathered(box, Scope(DAY, "clinic"))
    assert {group.tenant for group in found.groups} == {"clinic"}
    assert sum(tally.count for tally in found.groups.values()) == 4


def test_a_period_is_closed_at_its_start_and_open_at_its_end(box: LogBox) -> None:
    first = round((START + 10) * 1e6)
    one = Scope(between(first, first + 1, zone("UTC")))
    assert sum(tally.count for tally in gathered(box, one).groups.values()) == 1
    before = Scope(between(first - 1_000_000, first, zone("UTC")))
    assert not gathered(box, before).groups


def test_what_may_not_be_seen_there_is_counted_and_not_named(box: LogBox) -> None:
    near = gathered(box, Scope(DAY, sits=frozenset({"self:fra1"})))
    # A misdirected request has no allowed set: it may be shown nowhere.
    assert near.hidden == 1
    far = gathered(box, Scope(DAY, sits=frozenset({"self:iad1"})))
    assert far.hidden == 11
    assert not any(tally.records for tally in far.groups.values())
    assert gathered(box, Scope(DAY, sits=frozenset())).hidden == 11
    assert gathered(box, Scope(DAY)).hidden == 0


def test_anchors_and_silences(box: LogBox) -> None:
    found = gathered(box, Scope(DAY), {"eu-1": 9})
    assert found.covered["eu-1"].size == 9
    assert 0 < sum(tally.covered for tally in found.groups.values()) < 11
    assert found.covered["eu-1"].newest < found.newest["eu-1"]
    assert not found.silences


async def test_a_silence_of_a_running_process_is_found(box: LogBox) -> None:
    other = await opened(box, "eu-2")
    await other.one(Did())
    box.clock.now += 1000
    await other.one(Did())
    await other.log.close()
    [silence] = gathered(box, Scope(DAY)).silences
    assert silence.log == "eu-2"
    assert 1000 <= (silence.until - silence.since) / 1e6 <= 1020
    later = Scope(between(DAY.until, DAY.until + 10**9, zone("UTC")))
    assert not gathered(box, later).silences


def test_a_class_that_may_be_more_says_so() -> None:
    assert data_class({}, "data_class") == "not declared"
    assert data_class({"d": {"values": ["b", "a"], "closed": True}}, "d") == "a, b"
    assert data_class({"d": {"values": ["a"], "closed": False}}, "d") == "a or more"
    assert data_class({"d": {"values": [], "closed": True}}, "d") == "none"


NAMES = st.sampled_from([
    "who", "tenant", "snapshot", "attributes", "data_class", "values", "closed", "allowed", "rules",
    "rule", "because", "dry_run", "retain", "attempts", "endpoint", "result", "ran", "process",
    "place", "status", "code", "event", "by", "router", "region", "recipients", "mechanisms",
])  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.text(max_size=5) | st.sampled_from(["ok"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=25,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=8)
AT = DAY.since + 1


@settings(max_examples=60)
@given(st.sampled_from(sorted(KINDS)), BODIES, BODIES)
def test_whatever_a_body_holds_is_counted_and_breaks_nothing(
    kind: str, body: dict[str, Value], ended: dict[str, Value]
) -> None:
    reader = Gatherer(Scope(DAY), Facts(Folder(Path("gone"))), {}, lambda _: None)
    for number, (what, told) in enumerate([(kind, body), ("decision", body), ("outcome", ended)]):
        place = Place("eu-1", "", number + 1, number)
        reader.entry(Shown(place, what, f"q{max(number, 1)}", AT, told))
        reader.entry(Shown(place, "outcome", f"q{number}", AT, ended))
    found = reader.end()
    requests = 1 + (kind in ("refusal", "misdirected", "decision"))
    assert sum(tally.count for tally in found.groups.values()) in (requests, 1)
    compose(Made("log", Scope(DAY), found, reader.facts, Verdict([], [], []), [], 1, 0.0)).to_json()
