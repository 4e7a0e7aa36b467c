"""The head of a model in whole numbers, as the scorers use it.

Sums of integers are exact in any order: a score is the same in every Python and in `compiled.c`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from classifiers.difficulty.artifact import BASE, HEAVIEST, Head
from classifiers.difficulty.features import TEXT

CLIP: Final = 3.0
UNIT: Final = 1 << 20
"""A z-score of one, as an integer."""
WEIGHT: Final = 1 << 30
"""A weight of one, as an integer."""


class Whole(NamedTuple):
    """A head in whole numbers, without the inputs that never count.

    `centre` and `inverse` turn inputs into z-scores times UNIT; `rows` are the weights of the
    linear part and of each direction, times WEIGHT; `squares` the weight of each direction.
    """

    intercept: float
    centre: tuple[float, ...]
    inverse: tuple[float, ...]
    rows: tuple[tuple[int, ...], ...]
    squares: tuple[float, ...]


def whole(head: Head) -> Whole:
    """The head in whole numbers. Raises ValueError for weights that are none, or too large."""
    every = (head.linear, *head.directions)
    if not all(-HEAVIEST <= weight <= HEAVIEST for row in every for weight in row):
        raise ValueError(f"a weight of the head is not between -{HEAVIEST} and {HEAVIEST}")
    rows = tuple(tuple(round(weight * WEIGHT) for weight in row) for row in every)
    # The text's structure always stays: the gate measures its distance.
    last = max([BASE + TEXT, *(1 + i for row in rows for i, weight in enumerate(row) if weight)])
    return Whole(
        head.intercept, head.centre[:last], tuple(UNIT / spread for spread in head.spread[:last]),
        tuple(row[:last] for row in rows), head.weights,
    )  # fmt: skip
