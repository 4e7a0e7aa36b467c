"""Our own request ids: UUIDv7, so that they sort by time, in 26 letters and digits.

Base 32, written letter by letter: 48 bits of time, 4 of version, 12 at random, 2 of variant, 62 at
random. A letter is five bits, so letters 9, 10, 12, 13 and 25 hold bits that are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

BYTES: Final = 16
"""Of randomness, an id."""
DRAWN: Final = 64
"""Ids for which it is drawn at once: a draw is a call of the system, and lets other threads run."""
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuv"
_LETTER: Final = _LETTERS.encode() * 8
_PAIRS: Final = tuple(one + other for one in _LETTERS for other in _LETTERS)


class Ids:
    """The request ids of one process; each is given once.

    Args:
        wall: seconds since the epoch.
        entropy: gives so many random bytes.
        drawn: ids for which they are drawn at once.
    """

    __slots__ = ("_drawn", "_entropy", "_left", "_wall")

    def __init__(
        self, wall: Callable[[], float], entropy: Callable[[int], bytes], drawn: int = DRAWN
    ) -> None:
        self._wall = wall
        self._entropy = entropy
        self._drawn = drawn
        self._left: list[str] = []

    def __call__(self) -> str:
        """A new one."""
        if not self._left:
            self._left = _tails(self._entropy(BYTES * self._drawn))
        return _begun(int(self._wall() * 1000)) + self._left.pop()


def _tails(raw: bytes) -> list[str]:
    """What comes after the time in each id, from `BYTES` of randomness each."""
    most = raw.translate(_LETTER).decode()
    return [
        f"{_LETTERS[24 | raw[at] & 7]}{most[at + 1]}{_LETTERS[raw[at + 2] << 1 & 31 | 1]}"
        f"{_LETTERS[raw[at + 3] & 15]}{most[at + 4 : at + 15]}{_LETTERS[raw[at + 15] << 2 & 31]}"
        for at in range(0, len(raw), BYTES)
    ]


@lru_cache(16)
def _begun(millis: int) -> str:
    """The letters of a time, and the first bits of the version."""
    bits = (millis & ((1 << 48) - 1)) << 2 | 0x7 >> 2
    pairs = _PAIRS
    return (
        pairs[bits >> 40] + pairs[bits >> 30 & 1023] + pairs[bits >> 20 & 1023]
        + pairs[bits >> 10 & 1023] + pairs[bits & 1023]
    )  # fmt: skip
