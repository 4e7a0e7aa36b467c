import pytest

from policies.obligations import (
    KINDS,
    NO_OBLIGATIONS,
    AnyObligation,
    MaxPrice,
    NoBatch,
    RecordRetention,
    Redact,
    TierRange,
    ZeroRetention,
    meet,
)
from regions.model import Price, Tier

EMAIL, IBAN = Redact(frozenset({"email"})), Redact(frozenset({"iban"}))
CHEAP, DEAR = MaxPrice(input=1.0), MaxPrice(input=3.0, output=9.0)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (EMAIL, IBAN, Redact(frozenset({"email", "iban"}))),
        (CHEAP, DEAR, MaxPrice(1.0, 9.0)),
        (ZeroRetention(), ZeroRetention(), ZeroRetention()),
        (
            TierRange(Tier.MEDIUM, Tier.LARGE),
            TierRange(Tier.SMALL, Tier.MEDIUM),
            TierRange(Tier.MEDIUM, Tier.MEDIUM),
        ),
        (TierRange(Tier.LARGE, Tier.LARGE), TierRange(Tier.SMALL, Tier.SMALL), None),
        (RecordRetention(10.0, None), RecordRetention(5.0, 20.0), RecordRetention(10.0, 20.0)),
        (RecordRetention(10.0, None), RecordRetention(0.0, 5.0), None),
    ],
)
def test_meet(one: AnyObligation, other: AnyObligation, both: AnyObligation | None) -> None:
    assert meet(one, other) == meet(other, one) == both


def test_different_kinds_do_not_meet() -> None:
    with pytest.raises(TypeError, match="different kinds"):
        meet(EMAIL, NoBatch())


def test_a_conflict_stays() -> None:
    found = NO_OBLIGATIONS.add(TierRange(Tier.LARGE)).add(TierRange(ceiling=Tier.SMALL))
    assert found.conflicts == {"tier"}
    assert found.add(TierRange()).conflicts == {"tier"}
    assert "tier" in found
    assert found.get("tier") is None
    assert found.describe() == {"tier": "conflict"}


def test_reading_them_back() -> None:
    found = NO_OBLIGATIONS.add(EMAIL).add(IBAN).add(RecordRetention(5.0, 9.0)).add(CHEAP)
    assert found.get("redact") == Redact(frozenset({"email", "iban"}))
    assert found.record_retention == RecordRetention(5.0, 9.0)
    assert found.tiers == TierRange()
    assert [one.kind for one in found] == ["max_price", "record_retention", "redact"]
    assert found.describe()["redact"] == {"identifiers": ["email", "iban"]}
    assert NO_OBLIGATIONS.get("redact") is None


@pytest.mark.parametrize(
    ("price", "admitted"),
    [
        (Price(3.0, 9.0), True),
        (Price(3.1, 9.0), False),
        (Price(3.0, None), False),
        (Price(None, None), False),
    ],
)
def test_an_unknown_price_is_not_low(price: Price, admitted: bool) -> None:
    assert DEAR.admits(price) is admitted
    assert MaxPrice().admits(price)


def test_kinds_are_named_once() -> None:
    assert len(KINDS) == 9
    assert all(KINDS[name].kind == name for name in KINDS)
