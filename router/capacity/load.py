"""Tokens in flight, per replica: what this router has sent, or is about to, and not yet seen end.

Of those, the prompts whose answers have not begun are told apart: they are what a newcomer's
first token waits for. An answer under way holds memory, and slows the engine a little.

A request is counted from the moment that a replica is chosen for it, not from the moment that it
is sent: between the two the region log is written, and everybody who chooses meanwhile must see
the choice, or all of them make the same one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from router.capacity.bursts import Paid


class Berth:
    """One replica's open requests: how many, their tokens, and of these the prompts whose answers
    have not begun. `work` of those was to compute at loop time `at`, for `unopened` requests.

    `changed`, if set, gets the berth itself whenever its tokens change.
    """

    __slots__ = ("at", "changed", "prompts", "requests", "tokens", "unopened", "work")

    def __init__(self) -> None:
        self.requests = self.tokens = self.prompts = self.unopened = 0
        self.work = self.at = 0.0
        self.changed: set[object] | None = None

    def left(self, now: float, rate: float) -> float:
        """See `InFlight.work`."""
        if not self.prompts:
            return 0.0
        work = self.work - (now - self.at) * rate
        if work < 0:
            return 0.0
        return work if work < self.prompts else self.prompts  # noqa: FURB136 - looked at often


_NOTHING: Final = Berth()


class InFlight:
    """Estimated tokens of open requests by replica key. Exact for this process.

    `on_leave`, if set, is called whenever a request has left a replica: somebody may wait for it;
    `on_open` with a request whose first token came, and the seconds since it was counted.
    """

    __slots__ = ("_berths", "_count", "_total", "on_leave", "on_open")

    def __init__(self) -> None:
        self._berths: dict[str, Berth] = {}
        self._total = self._count = 0
        self.on_leave: Callable[[], None] | None = None
        self.on_open: Callable[[Held, float], None] | None = None

    def berth(self, key: str) -> Berth:
        """A replica's own count, the same object until it is forgotten: for those who look often,
        and only look."""
        found = self._berths.get(key)
        if found is None:
            found = self._berths[key] = Berth()
        return found

    def known(self, key: str) -> Berth:
        """The same, to look at once: of a replica without one, an empty one that is nobody's."""
        return self._berths.get(key, _NOTHING)

    def forget(self, keep: frozenset[str]) -> None:
        """Drop replicas that are gone and where nothing is open."""
        for key in self._berths.keys() - keep:
            if not self._berths[key].requests:
                del self._berths[key]

    def tokens(self, key: str) -> int:
        """Tokens in flight at a replica."""
        return self._berths.get(key, _NOTHING).tokens

    def work(self, key: str, now: float, rate: float) -> float:
        """Prompt tokens that a replica has probably yet to compute.

        At most those whose answers have not begun; less by what it computes in the time since,
        at `rate` tokens a second (0 where that is not known).
        """
        return self._berths.get(key, _NOTHING).left(now, rate)

    @property
    def count(self) -> int:
        """Requests in flight at all replicas."""
        return self._count

    @property
    def mean(self) -> float:
        """Tokens of a request in flight, on average; 0 when there is none."""
        return self._total / self._count if self._count else 0.0

    def requests(self, key: str) -> int:
        """Requests in flight at a replica."""
        return self._berths.get(key, _NOTHING).requests

    def enter(
        self, key: str, tokens: int, prompt: int = 0, now: float = 0.0, rate: float = 0.0
    ) -> Held:
        """Count a request, of one token at least, until the returned hold is closed.

        Args:
            prompt: those of its tokens that are computed before its first one comes out.
            now, rate: as in `work`.
        """
        berth = self.berth(key)
        tokens = max(tokens, 1)
        ahead = berth.work = berth.left(now, rate) + prompt
        berth.at = now
        self._total += tokens
        self._count += 1
        berth.prompts += prompt
        berth.tokens += tokens
        berth.requests += 1
        if prompt:
            berth.unopened += 1
        if berth.changed is not None:
            berth.changed.add(berth)
        return Held(self, berth, key, tokens, prompt, ahead, now)

    def leave(self, berth: Berth, tokens: int) -> None:
        """Take a request's tokens off a replica."""
        self._total -= tokens
        self._count -= 1
        berth.requests -= 1
        berth.tokens -= tokens
        if berth.changed is not None:
            berth.changed.add(berth)
        if self.on_leave is not None:
            self.on_leave()

    @property
    def keys(self) -> tuple[str, ...]:
        """Replicas with something in flight."""
        return tuple(key for key, berth in self._berths.items() if berth.requests)


class Held:
    """One request's tokens at one replica; closing twice counts once.

    `ahead`: prompt tokens that were to compute before its answer, its own among them; `elsewhere`:
    those of its prompt that another endpoint is to compute first, which are no work here; `paid`:
    what was taken of its endpoint's burst budget, where that has one.
    """

    __slots__ = ("_at", "_berth", "_prompt", "ahead", "elsewhere", "key", "paid", "since", "tokens")

    def __init__(
        self, at: InFlight, berth: Berth, key: str, tokens: int, prompt: int, ahead: float,
        since: float,
    ) -> None:  # fmt: skip
        self._at: InFlight | None = at
        self._berth = berth
        self._prompt = prompt
        self.key = key
        self.tokens = tokens
        self.ahead = ahead
        self.since = since
        self.elsewhere = 0
        self.paid: Paid | None = None

    def opened(self, now: float) -> None:
        """A stream's first token came; told twice counts once."""
        at = self._at
        if at is not None and self._computed() and at.on_open is not None:
            at.on_open(self, now - self.since)

    def _computed(self) -> bool:
        """Its prompt is no work any more; false when it was none."""
        prompt, self._prompt = self._prompt, 0
        if prompt:
            self._berth.prompts -= prompt
            self._berth.unopened -= 1
        return prompt > 0

    def close(self, ran: bool = True) -> None:
        """The request has left the replica; `ran`: it may have been carried out there."""
        at, self._at = self._at, None
        if at is None:
            return
        if self.paid is not None:
            self.paid.close(ran)
        self._computed()
        at.leave(self._berth, self.tokens)
