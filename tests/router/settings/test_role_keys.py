"""The role's keys reach an attempt, or nothing is sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.providers.base import AwsKeys, Misconfigured, Target
from router.settings.credentials import INSTANCE_ROLE
from router.settings.role_keys import CredentialBoard
from router.transport.messages import Fate
from tests.router.made import endpoint

KEYS = AwsKeys("AKIDEXAMPLE", "secret", "session")
ROLE = replace(endpoint("a"), credentials=INSTANCE_ROLE)


def test_an_endpoint_without_the_role_keeps_its_own() -> None:
    target = Target("http://a", AwsKeys("own", "keys"))
    board = CredentialBoard()
    board.put(KEYS, 100.0)
    assert board.filled(endpoint("b"), target, 1.0) is target


def test_the_role_s_keys_are_put_in_until_they_end() -> None:
    board = CredentialBoard()
    board.put(KEYS, 100.0)
    assert board.filled(ROLE, Target("http://a"), 99.0).credential is KEYS
    assert board.keys(100.0) is None


@pytest.mark.parametrize("now", [100.0, 101.0])
def test_without_good_keys_nothing_is_sent(now: float) -> None:
    board = CredentialBoard()
    with pytest.raises(Misconfigured) as caught:
        board.filled(ROLE, Target("http://a"), now)
    assert caught.value.fate is Fate.NOT_SENT
    board.put(KEYS, 100.0)
    with pytest.raises(Misconfigured):
        board.filled(ROLE, Target("http://a"), now)
    assert "secret" not in repr(board.filled(ROLE, Target(), 1.0))
