"""The role's keys are renewed before they end, and only while somebody uses them."""

from __future__ import annotations

import pytest

from router.providers.base import AwsKeys
from router.settings.role_keys import CredentialBoard
from router.watch.renewal import AHEAD, Fetched, NoRole, RoleWatch


class Role:
    """A role that gives out numbered keys, each good for an hour."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.given = 0
        self.fails = False
        self.wanted = True
        self.board = CredentialBoard()
        self.watch = RoleWatch(self.board, lambda: self.now, self.ask, lambda: self.wanted)

    def ask(self) -> Fetched:
        if self.fails:
            raise NoRole("nobody there")
        self.given += 1
        return Fetched(AwsKeys(f"key-{self.given}", "secret"), self.now + 3600)

    @property
    def key(self) -> str | None:
        keys = self.board.keys(self.now)
        return None if keys is None else keys.access_key


async def test_keys_are_renewed_ahead_of_their_end() -> None:
    role = Role()
    await role.watch.look()
    assert role.key == "key-1"
    role.now += 3600 - AHEAD - 1
    await role.watch.look()
    assert role.key == "key-1"
    role.now += 1
    await role.watch.look()
    assert role.key == "key-2"


async def test_when_they_cannot_be_had_the_old_ones_serve_to_their_end() -> None:
    role = Role()
    await role.watch.look()
    role.fails = True
    role.now += 3599
    with pytest.raises(NoRole):
        await role.watch.look()
    assert role.key == "key-1"
    role.now += 1
    assert role.key is None


async def test_nobody_is_asked_for_keys_that_nobody_uses() -> None:
    role = Role()
    role.wanted = False
    await role.watch.look()
    assert role.given == 0
