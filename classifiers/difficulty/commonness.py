"""How common the word of each bucket is: a table in levels, counted over texts without labels.

Rare words go with gain: the weak model knows them less. The table is made once, from the rows of
the shipped prior, and stays as it is when a pair is trained, so that few labels do. Words of fewer
than FIRST rows have level 0: whether a row was itself counted then makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log2
from typing import TYPE_CHECKING, Final

from classifiers.difficulty.features import BUCKETS

if TYPE_CHECKING:
    from classifiers.difficulty.features import Features

FIRST: Final = 8
STEPS: Final = 2
"""Levels for each doubling of the number of rows."""
COMMONEST: Final = 22
"""The last level: no sum over a text's words is then too large for the scorers."""


def counted(features: Iterable[Features]) -> bytes:
    """Levels (BUCKETS,) from 0 to COMMONEST: STEPS * log2(rows with the word / FIRST)."""
    rows = [0] * BUCKETS
    for one in features:
        for word in one.words:
            rows[word] += 1
    return bytes(min(COMMONEST, int(STEPS * log2(max(n, FIRST) / FIRST))) for n in rows)


def mean(common: bytes, features: Features) -> float:
    """The mean level of the words of the options, of the text where there are none; 0 without any.

    The scorers compute the same.
    """
    words = features.options or features.stem
    return sum(map(common.__getitem__, words)) / len(words) if words else 0.0
