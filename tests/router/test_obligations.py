"""Every obligation kind has an enforcer, and what is changed only shrinks."""

from __future__ import annotations

import pytest

from policies.model import Policy, Rule
from policies.obligations import KINDS, AnyObligation, NoStore, RecordRetention, Redact, TierRange
from router.config import ConfigError
from router.obligations import apply, check, encode, enforced
from tests.router.made import ATLAS

YEAR = 31557600.0


def policy(*obligations: AnyObligation) -> Policy:
    return Policy(ATLAS, rules=(Rule("r", obligations=obligations),))


def test_what_is_not_enforced_stops_the_start() -> None:
    for kind in sorted(set(KINDS) - enforced()):
        with pytest.raises(ConfigError, match=f"`{kind}` has no enforcer"):
            check(policy(KINDS[kind]()), None)


def test_enforced_kinds_pass() -> None:
    check(policy(NoStore(), TierRange()), None)


def test_records_must_be_kept_long_enough_and_not_too_long() -> None:
    check(policy(RecordRetention(least=YEAR)), (2 * YEAR, 2 * YEAR))
    check(policy(RecordRetention(least=YEAR)), None)
    with pytest.raises(ConfigError, match="kept longer"):
        check(policy(RecordRetention(least=3 * YEAR)), (2 * YEAR, 2 * YEAR))
    with pytest.raises(ConfigError, match="deleted in time"):
        check(policy(RecordRetention(most=YEAR)), (2 * YEAR, 2 * YEAR))
    with pytest.raises(ConfigError, match="deleted in time"):
        check(policy(RecordRetention(most=YEAR)), None)


def test_no_store_turns_storage_off_and_leaves_the_rest() -> None:
    body = {"model": "m", "store": True, "messages": []}
    assert apply([NoStore()], body) == {"model": "m", "store": False, "messages": []}
    assert body["store"] is True
    plain = {"model": "m"}
    assert apply([NoStore()], plain) is plain
    assert apply([Redact(), TierRange()], plain) is plain
    assert encode({"a": 1}) == b'{"a":1}'
