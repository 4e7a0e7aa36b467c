import pytest

from policies.duties import read_obligations
from policies.obligations import (
    IDENTIFIERS,
    AnyObligation,
    InRegion,
    MaxPrice,
    NoBatch,
    NoGlobal,
    NoStore,
    RecordRetention,
    Redact,
    TierRange,
    ZeroRetention,
)
from policies.written import Refused
from regions.model import Tier


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("zero_retention", (ZeroRetention(),)),
        (["no_batch", "no_store"], (NoBatch(), NoStore())),
        (["in_region", {"redact": "email"}], (InRegion(), Redact(frozenset({"email"})))),
        ({"redact": ["email", "iban"]}, (Redact(frozenset({"email", "iban"})),)),
        ({"tier": {"floor": "large"}}, (TierRange(Tier.LARGE, Tier.LARGE),)),
        ({"max_price": {"input": "3", "output": "15.5"}}, (MaxPrice(3.0, 15.5),)),
        (
            [{"record_retention": {"min": "1d", "max": "2d"}}, "no_global"],
            (RecordRetention(86400.0, 172800.0), NoGlobal()),
        ),
    ],
)
def test_written(written: object, expected: tuple[AnyObligation, ...]) -> None:
    assert read_obligations(written, ()) == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("zero_retentio", "did you mean `zero_retention`?"),
        ("redact", "needs settings"),
        ({"no_batch": "x"}, "has no settings"),
        ({"redakt": "email"}, "did you mean `redact`?"),
        ({"redact": "emial"}, "did you mean `email`?"),
        ({"redact": []}, "needs kinds of identifiers"),
        ({"tier": {"floor": "huge"}}, "tier `huge` is not known"),
        ({"tier": {"floor": "large", "ceiling": "small"}}, "no tier satisfies both"),
        ({"tier": {"flor": "large"}}, "did you mean `floor`?"),
        ({"tier": "large"}, "it needs `floor` or `ceiling`"),
        ({"max_price": {"input": "cheap"}}, "US dollars"),
        ({"max_price": {"input": "-1"}}, "not negative"),
        ({"max_price": {"input": "nan"}}, "not negative"),
        ({"record_retention": {"min": "2y", "max": "1y"}}, "above the maximum"),
        ({"record_retention": {"min": "long"}}, "as 30s or 90d"),
        ([[]], "is a word or"),
        ({"tier": {"floor": ["large"]}}, "single value"),
    ],
)
def test_refused(written: object, message: str) -> None:
    with pytest.raises(Refused) as caught:
        read_obligations(written, ("rules", 0))
    assert message in caught.value.message
    assert caught.value.path[:2] == ("rules", 0)


def test_every_identifier_can_be_written() -> None:
    assert read_obligations({"redact": sorted(IDENTIFIERS)}, ()) == (Redact(IDENTIFIERS),)
