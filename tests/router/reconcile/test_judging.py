from __future__ import annotations

from dataclasses import replace

import pytest

from router.reconcile.judging import Basis, judge
from router.reconcile.model import Call, Facts, Kind, Sent, Source, Where
from router.reconcile.store import BY_ID, BY_TIME, Pair

MINUTE = 60_000_000
SENT = Sent(
    "eu-1/4", "q", 0, "sonnet", "r-1", "ok", 10 * MINUTE, 11 * MINUTE, True,
    frozenset({"aws:eu-west-1", "aws:eu-north-1", "aws:eu-west-3"}),
    frozenset({"aws:eu-west-1", "aws:eu-north-1"}), "", Where("log", 3),
)  # fmt: skip
CALL = Call(
    Source.CLOUDTRAIL, "e", "r-1", "", "", 10 * MINUTE, "aws:eu-west-1", "eu.a.m",
    "aws:eu-north-1", True, "arn", Where("trail", 1, "record"),
)  # fmt: skip
PAIR = Pair(SENT, Facts("bedrock", "aws", "eu.a.m", "aws:eu-west-1", False), CALL, BY_ID)
ONE = frozenset({"aws:eu-west-1"})


def found(pair: Pair) -> list[Kind]:
    return [one.kind for one in judge(pair, 5 * MINUTE).findings]


def test_what_the_provider_told_is_where_it_ran() -> None:
    judged = judge(PAIR, 5 * MINUTE)
    assert (judged.basis, judged.place, judged.findings) == (Basis.TOLD, "aws:eu-north-1", ())


@pytest.mark.parametrize(
    ("place", "kinds"),
    [
        ("aws:us-east-1", [Kind.OUTSIDE]),
        ("aws:eu-west-3", [Kind.DRIFTED]),
        ("aws:eu-west-1", []),
    ],
)
def test_places(place: str, kinds: list[Kind]) -> None:
    pair = replace(PAIR, call=replace(CALL, place=place))
    assert found(pair) == kinds
    for one in judge(pair, 0).findings:
        assert (one.record, one.endpoint, one.place) == ("eu-1/4", "sonnet", place)
        assert one.where == CALL.where
    unknown = replace(pair, sent=replace(SENT, footprint=frozenset()))
    assert found(unknown) == [kind for kind in kinds if kind is Kind.OUTSIDE]


def test_nothing_allowed_holds_no_place() -> None:
    assert found(replace(PAIR, sent=replace(SENT, allowed=frozenset()))) == [Kind.OUTSIDE]


def test_the_log_and_the_provider_must_say_the_same() -> None:
    told = replace(PAIR, sent=replace(SENT, told="aws:eu-west-1"))
    assert found(told) == [Kind.CONTRADICTED]
    assert found(replace(PAIR, sent=replace(SENT, told="aws:eu-north-1"))) == []


def test_the_only_place_of_a_footprint_stands_where_nothing_is_told() -> None:
    silent = replace(PAIR, sent=replace(SENT, footprint=ONE), call=replace(CALL, place=""))
    assert judge(silent, 0).basis is Basis.ONLY
    assert judge(replace(silent, sent=SENT), 0).basis is Basis.NONE
    area = replace(SENT, footprint=frozenset({"area:aws:DE"}))
    assert judge(replace(silent, sent=area), 0).basis is Basis.NONE
    elsewhere = replace(silent.call, region="aws:us-east-1")
    strayed = judge(replace(silent, call=elsewhere), 0)
    assert (strayed.basis, strayed.place) == (Basis.NONE, "aws:us-east-1")
    assert [one.kind for one in strayed.findings] == [Kind.WRONG_REGION, Kind.OUTSIDE]


def test_another_fleet_s_log_says_nothing_of_this_one() -> None:
    fleet = replace(CALL, source=Source.VLLM, place="", region="", model="", endpoint="sonnet")
    own = replace(PAIR, sent=replace(SENT, footprint=ONE), call=fleet)
    assert judge(own, 0).basis is Basis.ONLY
    assert judge(replace(own, call=replace(fleet, endpoint="other")), 0).basis is Basis.NONE


def test_a_refused_call_ran_nowhere() -> None:
    refused = replace(PAIR, call=replace(CALL, place="", ran=False))
    assert judge(refused, 0).basis is Basis.NOWHERE
    assert found(refused) == []


def test_models_and_times() -> None:
    arn = "arn:aws:bedrock:eu-west-1:1:inference-profile/eu.a.m"
    assert found(replace(PAIR, call=replace(CALL, model=arn))) == []
    assert found(replace(PAIR, call=replace(CALL, model="eu.a.n"))) == [Kind.WRONG_MODEL]
    for late, kinds in ((16, []), (17, [Kind.WRONG_TIME]), (5, []), (4, [Kind.WRONG_TIME])):
        assert found(replace(PAIR, call=replace(CALL, time=late * MINUTE))) == kinds
    unknown = replace(CALL, time=-1)
    assert found(replace(PAIR, call=unknown)) == []
    assert found(replace(PAIR, call=replace(CALL, time=17 * MINUTE), how=BY_TIME)) == []
