"""A request's head that came before on its connection: known again by its bytes, not parsed again.

Clients write the same head for every request but for the length of its body. A head that equals
the one before it, byte for byte, means what that one meant; so does one with other digits in its
`content-length`. The parser sees nothing of such a request: it has stood at the beginning of one
all the time. Whatever else comes, it takes.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from router.inbound.door import Door
from router.inbound.exchange import RequestHead

LONGEST: Final = 8 << 10
"""Bytes of a head that is kept."""
PATIENCE: Final = 8
"""Heads that differ, one after the other, until none is kept any more."""
_LENGTH: Final = b"content-length"
_NAMED: Final = b"\r\ncontent-length:"
_END: Final = b"\r\n\r\n"
_LINE: Final = b"\r\n"
_DIGITS: Final = 9
_FRAMING: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade"})


class Heads:
    """The last head of one connection, as the bytes before the digits of its `content-length` and
    those behind them.

    What it holds of a client's key it holds as long as uvicorn's own list of headers does.
    """

    __slots__ = ("_after", "_before", "_digits", "_head", "_left", "_place", "_seen")

    def __init__(self) -> None:
        self._before = self._after = self._digits = b""
        self._place = 0
        self._head: RequestHead | None = None
        self._left = PATIENCE
        self._seen: tuple[bytes, RequestHead] | None = None

    def again(self, data: bytes) -> tuple[RequestHead, int, int] | None:
        """What `data` begins with, if it is known: the head, where its body begins, and how long
        that is."""
        if self._seen is not None:
            seen, self._seen = self._seen, None
            self._study(*seen)
        known, before = self._head, self._before
        if known is None or not data.startswith(before):
            return None
        end = data.find(_LINE, len(before))
        digits = data[len(before) : end]
        if not data.startswith(self._after, end):
            return None
        if digits != self._digits:
            if not digits.isdigit() or len(digits) > _DIGITS:
                return None
            pairs = list(known.headers)
            pairs[self._place] = (_LENGTH, digits)
            known = self._head = RequestHead(known.method, known.path, known.query, pairs)
            self._digits = digits
        self._left = PATIENCE
        return known, end + len(self._after), int(digits)

    def learn(self, data: bytes, head: RequestHead) -> None:
        """Keep the head of a request with which `data` begins, as the parser read it.

        It is looked into when another one comes: many connections carry but one.
        """
        end = data.find(_END)
        kept = self._left and 0 < end <= LONGEST
        self._seen = (data[: end + len(_END)], head) if kept else None
        self._head = None

    def _study(self, data: bytes, head: RequestHead) -> None:
        names, lower = [name for name, _ in head.headers], data.lower()
        if not _FRAMING.isdisjoint(names) or names.count(_LENGTH) != 1:
            return
        if lower.count(_NAMED) != 1:
            return
        self._left -= 1
        place, at = names.index(_LENGTH), lower.find(_NAMED) + len(_NAMED)
        digits = head.headers[place][1]
        at += len(data) - at - len(data[at:].lstrip(b" "))
        after = at + len(digits)
        if not digits.isdigit() or data[at:after] != digits or data[after : after + 2] != _LINE:
            return
        self._before, self._after = data[:at], data[after:]
        self._digits, self._place, self._head = digits, place, head

    def forget(self) -> None:
        """Something else came."""
        self._head = self._seen = None


class Recalling(Door):
    """The door, with the heads that it knows taken past the parser."""

    _fresh = True
    """Whether the parser stands at the beginning of a request."""
    _begun = 0
    """Requests that began in the bytes that it is given."""
    _owed = 0
    """Bytes of a body that are still to come past the parser."""
    _heads: Heads

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there, of whom nothing is known."""
        super().connection_made(transport)
        self._heads = Heads()

    def known(self, head: RequestHead, body: bytes | None) -> None:
        """A request begins whose head is that of the last one that `parsed` told; with its body,
        where that is here whole."""
        raise NotImplementedError

    def parsed(self) -> RequestHead | None:
        """The head of the newest request, if it is one whose like may be taken past the parser."""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._owed:
            self._body(data)
            return
        fresh = self._fresh
        cycle: RequestResponseCycle | None = self.cycle
        alone = fresh and (cycle is None or cycle.response_complete)
        found = self._heads.again(data) if alone else None
        if found is not None:
            known, begins, length = found
            body = data[begins:]
            if len(body) == length:
                self.known(known, body)
                return
            self._owed = length
            self.known(known, None)
            self._body(body)
            return
        self._begun = 0
        super().data_received(data)
        if self._begun:
            head = self.parsed() if fresh and self._begun == 1 else None
            if head is None:
                self._heads.forget()
            else:
                self._heads.learn(data, head)

    def _body(self, data: bytes) -> None:
        """Bytes of a body past the parser, and what follows it."""
        more = data[self._owed :]
        mine = data[: self._owed] if more else data
        self._owed -= len(mine)
        if mine:
            self.on_body(mine)
        if not self._owed:
            self.on_message_complete()
            if more:
                self.data_received(more)
