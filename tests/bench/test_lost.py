"""How much busier than the mean a replica is: the measure, and what eyes that see all come to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.lost import EVERY, EYES, asked, crest, crests, during, eyed, scene
from router.simulator.station import Sample

LOADS = st.lists(st.integers(0, 40), min_size=4, max_size=4)


def looks(rows: list[list[int]]) -> list[Sample]:
    """A look every tenth of a second at `fra1/0`, `fra1/1`, `par1/0`, `par1/1`; 100 tokens each."""
    keys = ("fra1/0", "fra1/1", "par1/0", "par1/1")
    made = [dict(zip(keys, row, strict=True)) for row in rows]
    tokens = [{key: 100 * load for key, load in row.items()} for row in made]
    pairs = zip(made, tokens, strict=True)
    return [Sample(number * EVERY, row, held) for number, (row, held) in enumerate(pairs)]


@given(st.lists(LOADS, min_size=10, max_size=24))
def test_nobody_is_below_the_mean_who_is_the_busiest_nor_more_than_all(
    rows: list[list[int]],
) -> None:
    samples = looks(rows)
    most = crest(samples, 0, 9)
    assert most == 0 if not any(map(any, rows[:10])) and len(rows) == 10 else 0 <= most <= 4 + 1e-9
    if all(map(any, rows)):
        assert most >= 1 - 1e-9
    assert crest(samples, 0, 9, "tokens") == pytest.approx(most)
    assert crest(samples, 0, 9, of="fra1") <= most + 1e-9
    assert max(crest(samples, 0, 9, of=one) for one in ("fra1", "par1")) == pytest.approx(most)


@given(LOADS.filter(any), st.integers(1, 9))
def test_equal_looks_are_their_own_average_and_size_is_no_part_of_it(
    row: list[int], times: int
) -> None:
    found = crest(looks([row] * 12), 0, 9)
    assert found == pytest.approx(max(row) / (sum(row) / sum(one > 0 for one in row)))
    assert crest(looks([[one * times for one in row]] * 12), 0, 9) == pytest.approx(found)


def test_a_second_is_averaged_and_whoever_came_late_in_it_counts_whole() -> None:
    assert crest(looks([[0, 0, 9, 9]] * 9 + [[10, 10, 9, 9]]), 0, 9) == pytest.approx(9 / 5)
    assert crest(looks([[0, 0, 9, 9]] * 9), 0, 9) == 0  # no whole second


def test_who_sees_all_is_nearer_to_the_mean_than_chance() -> None:
    """With the region's return in it: the mean alone falls by a quarter there, for all."""
    scenario, trace = scene(4, 1, 0), asked(125, 9, 0)
    outage = during("ours", 3, 6).outages[0]
    found = {eye: crests(eyed(eye, scenario, trace, outage), 3, 6) for eye in EYES}
    for load in ("requests", "tokens"):
        fewest, chance = (found[eye][load] for eye in (f"fewest {load}", "chance"))
        assert 1 < fewest["dark"] < chance["dark"]
        assert 1.2 < fewest["return"] < 2 < chance["return"]
        assert fewest["returned"] < chance["returned"]
