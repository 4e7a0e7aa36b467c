"""Levels of words: counted over rows, the same with or without a row of one's own."""

from __future__ import annotations

import random

from classifiers.difficulty.commonness import COMMONEST, FIRST, counted, mean
from classifiers.difficulty.features import BUCKETS, HEAD, TAIL, Features, extract
from classifiers.view import PromptView


def rows(*texts: str) -> list[Features]:
    return [extract(PromptView.of_text(text)) for text in texts]


def level(table: bytes, word: str) -> float:
    return mean(table, rows(word)[0])


def test_levels_grow_by_two_with_each_doubling() -> None:
    table = counted(rows(*["the the cat"] * 4 * FIRST, *["dog"] * FIRST, *["owl"] * (FIRST - 1)))
    assert len(table) == BUCKETS
    assert level(table, "the") == level(table, "cat") == 4
    assert level(table, "dog") == level(table, "owl") == level(table, "unheard") == 0
    assert level(table, "the dog") == 2
    assert level(table, "the owl\nA. dog\nB. cat") == 4 / 3, "b, dog and cat of the options count"
    assert level(table, "") == 0


def test_a_rare_word_s_own_row_makes_no_difference() -> None:
    texts = [f"common rare{number}" for number in range(50)]
    assert level(counted(rows(*texts)), texts[0]) == level(counted(rows(*texts[1:])), texts[0])


def test_no_sum_is_too_large_for_one_lookup() -> None:
    """The scorers add levels and known words of a text in ten and fifteen bits."""
    most = (HEAD + TAIL + 2) // 2
    assert most < 1 << 10
    assert most * 255 < 1 << 19
    assert most * COMMONEST << 48 < 1 << 63
    some = random.Random(3).sample(range(BUCKETS), most)
    assert len(some) == most
