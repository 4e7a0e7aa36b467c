"""KV-cache blocks and the prefix cache of one engine: counts and hashes, no tensors.

A block holds `block_size` tokens. Full prompt blocks have a hash that also covers all blocks before
them, so an equal hash means an equal prefix. A published block outlives its sequence until the room
is needed (least recently used first), as in vLLM's automatic prefix caching.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field


def block_hashes(tokens: Sequence[int], block_size: int, salt: bytes = b"") -> tuple[int, ...]:
    """Chained 64-bit hashes of the full blocks of `tokens`; a partial last block has none."""
    hashes: list[int] = []
    parent = hashlib.blake2b(salt, digest_size=8).digest()
    for start in range(0, len(tokens) - block_size + 1, block_size):
        block = ",".join(map(str, tokens[start : start + block_size]))
        parent = hashlib.blake2b(parent + block.encode(), digest_size=8).digest()
        hashes.append(int.from_bytes(parent, "big"))
    return tuple(hashes)


@dataclass(slots=True)
class Holding:
    """What one sequence holds: published prefix blocks by hash, and blocks only it can see."""

    published: list[int] = field(default_factory=list)
    private: int = 0

    @property
    def blocks(self) -> int:
        """Number of blocks held."""
        return len(self.published) + self.private


class BlockPool:
    """`size` KV blocks shared by the sequences of one engine."""

    __slots__ = ("_idle", "_private", "_shared", "size")

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"an engine needs at least one KV block, not `{size}`")
        self.size = size
        self._private = 0
        self._shared: dict[int, int] = {}
        self._idle: dict[int, None] = {}

    @property
    def available(self) -> int:
        """Blocks that can be taken now: free ones and idle cached ones."""
        return self.size - self._private - len(self._shared)

    @property
    def usage(self) -> float:
        """Share of blocks held by sequences, 0..1 (vLLM's `kv_cache_usage_perc`)."""
        return 1.0 - self.available / self.size

    def cached(self, hashes: Sequence[int]) -> int:
        """How many leading blocks of `hashes` are in the cache."""
        for number, block in enumerate(hashes):
            if block not in self._shared and block not in self._idle:
                return number
        return len(hashes)

    def open(self, hashes: Sequence[int], private: int) -> Holding | None:
        """Hold the cached blocks `hashes` and `private` new ones; None if there is no room."""
        revived = sum(1 for block in hashes if block in self._idle)
        if self.available - revived < private:
            return None
        for block in hashes:
            self._idle.pop(block, None)
            self._shared[block] = self._shared.get(block, 0) + 1
        holding = Holding(list(hashes))
        self.grow(holding, private)
        return holding

    def grow(self, holding: Holding, blocks: int) -> bool:
        """Add private blocks to a holding, evicting idle ones as needed; False if no room."""
        if self.available < blocks:
            return False
        self._private += blocks
        holding.private += blocks
        while self._private + len(self._shared) + len(self._idle) > self.size:
            del self._idle[next(iter(self._idle))]
        return True

    def publish(self, holding: Holding, hashes: Sequence[int]) -> None:
        """Make computed private blocks findable; one that is already known stays private."""
        for block in hashes[len(holding.published) :]:
            if block in self._shared or block in self._idle:
                return
            holding.published.append(block)
            holding.private -= 1
            self._private -= 1
            self._shared[block] = 1

    def release(self, holding: Holding) -> None:
        """Give everything back; published blocks stay findable, deepest evicted first."""
        self._private -= holding.private
        for block in reversed(holding.published):
            self._shared[block] -= 1
            if not self._shared[block]:
                del self._shared[block]
                self._idle[block] = None
        holding.published, holding.private = [], 0
