"""Connections beyond those that a process may have: told so at once, so that its log, its lookups
and its requests to endpoints keep the last file descriptors."""

from __future__ import annotations

import asyncio
from typing import Final

from router.answers.outcomes import overcrowded
from router.inbound.door import last_answer
from router.inbound.heads import Recalling
from router.transport.room import CLIENTS, has_room

LINGER: Final = 1.0
"""Seconds that a refused client has to read why: to close on what it wrote would take that back."""


class Crowded(Recalling):
    """The door of clients, which closes before all descriptors are taken."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there."""
        super().connection_made(transport)
        found = transport.get_extra_info("socket")
        number = -1 if found is None else found.fileno()
        if has_room(number, CLIENTS):
            return
        self.flow.pause_reading()
        transport.write(last_answer(overcrowded()))
        if has_room(number, CLIENTS // 2):
            self.loop.call_later(LINGER, transport.close)
        else:
            transport.close()
