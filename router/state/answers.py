"""Answers kept under idempotency keys: the Protocol, and one process's memory.

A key is `open` while its request runs, then holds the answer, or is `spent`: carried out, with an
answer that is not kept. It is forgotten when its time is over. Nothing is dropped before: where a
key would have to go, a new one is refused instead, and of old answers only the bytes go.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

PART: Final = 4
"""An owner has at most so many times the places that are free: alone four in five of all, and
beside another one that takes what it can, four in nine. Some are left for whoever comes then."""
Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer as the client got it; `id` names its request's entries in the log.

    `footprint` is where it was made, kept and operated, as `router.narrowing.drifted.shown` writes
    it: an endpoint's name may be another's by the time it is given again. `sent` is the SHA-256,
    hex, of what the endpoint was sent.
    """

    id: str
    endpoint: str
    footprint: Mapping[str, list[str]]
    sent: str
    status: int
    headers: Headers
    body: bytes


class Taken(Exception):
    """The key can't be used by this request now."""


class InFlight(Taken):
    """A request with this key is being carried out."""


class Differs(Taken):
    """The key stands for another request."""


class Spent(Taken):
    """The request was carried out; its answer is not kept."""


class Unavailable(Taken):
    """Whether the key was used can't be found out, or nothing more can be kept."""


class Answers(Protocol):
    """Where answers are kept."""

    async def begin(
        self, key: str, digest: str, token: str, lease: float, owner: str = ""
    ) -> Answer | None:
        """Take a key for a request of this digest; `None`: it is this request's, for `lease`
        seconds at most. An answer is the one that was given before.

        Args:
            owner: whose keys share what room there is.

        Raises:
            Taken: one of its kinds.
        """
        ...

    def keep(self, key: str, token: str, answer: Answer | None) -> None:
        """The request was carried out; without an answer none is kept. Never raises."""
        ...

    def release(self, key: str, token: str) -> None:
        """The request was not carried out: the next one with this key is. Never raises."""
        ...

    async def close(self) -> None:
        """Let what is on its way end, if that is soon."""
        ...


@dataclass(slots=True)
class _Held:
    digest: str
    token: str
    until: float
    owner: str
    spent: bool = False
    answer: Answer | None = None


class MemoryAnswers:
    """See `Answers`; of one process.

    Args:
        clock: monotonic seconds.
        window: seconds that a key counts for, after its request.
        most: keys at a time.
        size: bytes of answers at a time; beyond it the oldest go of the owner that has most, and
            their keys are spent: nobody's answers go for another's who has more.
    """

    def __init__(self, clock: Callable[[], float], window: float, most: int, size: int) -> None:
        self._clock = clock
        self._window = window
        self._most = most
        self._size = size
        self._held: dict[str, _Held] = {}
        self._open: set[str] = set()
        self._owned: Counter[str] = Counter()
        # In the order of their end, which is that in which they are forgotten; those with bytes.
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._whole: dict[str, OrderedDict[str, int]] = {}
        self._sizes: Counter[str] = Counter()
        self._kept = 0

    async def begin(
        self, key: str, digest: str, token: str, lease: float, owner: str = ""
    ) -> Answer | None:
        """See `Answers`."""
        now = self._clock()
        known = self._held.get(key)
        if known is not None and known.until > now:
            return _known(known, digest)
        self._sweep(now, key)
        if self._has_its_part(owner):
            self._abandon(now)
        if self._has_its_part(owner):
            mine, free = self._owned[owner], self._most - len(self._held)
            raise Unavailable(f"{mine} idempotency keys are in use, and {free} left for others")
        self._held[key] = _Held(digest, token, now + lease, owner)
        self._owned[owner] += 1
        self._open.add(key)
        return None

    def keep(self, key: str, token: str, answer: Answer | None) -> None:
        """See `Answers`."""
        held = self._held.get(key)
        if held is None or held.token != token:
            return
        held.until, held.token = self._clock() + self._window, ""
        held.spent, held.answer = answer is None, answer
        self._open.discard(key)
        self._ended[key] = None
        if answer is not None:
            self._whole.setdefault(held.owner, OrderedDict())[key] = len(answer.body)
            self._sizes[held.owner] += len(answer.body)
            self._kept += len(answer.body)
        while self._kept > self._size:
            most = max(self._sizes, key=self._sizes.__getitem__)
            oldest = next(iter(self._whole[most]))
            self._drop(most, oldest)
            self._held[oldest].spent, self._held[oldest].answer = True, None

    def release(self, key: str, token: str) -> None:
        """See `Answers`."""
        held = self._held.get(key)
        if held is not None and held.token == token:
            self._forget(key)

    def _drop(self, owner: str, key: str) -> None:
        """Count an answer's bytes no longer, if it has some."""
        mine = self._whole.get(owner)
        if mine is None or (size := mine.pop(key, None)) is None:
            return
        self._kept -= size
        self._sizes[owner] -= size
        if not mine:
            del self._whole[owner], self._sizes[owner]

    def _sweep(self, now: float, key: str) -> None:
        """Forget whose time is over: this key, and those whose request ended."""
        if key in self._held:
            self._forget(key)
        while self._ended and self._held[oldest := next(iter(self._ended))].until <= now:
            self._forget(oldest)

    def _abandon(self, now: float) -> None:
        """Forget keys whose request never ended, and never will."""
        for key in [one for one in self._open if self._held[one].until <= now]:
            self._forget(key)

    def _has_its_part(self, owner: str) -> bool:
        return self._owned[owner] >= PART * (self._most - len(self._held))

    def _forget(self, key: str) -> None:
        owner = self._held.pop(key).owner
        self._owned[owner] -= 1
        if not self._owned[owner]:
            del self._owned[owner]
        self._open.discard(key)
        self._ended.pop(key, None)
        self._drop(owner, key)

    async def close(self) -> None:
        """See `Answers`."""


def _known(held: _Held, digest: str) -> Answer:
    if held.digest != digest:
        raise Differs
    if held.spent:
        raise Spent
    if held.answer is None:
        raise InFlight
    return held.answer


class NoAnswers:
    """See `Answers`; for several workers without a store that they share: each key is refused."""

    async def begin(
        self, key: str, digest: str, token: str, lease: float, owner: str = ""
    ) -> Answer | None:
        """See `Answers`."""
        raise Unavailable("several workers share no memory: the operator must set `state.redis`")

    def keep(self, key: str, token: str, answer: Answer | None) -> None:
        """See `Answers`."""

    def release(self, key: str, token: str) -> None:
        """See `Answers`."""

    async def close(self) -> None:
        """See `Answers`."""
