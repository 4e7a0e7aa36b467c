"""Questions and answers between a supervisor and one of its workers.

Both ends hold one side of a socket pair made before the worker began: it has no name that anybody
else could open, and its end tells either side that the other is gone, however it died. Either side
asks; answers come in any order. Values travel pickled: both ends are this program, of one version.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from router.errors import RequestError

HEAD: Final = struct.Struct(">I")
PATIENCE: Final = 30.0
"""Seconds an answer may take, unless said otherwise."""

T = TypeVar("T")
Answering = Callable[[object], Awaitable[object]]
"""A message → the answer. Raises RequestError; anything else is told by its type and words."""


class Gone(Exception):
    """The other side has ended, or does not answer."""


@dataclass(frozen=True, slots=True)
class _Asked:
    number: int
    message: object


@dataclass(frozen=True, slots=True)
class _Answered:
    number: int
    value: object


@dataclass(frozen=True, slots=True)
class _Refused:
    """A RequestError by its parts, or with no code the words of another error."""

    number: int
    code: str
    message: str
    retry_after: float | None


class Channel:
    """One side. `run` reads until the other side is gone; `answer` answers what it asks."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answering
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._answer = answer
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._number = 0
        self._gone = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def ask(self, message: object, kind: type[T], patience: float = PATIENCE) -> T:
        """Ask, and wait for the answer, which is of one kind.

        Raises:
            RequestError: the other side refused.
            Gone: it ended, or took longer than `patience` seconds.
        """
        name = type(message).__name__
        if self._gone:
            raise Gone(f"nobody is there to be asked `{name}`")
        self._number += 1
        number = self._number
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(_Asked(number, message))
            async with asyncio.timeout(patience):
                found = await waiting
        except TimeoutError:
            raise Gone(f"no answer to `{name}` in {patience:g} s") from None
        finally:
            self._waiting.pop(number, None)
        if not isinstance(found, kind):
            raise TypeError(f"`{name}` was answered with {type(found).__name__}")
        return found

    async def run(self) -> None:
        """Read until the other side is gone; then whoever waits hears so."""
        try:
            while True:
                size = HEAD.unpack(await self._reader.readexactly(HEAD.size))[0]
                self._take(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._end()

    def close(self) -> None:
        """Hang up."""
        self._writer.close()

    def _take(self, data: bytes) -> None:
        found: object = pickle.loads(data)  # noqa: S301 - our own other half, over our own pair
        if isinstance(found, _Asked):
            task = asyncio.get_running_loop().create_task(self._answered(found))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        if not isinstance(found, _Answered | _Refused):
            raise TypeError("the other side speaks another version of this program")
        waiting = self._waiting.get(found.number)
        if waiting is None or waiting.done():
            return  # whoever asked has given up
        if isinstance(found, _Answered):
            waiting.set_result(found.value)
        else:
            waiting.set_exception(_raised(found))

    async def _answered(self, asked: _Asked) -> None:
        said: _Answered | _Refused
        try:
            said = _Answered(asked.number, await self._answer(asked.message))
        except RequestError as error:
            said = _Refused(asked.number, error.code, error.message, error.retry_after)
        except Exception as error:  # noqa: BLE001 - told to whoever asked
            said = _Refused(asked.number, "", f"{type(error).__name__}: {error}", None)
        if not self._gone:
            self._send(said)

    def _send(self, message: _Asked | _Answered | _Refused) -> None:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        self._writer.write(HEAD.pack(len(data)) + data)

    def _end(self) -> None:
        self._gone = True
        self._writer.close()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Gone("the other side ended"))


def _raised(found: _Refused) -> Exception:
    if not found.code:
        return RequestError("internal", found.message)
    return RequestError(found.code, found.message, retry_after=found.retry_after)


async def over(pair: socket.socket, answer: Answering) -> Channel:
    """A channel over one side of a connected pair."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 20)
    pair.setblocking(False)
    transport, protocol = await loop.connect_accepted_socket(
        lambda: asyncio.StreamReaderProtocol(reader), pair
    )
    return Channel(reader, asyncio.StreamWriter(transport, protocol, reader, loop), answer)
