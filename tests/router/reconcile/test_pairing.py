"""Ways to hide a call among ours, one source at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest

from router.reconcile import pairing
from router.reconcile.model import UNKNOWN_TIME, Call, Facts, Finding, Kind, Sent, Source, Where
from router.reconcile.pairing import Pairing
from router.reconcile.store import Store
from tests.router.reconcile.test_judging import CALL, MINUTE, PAIR, SENT

BEDROCK = PAIR.facts
FLEET = Facts("vllm", "self", "m", "self:fra1", True)
LOST = replace(SENT, record="eu-1/9", request="lost", call_id="", result="timeout", surely=False)
MINE = replace(CALL, principal="arn:aws:sts::1:assumed-role/router/i-1")


class Case:
    """A store, and what pairing says of it."""

    def __init__(self, source: Source, named: bool = False) -> None:
        self.source = source
        self.store = Store(named)
        self.number = 0

    def add(self, sent: Sequence[Sent], calls: Sequence[Call], facts: Facts = BEDROCK) -> Case:
        self.store.add_sent([(one, facts) for one in sent])
        for call in calls:
            self.number += 1
            where = Where("f", self.number)
            self.store.add_call(
                replace(call, source=self.source, event=f"e{self.number}", where=where)
            )
        return self

    def found(self, exempt: Sequence[str] = ()) -> list[tuple[Kind, int]]:
        self.findings: list[Finding] = [*Pairing(self.store, self.source, 5 * MINUTE, exempt).run()]
        return [(one.kind, one.where.number if one.where else 0) for one in self.findings]

    def pairs(self) -> dict[str, tuple[int, str]]:
        return {
            one.sent.record: (one.call.where.number, one.how)
            for one in self.store.pairs(self.source)
        }


@pytest.fixture
def trail() -> Iterator[Case]:
    case = Case(Source.CLOUDTRAIL)
    with closing(case.store):
        yield case


@pytest.fixture
def invocations() -> Iterator[Case]:
    case = Case(Source.BEDROCK)
    with closing(case.store):
        yield case


@pytest.fixture
def fleet() -> Iterator[Case]:
    case = Case(Source.VLLM, named=True)
    with closing(case.store):
        yield case


def test_an_id_is_one_call_s(trail: Case) -> None:
    found = trail.add([SENT], [MINE, MINE, replace(MINE, time=1)]).found()
    assert found == [(Kind.REUSED, 1), (Kind.REUSED, 2)]
    assert trail.pairs() == {"eu-1/4": (3, "id")}  # the earliest; its time is judged later


def test_a_refused_twin_ran_nowhere(trail: Case) -> None:
    assert trail.add([SENT], [MINE, replace(MINE, ran=False)]).found() == []
    assert trail.pairs() == {"eu-1/4": (1, "id")}


def test_a_call_of_unknown_fate_is_paired_by_time_once(trail: Case) -> None:
    unknown = [replace(MINE, call_id=f"x{n}") for n in range(3)]
    assert trail.add([SENT, LOST], [MINE, *unknown]).found() == [
        (Kind.BYPASS, 3), (Kind.BYPASS, 4),
    ]  # fmt: skip
    assert trail.pairs() == {"eu-1/4": (1, "id"), "eu-1/9": (2, "time")}


@pytest.mark.parametrize(
    "other",
    [
        replace(MINE, call_id="x", region="aws:eu-west-2"),
        replace(MINE, call_id="x", model="eu.a.n"),
        replace(MINE, call_id="x", time=30 * MINUTE),
        replace(MINE, call_id="x", principal="arn:aws:sts::1:assumed-role/other/i-1"),
    ],
    ids=["region", "model", "time", "principal"],
)
def test_nothing_hides_behind_an_attempt_of_unknown_fate_but_its_like(
    trail: Case, other: Call
) -> None:
    assert trail.add([SENT, LOST], [MINE, other]).found() == [(Kind.BYPASS, 2)]


def test_another_session_of_our_role_is_ours(trail: Case) -> None:
    again = replace(MINE, call_id="x", principal="arn:aws:sts::1:assumed-role/router/i-2")
    assert trail.add([SENT, LOST], [MINE, again]).found() == []


def test_attempts_with_an_id_are_never_paired_by_time(trail: Case) -> None:
    assert trail.add([SENT], [replace(MINE, call_id="x")]).found() == [(Kind.BYPASS, 1)]
    assert trail.pairs() == {}


def test_a_bypass_that_was_refused_or_is_of_another_time_is_counted(trail: Case) -> None:
    trail.store.bound(5 * MINUTE, 20 * MINUTE)
    refused = replace(MINE, call_id="x", ran=False)
    early = replace(MINE, call_id="y", time=MINUTE)
    assert trail.add([SENT], [MINE, refused, early]).found() == []
    fates: dict[str, int] = dict(trail.store.rows("select fate, count(*) from calls group by fate"))
    assert fates == {"": 1, "refused": 1, "outside_period": 1}


def test_a_record_that_a_client_names_is_a_claim(invocations: Case) -> None:
    spoofed = replace(MINE, call_id="x", record="eu-1/4")
    assert invocations.add([SENT], [MINE, spoofed]).found() == [(Kind.CLAIMED, 2)]
    assert "eu-1/4" in invocations.findings[0].detail


def test_a_claim_does_not_stand_in_for_a_call_that_is_missing(invocations: Case) -> None:
    """Whoever deletes our call's record and names ours in theirs is found for both."""
    spoofed = replace(MINE, call_id="x", record="eu-1/4")
    assert invocations.add([SENT], [spoofed]).found() == [(Kind.CLAIMED, 1)]
    assert [one.record for one in invocations.store.unpaired(Source.BEDROCK)] == ["eu-1/4"]


