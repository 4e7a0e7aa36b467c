"""Many different easy questions."""

from __future__ import annotations

import random

_THINGS = ("river", "mountain", "city", "island", "lake", "country", "bird", "tree", "colour")
_PLACES = ("France", "Spain", "Italy", "Poland", "Norway", "Greece", "Sweden", "Ireland")
_WORDS = ("largest", "oldest", "smallest", "best known", "most visited", "highest", "longest")


def easy(number: int) -> str:
    """A short question of general knowledge; equal numbers give equal texts."""
    rng = random.Random(number)
    words = " ".join(rng.sample(_WORDS, rng.randint(1, 3)))
    return f"What is the {words} {rng.choice(_THINGS)} of {rng.choice(_PLACES)} called today ?"
