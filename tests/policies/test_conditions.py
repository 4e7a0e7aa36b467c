import pytest

from policies.attributes import Attributes, State, Truth
from policies.conditions import (
    ALWAYS,
    AllOf,
    AnyOf,
    Candidate,
    CandidateIs,
    Condition,
    Is,
    Not,
    negated_leaves,
    open_attributes,
)
from regions.model import Tier

T, U, F = Truth.TRUE, Truth.UNKNOWN, Truth.FALSE
FACTS = Attributes(
    {
        "yes": State(frozenset({"v"}), closed=True),
        "maybe": State(frozenset(), closed=False),
        "no": State(frozenset({"w"}), closed=True),
    }
)
YES, MAYBE, NO = (Is(name, frozenset({"v"})) for name in ("yes", "maybe", "no"))
SMALL = CandidateIs("tier", frozenset({"small"}))
CANDIDATE = Candidate("e", "m", "aws", Tier.SMALL)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (YES, T),
        (MAYBE, U),
        (NO, F),
        (ALWAYS, T),
        (AnyOf(()), F),
        (AllOf((YES, MAYBE)), U),
        (AllOf((NO, MAYBE)), F),
        (AnyOf((YES, MAYBE)), T),
        (AnyOf((NO, MAYBE)), U),
        (Not(YES), F),
        (Not(MAYBE), U),
        (Not(NO), T),
        (AllOf((YES, SMALL)), U),
        (AnyOf((YES, SMALL)), T),
        (Is("never-heard-of", frozenset({"v"})), U),
    ],
)
def test_truth(condition: Condition, expected: Truth) -> None:
    assert condition.truth(FACTS, None) is expected


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("tier", "small", T),
        ("tier", "large", F),
        ("provider", "aws", T),
        ("served_model", "m", T),
        ("served_model", "n", F),
    ],
)
def test_the_candidate(key: str, value: str, expected: Truth) -> None:
    condition = CandidateIs(key, frozenset({value}))
    assert condition.needs_candidate
    assert condition.truth(FACTS, None) is U
    assert condition.truth(FACTS, CANDIDATE) is expected


def test_needs_candidate() -> None:
    assert Not(AllOf((YES, AnyOf((NO, SMALL))))).needs_candidate
    assert not Not(AllOf((YES, AnyOf((NO, MAYBE))))).needs_candidate


def test_negated_leaves_at_any_depth() -> None:
    condition = AllOf((YES, Not(AnyOf((NO, Not(MAYBE))))))
    assert list(negated_leaves(condition)) == [NO, MAYBE]


def test_open_attributes() -> None:
    assert open_attributes(AllOf((YES, MAYBE, NO, SMALL)), FACTS) == {"maybe"}


def test_describe() -> None:
    condition = AllOf((YES, Not(AnyOf((SMALL, Is("a", frozenset({"y", "x"})))))))
    assert condition.describe() == "(yes: v) and (not ((tier: small) or (a: [x, y])))"
    assert ALWAYS.describe() == "always"