def test_a_claim_is_true_of_an_attempt_without_an_id_once(invocations: Case) -> None:
    claims = [replace(MINE, call_id=f"x{n}", record="eu-1/9") for n in range(2)]
    elsewhere = replace(MINE, call_id="y", record="eu-1/9", region="aws:us-east-1")
    found = invocations.add([LOST], [elsewhere, *claims]).found()
    assert found == [(Kind.CLAIMED, 1), (Kind.CLAIMED, 3)]
    assert invocations.pairs() == {"eu-1/9": (2, "claim")}


def test_another_router_s_record_is_a_bypass_that_says_so(invocations: Case) -> None:
    other = replace(MINE, call_id="x", record="us-1/3")
    assert invocations.add([SENT], [MINE, other]).found() == [(Kind.BYPASS, 2)]
    assert "us-1/3" in invocations.findings[0].detail
    assert "give that log too" in invocations.findings[0].detail


def test_exempt_principals_may_not_take_our_ids(trail: Case) -> None:
    theirs = "arn:aws:sts::1:assumed-role/batch_x/i-7"
    stolen = replace(MINE, principal=theirs)
    own = replace(stolen, call_id="x")
    like = replace(own, call_id="y", principal="arn:aws:sts::1:assumed-role/batchyx/i-7")
    found = trail.add([SENT], [MINE, stolen, own, like]).found(
        ["arn:aws:sts::1:assumed-role/batch_x/z"]
    )
    assert found == [(Kind.REUSED, 2), (Kind.BYPASS, 4)]


def test_a_request_id_explains_as_many_calls_as_attempts(fleet: Case) -> None:
    sent = replace(SENT, request="q", call_id="", endpoint="fra")
    call = replace(CALL, call_id="", request="q", region="", model="", place="", endpoint="fra")
    again = replace(sent, number=1, record="eu-1/4", surely=False)
    assert fleet.add([sent, again], [call, call, call], FLEET).found() == [(Kind.REUSED, 3)]


def test_a_request_id_at_a_fleet_that_was_not_asked(fleet: Case) -> None:
    sent = replace(SENT, request="q", call_id="", endpoint="fra")
    call = replace(CALL, call_id="", request="q", region="", model="", place="", endpoint="iad")
    assert fleet.add([sent], [call], FLEET).found() == [(Kind.REUSED, 1)]
    assert fleet.findings[0].endpoint == "iad"


def test_probes_are_counted_and_other_names_are_a_bypass(fleet: Case) -> None:
    sent = replace(SENT, request="q", call_id="", endpoint="fra")
    call = replace(CALL, call_id="", region="", model="", place="", endpoint="fra")
    calls = [replace(call, request=name) for name in ("q", "probe", "unknown")]
    assert fleet.add([sent], calls, FLEET).found() == [(Kind.BYPASS, 3)]


def test_lines_without_id_or_time_are_counted_against_attempts(fleet: Case) -> None:
    sent = [
        replace(SENT, record=f"l/{n}", request=f"q{n}", call_id="", endpoint="fra") for n in (1, 2)
    ]
    line = replace(CALL, call_id="", region="", model="", place="", endpoint="fra",
                   time=UNKNOWN_TIME, principal="")  # fmt: skip
    assert fleet.add(sent, [line, line, line], FLEET).found() == [(Kind.BYPASS, 3)]
    assert {how for _, how in fleet.pairs().values()} == {"time"}


def test_sources_without_ids_pair_by_time_and_model() -> None:
    facts = Facts("vertex", "gcp", "gemini", "gcp:europe-west4", False)
    case = Case(Source.GCP)
    call = replace(MINE, call_id="", model="gemini", region="gcp:europe-west4", place="")
    other = replace(call, model="gemini-pro")
    with closing(case.store):
        assert case.add([SENT], [call, other], facts).found() == [(Kind.BYPASS, 2)]
        assert case.pairs() == {"eu-1/4": (1, "time")}


def test_nothing_looks_through_all_attempts_for_each_call(trail: Case) -> None:
    """The time of a reconciliation grows with the records, not with their square."""
    for statement, values in (
        (pairing._SAME_ID, ("s",)),
        (pairing._CLAIMED.format("record"), ("r", "s")),
        (pairing._CLAIMED.format("request"), ("r", "s")),
    ):
        plan = [str(row[3]) for row in trail.store.rows(f"explain query plan {statement}", *values)]
        assert any("SEARCH a USING" in step for step in plan), plan
        assert not any("SCAN a" in step for step in plan), plan
