"""One worker's place under a supervisor: its socket, its process, and when to start the next.

The socket outlives the process. Connections that wait in a dead worker's queue are taken by the
next one, which is started at once. Not for ever: when it takes long to begin (its log is long) and
others serve, the socket is closed under it, and it opens another when it serves. So it is too when
a start fails: then starts are spaced out, and while others serve nobody waits for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from router.metrics import Readout
from router.supervisor.channel import Channel, over
from router.supervisor.merged import NOTHING
from router.supervisor.orders import Pulse

State = Literal["starting", "serving", "stopping", "down"]
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
STEADY: Final = 30.0
"""Seconds a worker must have served for its end to count as a first one."""

Answering = Callable[["Slot", object], Awaitable[object]]


@dataclass(slots=True)
class Slot:
    """What the supervisor knows of one worker; `number` counts from 1.

    `bind` gives a socket of the public address, which listens if it is told so. `given` is the
    digest of the snapshot in its orders, `None` before it has any. `unheard`: it serves, and others
    that know what was judged before have not told it yet.
    """

    number: int
    log: str
    bind: Callable[[bool], socket.socket]
    door: socket.socket | None = None
    state: State = "down"
    process: asyncio.subprocess.Process | None = None
    channel: Channel | None = None
    pulse: Pulse | None = None
    since: float = 0.0
    heard: float = 0.0
    starts: int = 0
    failures: int = 0
    reason: str = ""
    given: str | None = None
    unheard: bool = False
    read: Readout = field(default_factory=lambda: NOTHING)

    @property
    def pid(self) -> int | None:
        """Of the running process."""
        return None if self.process is None else self.process.pid

    async def start(self, answer: Answering, now: float, alone: bool) -> None:
        """Start a process; it asks for its orders over the channel.

        Where no socket is left of the one before, it opens its own when it serves; if it is `alone`
        clients wait for it from now on, since nobody else would answer them.

        Raises:
            OSError, ConfigError: it can't be started, or the address is taken.
        """
        door = self.door or self.bind(alone)
        if alone:
            self.door = door
        mine, other = socket.socketpair()
        numbers = (other.fileno(), door.fileno())
        try:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "router.supervisor.worker", *map(str, numbers),
                stdin=asyncio.subprocess.DEVNULL, pass_fds=numbers, start_new_session=True,
                env=dict(os.environ),
            )  # fmt: skip
        except BaseException:
            mine.close()
            raise
        finally:
            other.close()
            if self.door is None:
                door.close()
        self.channel = await over(mine, lambda message: answer(self, message))
        self.state, self.since, self.heard = "starting", now, now
        self.starts += 1
        self.pulse = None

    def took(self, pulse: Pulse, now: float) -> None:
        """The worker answered."""
        self.pulse, self.read, self.heard = pulse, pulse.read, now
        if now - self.since > STEADY:
            self.failures = 0

    def ended(self, now: float) -> float:
        """The process is gone; gives the seconds to wait before the next one.

        The first end is followed at once; whoever waits in the socket's queue is served then.
        """
        self.failures = 1 if self._was_steady(now) else self.failures + 1
        self.state, self.process, self.pulse = "down", None, None
        if self.channel is not None:
            self.channel.close()
            self.channel = None
        if self.failures == 1:
            return 0.0
        self.shut()
        return float(min(FIRST_PAUSE * 2 ** min(self.failures - 2, 10), LONGEST_PAUSE))

    def _was_steady(self, now: float) -> bool:
        return self.state == "serving" and now - self.since > STEADY

    def shut(self) -> None:
        """Take no connection here any more."""
        if self.door is not None:
            self.door.close()
            self.door = None

    def turn_away(self) -> None:
        """Reset who waits at the socket, and leave new connections to the others'.

        The process that begins has the socket too; see `router.supervisor.worker.reopen`.
        """
        if self.door is not None:
            self.door.shutdown(socket.SHUT_RDWR)
            self.shut()

    def kill(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGKILL)
