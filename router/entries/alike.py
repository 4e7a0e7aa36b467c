"""What was worked out of an object, found again by that very object.

Steps hand on the same objects for requests alike (a decision, the endpoints inside, an order of
them), so what follows from one is worked out once. The object is kept with it: an id is no
other's as long as it lives.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

BOUND: Final = 4096


class Alike(Generic[K, V]):
    """Values by the identity of what they belong to. When full it starts again."""

    __slots__ = ("_bound", "_kept")

    def __init__(self, bound: int = BOUND) -> None:
        self._bound = bound
        self._kept: dict[int, tuple[K, V]] = {}

    def get(self, of: K) -> V | None:
        """The value of this object; `None` when there is none yet."""
        key, kept = id(of), self._kept
        return kept[key][1] if key in kept else None

    def put(self, of: K, value: V) -> V:
        """Keep the value of an object."""
        if len(self._kept) >= self._bound:
            self._kept.clear()
        self._kept[id(of)] = of, value
        return value

    def clear(self) -> None:
        """Keep nothing: what belongs to a snapshot must not outlive it."""
        self._kept.clear()
