"""Connections that wait at the listening socket, taken together.

libuv, and so uvloop, takes one connection a turn of the loop since its version 1.45. Where turns
are long, because many requests are under way on connections that are there, who comes newly would
wait as many turns as others came before: at 50 ms a turn two hundred of them ten seconds.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

AT_ONCE: Final = 64
"""Connections taken in one turn beside the loop's own; more of them wait for the next turn."""


class Backlog:
    """What waits at one listening socket that the loop serves, too.

    Args:
        listening: the socket; it does not block.
    """

    __slots__ = ("_due", "_listening", "_opening")

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._due = False
        self._opening: set[asyncio.Task[object]] = set()

    def look(self, made: Callable[[], asyncio.Protocol]) -> None:
        """A connection came: take those that wait behind it, at the end of this turn.

        Args:
            made: gives the protocol of one more connection.
        """
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._take, made)

    def _take(self, made: Callable[[], asyncio.Protocol]) -> None:
        self._due = False
        loop = asyncio.get_running_loop()
        for _ in range(AT_ONCE):
            try:
                found, _ = self._listening.accept()
            except OSError:  # nobody waits; the loop itself sees to all else, as to descriptors
                return
            found.setblocking(False)
            opening = loop.create_task(self._open(loop, made, found))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    async def _open(
        self, loop: asyncio.AbstractEventLoop, made: Callable[[], asyncio.Protocol],
        found: socket.socket,
    ) -> None:  # fmt: skip
        try:
            await loop.connect_accepted_socket(made, found)
        except OSError:  # the client has left already
            found.close()
