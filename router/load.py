"""Tokens in flight, per replica: what this router has sent and not yet seen the end of."""

from __future__ import annotations


class InFlight:
    """Estimated tokens of open requests by replica key. Exact for this process."""

    __slots__ = ("_tokens",)

    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def tokens(self, key: str) -> int:
        """Tokens in flight at a replica."""
        return self._tokens.get(key, 0)

    def enter(self, key: str, tokens: int) -> Held:
        """Count a request, of one token at least, until the returned hold is closed."""
        tokens = max(1, tokens)
        self._tokens[key] = self._tokens.get(key, 0) + tokens
        return Held(self, key, tokens)

    def leave(self, key: str, tokens: int) -> None:
        """Take a request's tokens off a replica."""
        left = self._tokens[key] - tokens
        if left > 0:
            self._tokens[key] = left
        else:
            del self._tokens[key]

    @property
    def keys(self) -> tuple[str, ...]:
        """Replicas with something in flight."""
        return tuple(self._tokens)


class Held:
    """One request's tokens at one replica; closing twice counts once."""

    __slots__ = ("_at", "_key", "_tokens")

    def __init__(self, at: InFlight, key: str, tokens: int) -> None:
        self._at: InFlight | None = at
        self._key = key
        self._tokens = tokens

    def close(self) -> None:
        """The request has left the replica."""
        at, self._at = self._at, None
        if at is not None:
            at.leave(self._key, self._tokens)
