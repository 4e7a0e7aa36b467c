"""Bytes to one peer that answers nothing: syslog over TCP or TLS.

A connection per delivery. TCP tells the sender nothing of what the other side's program has read,
so the end is the acknowledgement: we end our side; the peer, once it has read everything, ends its
own. An end that comes earlier, a reset, or none in time is a failure: the same bytes go again.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
import termios
from typing import Final

from router.transport.dial import Dialer, Resolver, SystemResolver
from router.transport.messages import ConnectionLost, Fate, Origin

HIGH_WATER: Final = 64 << 10
"""Bytes that may wait in this process; what is behind them waits where it comes from."""
_LOOK: Final = 0.01


class OneWay:
    """Delivers to origins; `https` stands for TLS, `http` for plain TCP."""

    def __init__(self, resolver: Resolver | None = None) -> None:
        self._dialer = Dialer(resolver or SystemResolver())

    async def deliver(self, origin: Origin, data: bytes, until: float) -> None:
        """Hand bytes over, by `until` (loop time).

        Raises:
            TransportError: not known to be read; say it again.
        """
        line = await self._dialer.dial(origin, _Line, until)
        try:
            async with asyncio.timeout_at(until):
                await line.hand_over(data)
        except TimeoutError:
            raise ConnectionLost("it was not taken in time", Fate.UNKNOWN) from None
        finally:
            line.abort()


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._room = asyncio.Event()
        self._room.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready to write."""
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]  # it is one
        self._transport.set_write_buffer_limits(HIGH_WATER)

    def pause_writing(self) -> None:
        """Enough waits."""
        self._room.clear()

    def resume_writing(self) -> None:
        """There is room again."""
        self._room.set()

    def eof_received(self) -> bool:
        """The peer's end; plain TCP stays half open, to see what it did not take."""
        self._end("")
        return self._transport.can_write_eof()

    def connection_lost(self, exc: Exception | None) -> None:
        """Broken, or both ends closed."""
        self._end("" if exc is None else f"the connection broke: {type(exc).__name__}")
        self._room.set()

    def _end(self, why: str) -> None:
        if not self._over.done():
            self._over.set_result(why)

    async def hand_over(self, data: bytes) -> None:
        """Write all of it and wait for the peer's end. Raises ConnectionLost."""
        for start in range(0, len(data), HIGH_WATER):
            await self._room.wait()
            self._refuse_early_end()
            self._transport.write(data[start : start + HIGH_WATER])
        await self._room.wait()
        self._refuse_early_end()
        half = self._transport.can_write_eof()
        if half:
            self._transport.write_eof()
        else:  # TLS has no half end: its closing handshake stands for it
            self._transport.close()
        why = await self._over
        if why:
            raise ConnectionLost(why, Fate.UNKNOWN)
        while half and not self._taken():  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(_LOOK)

    def _refuse_early_end(self) -> None:
        if self._over.done():
            raise ConnectionLost("the peer ended before all was sent", Fate.UNKNOWN)

    def _taken(self) -> bool:
        """Whether the peer's system has acknowledged every byte. Raises ConnectionLost."""
        gone = self._transport.is_closing() or self._sock.fileno() < 0
        if gone or self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise ConnectionLost("the connection broke before all was taken", Fate.UNKNOWN)
        answer = fcntl.ioctl(self._sock.fileno(), termios.TIOCOUTQ, struct.pack("i", 0))
        return struct.unpack("i", answer) == (0,)

    def abort(self) -> None:
        """Give it up."""
        self._transport.abort()
