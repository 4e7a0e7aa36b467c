"""Renews the keys of the instance role before they end. Who is asked is in `router.watch.roles`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from router.providers.base import AwsKeys
from router.settings.role_keys import CredentialBoard

AHEAD: Final = 600.0
"""Seconds before their end from which the keys are renewed."""


class NoRole(Exception):
    """The role's keys can't be had now; names who was asked, never what it said."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """Keys, and when they end, in epoch seconds."""

    keys: AwsKeys
    expires: float


@dataclass(frozen=True, slots=True)
class RoleWatch:
    """Keeps the board filled. `wall` gives epoch seconds; `ask` blocks, and runs in a thread."""

    board: CredentialBoard
    wall: Callable[[], float]
    ask: Callable[[], Fetched]
    wanted: Callable[[], bool]

    async def look(self) -> None:
        """Renew what ends soon, while some endpoint uses the role.

        Raises:
            NoRole: the keys can't be had; those on the board serve until they end.
        """
        if not self.wanted() or self.board.expires - self.wall() > AHEAD:
            return
        found = await asyncio.to_thread(self.ask)
        self.board.put(found.keys, found.expires)
