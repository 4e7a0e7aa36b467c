"""Tokens in flight, per replica: what this router has sent, or is about to, and not yet seen end.

A request is counted from the moment that a replica is chosen for it, not from the moment that it
is sent: between the two the region log is written, and everybody who chooses meanwhile must see
the choice, or all of them make the same one.
"""

from __future__ import annotations

from collections.abc import Callable


class InFlight:
    """Estimated tokens of open requests by replica key. Exact for this process.

    `on_leave`, if set, is called whenever a request has left a replica: somebody may wait for it.
    """

    __slots__ = ("_requests", "_tokens", "on_leave")

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}
        self._requests: dict[str, int] = {}
        self.on_leave: Callable[[], None] | None = None

    def tokens(self, key: str) -> int:
        """Tokens in flight at a replica."""
        return self._tokens.get(key, 0)

    def requests(self, key: str) -> int:
        """Requests in flight at a replica."""
        return self._requests.get(key, 0)

    def enter(self, key: str, tokens: int) -> Held:
        """Count a request, of one token at least, until the returned hold is closed."""
        tokens = max(1, tokens)
        self._tokens[key] = self._tokens.get(key, 0) + tokens
        self._requests[key] = self._requests.get(key, 0) + 1
        return Held(self, key, tokens)

    def leave(self, key: str, tokens: int) -> None:
        """Take a request's tokens off a replica."""
        left = self._requests[key] - 1
        if left > 0:
            self._requests[key] = left
            self._tokens[key] -= tokens
        else:
            del self._requests[key], self._tokens[key]
        if self.on_leave is not None:
            self.on_leave()

    @property
    def keys(self) -> tuple[str, ...]:
        """Replicas with something in flight."""
        return tuple(self._tokens)


class Held:
    """One request's tokens at one replica; closing twice counts once."""

    __slots__ = ("_at", "key", "tokens")

    def __init__(self, at: InFlight, key: str, tokens: int) -> None:
        self._at: InFlight | None = at
        self.key = key
        self.tokens = tokens

    def close(self) -> None:
        """The request has left the replica."""
        at, self._at = self._at, None
        if at is not None:
            at.leave(self.key, self.tokens)
