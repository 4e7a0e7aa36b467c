"""Prefix affinity: requests that begin alike go where that beginning is in the engine's cache.

A prompt is cut into blocks, and each block's hash covers all before it: equal hashes, equal
beginnings. A replica is chosen by

1. the longest beginning that this router sent somewhere, if it is a good part of the prompt;
2. else by rendezvous hashing of the prompt's anchor, so that routers that share nothing choose
   alike, and a replica that comes or goes moves only its own share;
3. in both cases only while its load is bounded by the others'; else the next one is looked at.

Hashes are BLAKE2b: the same in every process, and no client can aim for a collision that
pays (one would only send a request to a replica without its cache).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

BLOCK: Final = 512
"""Characters of a block: about 128 tokens, a few blocks of an engine's cache."""
BLOCKS: Final = 64
"""Blocks looked at, at most: 32 Ki characters."""
ANCHOR: Final = 4
"""The anchor is the end of the first user message, or this many blocks if that comes first."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The beginning of a prompt: chained block hashes, and what names the conversation."""

    blocks: tuple[bytes, ...]
    anchor: bytes


def trail(parts: Iterable[tuple[str, str]], salt: bytes = b"", session: bytes = b"") -> Trail:
    """The trail of a prompt's parts, each a role and a text, in order.

    Args:
        salt: what caches are never shared across: model and tenant.
        session: the client's own name for the conversation; it then is the anchor.
    """
    anchor = blake2b(salt + b"\0" + session, digest_size=8).digest() if session else b""
    blocks: list[bytes] = []
    chain, rest = blake2b(salt, digest_size=8).digest(), ""
    for role, text in parts:
        rest += f"\x1e{role}\x1f{text[: BLOCK * BLOCKS]}"
        while len(rest) >= BLOCK and len(blocks) < BLOCKS:
            chain = _linked(chain, rest[:BLOCK])
            blocks.append(chain)
            rest = rest[BLOCK:]
        if not anchor and len(blocks) >= ANCHOR:
            anchor = blocks[ANCHOR - 1]
        if not anchor and role == "user":
            anchor = _linked(chain, rest)
        if len(blocks) >= BLOCKS:
            break
    return Trail(tuple(blocks), anchor or _linked(chain, rest))


def _linked(before: bytes, text: str) -> bytes:
    return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def rendezvous(anchor: bytes, keys: Iterable[str]) -> list[str]:
    """Replica keys, the anchor's own first: the same order in every router."""
    return sorted(keys, key=lambda key: blake2b(anchor + key.encode(), digest_size=8).digest())


class Affinity:
    """Where beginnings were sent, by this router; bounded, the longest unused is forgotten first.

    Args:
        slack: how far above the mean load a replica may be to be chosen for its cache.
        least: the part of a prompt's blocks that must be known for it to count.
        bound: blocks remembered.
    """

    __slots__ = ("_bound", "_least", "_seen", "_slack")

    def __init__(self, slack: float = 1.25, least: float = 0.5, bound: int = 1 << 16) -> None:
        self._slack = slack
        self._least = least
        self._bound = bound
        self._seen: dict[bytes, str] = {}

    def choose(self, trail: Trail, loads: Mapping[str, float], tokens: int) -> str | None:
        """The replica for a prompt, of those in `loads` (tokens each); remembers the choice.

        `None` when each that would do has too much to do: then load decides.
        """
        limit = self._slack * (sum(loads.values()) + tokens) / len(loads)
        for key in self._wanted(trail, loads):
            # One that has nothing to do takes any request, however large.
            if not loads[key] or loads[key] + tokens <= limit:
                self.remember(trail.blocks, key)
                return key
        return None

    def _wanted(self, trail: Trail, loads: Mapping[str, float]) -> Iterator[str]:
        known = self._known(trail.blocks)
        if known is not None and known in loads:
            yield known
        for key in rendezvous(trail.anchor, loads):
            if key != known:
                yield key

    def _known(self, blocks: Sequence[bytes]) -> str | None:
        """Where the longest known beginning is, if it is long enough."""
        enough = max(1, round(len(blocks) * self._least))
        for count in range(len(blocks), enough - 1, -1):
            found = self._seen.get(blocks[count - 1])
            if found is not None:
                return found
        return None

    def remember(self, blocks: Sequence[bytes], key: str) -> None:
        """A replica is about to hold these blocks."""
        seen = self._seen
        for block in blocks:
            seen.pop(block, None)
            seen[block] = key
        while len(seen) > self._bound:
            del seen[next(iter(seen))]

    def forget(self, keep: frozenset[str]) -> None:
        """Drop replicas that are gone."""
        self._seen = {block: key for block, key in self._seen.items() if key in keep}
