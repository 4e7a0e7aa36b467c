"""Tokens in flight, per replica: what this router has sent, or is about to, and not yet seen end.

Of those, the prompts whose answers have not begun are told apart: they are what a newcomer's
first token waits for. An answer under way holds memory, and slows the engine a little.

A request is counted from the moment that a replica is chosen for it, not from the moment that it
is sent: between the two the region log is written, and everybody who chooses meanwhile must see
the choice, or all of them make the same one.
"""

from __future__ import annotations

from collections.abc import Callable


class InFlight:
    """Estimated tokens of open requests by replica key. Exact for this process.

    `on_leave`, if set, is called whenever a request has left a replica: somebody may wait for it;
    `on_open` with a request whose first token came, and the seconds since it was counted.
    """

    __slots__ = (
        "_prompts",
        "_requests",
        "_tokens",
        "_total",
        "_unread",
        "_work",
        "on_leave",
        "on_open",
    )

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._requests: dict[str, int] = {}
        self._prompts: dict[str, int] = {}
        self._work: dict[str, tuple[float, float]] = {}
        self._total = self._unread = 0
        self.on_leave: Callable[[], None] | None = None
        self.on_open: Callable[[Held, float], None] | None = None

    def tokens(self, key: str) -> int:
        """Tokens in flight at a replica."""
        return self._tokens.get(key, 0)

    def work(self, key: str, now: float, rate: float) -> float:
        """Prompt tokens that a replica has probably yet to compute.

        At most those whose answers have not begun; less by what it computes in the time since,
        at `rate` tokens a second (0 where that is not known).
        """
        prompts = self._prompts.get(key, 0)
        if not prompts:
            return 0.0
        work, at = self._work[key]
        return min(prompts, max(0.0, work - (now - at) * rate))

    @property
    def unread(self) -> float:
        """Which share of all tokens in flight are prompts whose answers have not begun."""
        return self._unread / self._total if self._total else 0.0

    def requests(self, key: str) -> int:
        """Requests in flight at a replica."""
        return self._requests.get(key, 0)

    def enter(
        self, key: str, tokens: int, prompt: int = 0, now: float = 0.0, rate: float = 0.0
    ) -> Held:
        """Count a request, of one token at least, until the returned hold is closed.

        Args:
            prompt: those of its tokens that are computed before its first one comes out.
            now, rate: as in `work`.
        """
        tokens = max(1, tokens)
        ahead = self.work(key, now, rate) + prompt
        self._work[key] = ahead, now
        self._total += tokens
        self._unread += prompt
        self._prompts[key] = self._prompts.get(key, 0) + prompt
        self._tokens[key] = self._tokens.get(key, 0) + tokens
        self._requests[key] = self._requests.get(key, 0) + 1
        return Held(self, key, tokens, prompt, ahead, now)

    def computed(self, key: str, prompt: int) -> None:
        """An answer began, or will not: its prompt is no work any more."""
        self._prompts[key] -= prompt
        self._unread -= prompt

    def leave(self, key: str, tokens: int) -> None:
        """Take a request's tokens off a replica."""
        self._total -= tokens
        left = self._requests[key] - 1
        if left > 0:
            self._requests[key] = left
            self._tokens[key] -= tokens
        else:
            del self._requests[key], self._tokens[key], self._prompts[key], self._work[key]
        if self.on_leave is not None:
            self.on_leave()

    @property
    def keys(self) -> tuple[str, ...]:
        """Replicas with something in flight."""
        return tuple(self._tokens)


class Held:
    """One request's tokens at one replica; closing twice counts once.

    `ahead`: prompt tokens that were to compute before its answer, its own among them.
    """

    __slots__ = ("_at", "_prompt", "ahead", "key", "since", "tokens")

    def __init__(
        self, at: InFlight, key: str, tokens: int, prompt: int, ahead: float, since: float
    ) -> None:
        self._at: InFlight | None = at
        self._prompt = prompt
        self.key = key
        self.tokens = tokens
        self.ahead = ahead
        self.since = since

    def opened(self, now: float) -> None:
        """A stream's first token came; told twice counts once."""
        at, prompt = self._at, self._prompt
        if at is None or not prompt:
            return
        self._computed()
        if at.on_open is not None:
            at.on_open(self, now - self.since)

    def _computed(self) -> None:
        prompt, self._prompt = self._prompt, 0
        if prompt and self._at is not None:
            self._at.computed(self.key, prompt)

    def close(self) -> None:
        """The request has left the replica."""
        self._computed()
        at, self._at = self._at, None
        if at is not None:
            at.leave(self.key, self.tokens)
