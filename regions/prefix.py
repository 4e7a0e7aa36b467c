"""Prefix affinity: requests that begin alike go where that beginning is in the engine's cache.

A prompt is cut into blocks, and each block's hash covers all before it: equal hashes, equal
beginnings. A replica is chosen by

1. the longest beginning that this router sent somewhere;
2. else by rendezvous hashing of the prompt's anchor, so that routers that share nothing choose
   alike, and a replica that comes or goes moves only its own share;
3. in both cases only while it has not too much more to do than the least busy one, measured by
   the tokens that the cache saves; else load alone decides.

Hashes are BLAKE2b: the same in every process, and no client can aim for a collision that
pays (one would only send a request to a replica without its cache).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Final

BLOCK: Final = 512
"""Characters of the first blocks: about 128 tokens, a few blocks of an engine's cache."""
EACH: Final = 8
"""Blocks of one size; the next eight are twice as large, five sizes in all."""
SIZES: Final = tuple(BLOCK << step for step in range(5) for _ in range(EACH))
BLOCKS: Final = len(SIZES)
"""Blocks looked at, at most: 124 Ki characters."""
SIZES_UPTO: Final = tuple(accumulate(SIZES, initial=0))
"""Characters of the first so many blocks."""
ANCHOR: Final = 4
"""The anchor is the end of the first user message, or this many blocks into it if that is first."""


@dataclass(frozen=True, slots=True)
class Trail:
    """The beginning of a prompt: chained block hashes, and what names the conversation.

    `stem`: how many blocks lie before the anchor's end; who knows more knows the conversation.
    """

    blocks: tuple[bytes, ...]
    anchor: bytes
    stem: int = 0


def trail(parts: Iterable[tuple[str, str]], salt: bytes = b"", session: bytes = b"") -> Trail:
    """The trail of a prompt's parts, each a role and a text, in order.

    Args:
        salt: what caches are never shared across: model and tenant.
        session: the client's own name for the conversation; it then is the anchor.
    """
    anchor = blake2b(salt + b"\0" + session, digest_size=8).digest() if session else b""
    blocks: list[bytes] = []
    chain, rest = blake2b(salt, digest_size=8).digest(), ""
    far = stem = BLOCKS
    for role, text in parts:
        rest += f"\x1e{role}\x1f{text[: SIZES_UPTO[-1]]}"
        if role == "user":
            far = min(far, len(blocks) + ANCHOR)
        while len(blocks) < BLOCKS and len(rest) >= (size := SIZES[len(blocks)]):
            chain = _linked(chain, rest[:size])
            blocks.append(chain)
            rest = rest[size:]
        if not anchor and len(blocks) >= far:
            anchor, stem = blocks[far - 1], far - 1
        if not anchor and role == "user":
            anchor, stem = _linked(chain, rest), len(blocks)
        if len(blocks) >= BLOCKS:
            break
    return Trail(tuple(blocks), anchor or _linked(chain, rest), min(stem, len(blocks)))


def _linked(before: bytes, text: str) -> bytes:
    return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def rendezvous(anchor: bytes, keys: Iterable[str]) -> list[str]:
    """Replica keys, the anchor's own first: the same order in every router."""
    return sorted(keys, key=lambda key: blake2b(anchor + key.encode(), digest_size=8).digest())


class Affinity:
    """Where beginnings were sent, by this router; bounded, the longest unused is forgotten first.

    Args:
        worth: how many tokens of work a replica may have more than the least busy one, for each
            token of a known conversation that its cache holds. Above 1 the request itself waits
            a little longer than need be, and what it saves all others wait less.
        guess: the same for each token of a prompt whose conversation is not known, at the replica
            that its anchor names: another router may have sent its beginning there.
        bound: blocks remembered.
    """

    __slots__ = ("_bound", "_guess", "_seen", "_worth")

    def __init__(self, worth: float = 2.0, guess: float = 0.1, bound: int = 1 << 17) -> None:
        self._worth = worth
        self._guess = guess
        self._bound = bound
        self._seen: dict[bytes, str] = {}

    def choose(
        self, trail: Trail, loads: Mapping[str, float], prompt: int, least: str
    ) -> tuple[str, int]:
        """The replica for a prompt, and how many of its tokens that has yet to compute; remembered.

        Args:
            loads: tokens of work at each replica that may be chosen.
            prompt: its tokens.
            least: the least busy replica, taken when no cache is worth more.
        """
        known, count = self._known(trail.blocks)
        held = round(prompt * SIZES_UPTO[count] / SIZES_UPTO[len(trail.blocks)]) if count else 0
        # A beginning that all conversations share is in every cache before long.
        wanted = {known: held * (self._worth if count > trail.stem else 1.0)}
        if count <= trail.stem:
            home = rendezvous(trail.anchor, loads)[0]
            wanted[home] = max(wanted.get(home, 0.0), self._guess * prompt)
        chosen = least
        for key, more in sorted(wanted.items(), key=lambda one: -one[1]):
            if key in loads and loads[key] <= loads[least] + more:
                chosen = key
                break
        self.remember(trail.blocks, chosen)
        return chosen, prompt - held if chosen == known else prompt

    def _known(self, blocks: Sequence[bytes]) -> tuple[str, int]:
        """Where the longest known beginning is, and of how many blocks."""
        for count in range(len(blocks), 0, -1):
            found = self._seen.get(blocks[count - 1])
            if found is not None:
                return found, count
        return "", 0

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
