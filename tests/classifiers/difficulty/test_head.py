"""The head in whole numbers: what counts is in, what can't be summed is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from classifiers.difficulty.artifact import BASE, HEAVIEST, Artifact
from classifiers.difficulty.features import TEXT
from classifiers.difficulty.head import UNIT, WEIGHT, whole


def test_weights_are_rounded_to_whole_numbers(artifact: Artifact) -> None:
    head = artifact.pairs["w:s"].head
    found = whole(head)
    assert len(found.rows) == 1 + len(head.directions) == 1 + len(found.squares)
    for row, given in zip(found.rows, (head.linear, *head.directions), strict=True):
        assert row == tuple(round(weight * WEIGHT) for weight in given[: len(row)])
    assert found.inverse == tuple(UNIT / spread for spread in head.spread[: len(found.inverse)])


def test_only_inputs_of_the_call_that_never_count_are_left_out(artifact: Artifact) -> None:
    head = artifact.pairs["w:s"].head
    size = len(head.linear)
    none = replace(head, linear=(0.0,) * size, directions=(), weights=())
    assert len(whole(none).centre) == BASE + TEXT
    last = replace(none, linear=(*none.linear[:-1], 0.1))
    assert len(whole(last).centre) == size


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), HEAVIEST * 1.001])
def test_a_weight_that_cannot_be_summed_is_refused(artifact: Artifact, weight: float) -> None:
    head = artifact.pairs["w:s"].head
    with pytest.raises(ValueError, match="a weight of the head"):
        whole(replace(head, linear=(weight, *head.linear[1:])))


def test_the_largest_sum_fits_into_64_bits(artifact: Artifact) -> None:
    inputs = len(artifact.pairs["w:s"].head.linear)
    assert inputs * 3 * UNIT * HEAVIEST * WEIGHT < 2**63
