"""Small groups can't be had, neither directly nor by subtracting figures from each other."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.reports.figures import Family, Group, Kept, Tally
from router.reports.suppression import REST, TOGETHER, Row, parts, safe, shares, steps, told

COUNTS = st.integers(1, 12)
KEYS = st.tuples(
    st.sampled_from(["clinic", "shop", "bank"]), st.sampled_from(["health", "public"]),
    st.sampled_from(["DE", "US", "JP"]),
)  # fmt: skip


def group(tenant: str, data_class: str, country: str, family: Family = "processed") -> Group:
    return Group(family, tenant, data_class, Kept((country,), (f"self:{country.lower()}",)))


def counted(found: dict[tuple[str, str, str], int]) -> dict[Group, Tally]:
    return {group(*key): Tally(count=count) for key, count in found.items()}


def figures(rows: list[Row]) -> list[tuple[Group, int | None]]:
    return [(row.group, row.count) for row in rows]


@given(st.dictionaries(KEYS, COUNTS), st.integers(2, 6))
def test_no_row_is_small_and_no_place_is_hidden(
    found: dict[tuple[str, str, str], int], least: int
) -> None:
    rows = told(counted(found), least)
    assert all(row.count is None or row.count >= least for row in rows)
    assert {row.group.kept for row in rows} == {group(*key).kept for key in found}
    # What is told and what stands in rows without a number is everything, each once.
    hidden = {row.group.kept for row in rows if row.count is None}
    assert sum(row.count or 0 for row in rows) <= sum(found.values())
    lost = sum(found.values()) - sum(row.count or 0 for row in rows)
    assert len(hidden) <= lost <= len(hidden) * (least - 1)


@given(st.dictionaries(KEYS, COUNTS), st.integers(2, 6), st.data())
def test_a_small_group_may_be_any_other_small_number(
    found: dict[tuple[str, str, str], int], least: int, data: st.DataObject
) -> None:
    """The attack by differencing: worlds that differ only in what must not be told look alike."""
    rows = told(counted(found), least)
    for row in rows:
        if row.count is not None:
            continue
        place = row.group.kept
        small = [key for key in found if group(*key).kept == place and found[key] < least]
        classes = Counter[str]()
        for key in small:
            classes[key[1]] += found[key]
        behind = [key for key in small if classes[key[1]] < least]
        other = data.draw(st.integers(len(behind), max(least - 1, len(behind))))
        moved = dict(found)
        for key in behind:
            moved[key] = 1
        moved[behind[0]] += other - len(behind)
        assert figures(told(counted(moved), least)) == figures(rows)


def test_the_three_ways_of_being_told() -> None:
    rows = told(
        counted({
            ("clinic", "health", "DE"): 9,
            ("shop", "health", "DE"): 3, ("bank", "health", "DE"): 2,
            ("shop", "public", "US"): 4, ("bank", "health", "US"): 1,
            ("bank", "health", "JP"): 1,
        }), 5,
    )  # fmt: skip
    assert [
        (r.group.tenant, r.group.data_class, r.group.kept.countries, r.count) for r in rows
    ] == [
        ("clinic", "health", ("DE",), 9),
        (TOGETHER, TOGETHER, ("US",), 5),
        (TOGETHER, "health", ("DE",), 5),
        (TOGETHER, TOGETHER, ("JP",), None),
    ]
    assert [row.full for row in rows] == [True, False, False, False]
    assert all(row.count is not None for row in told(counted({("a", "b", "DE"): 1}), 1))


@pytest.mark.parametrize(
    ("count", "whole", "good"), [(5, 5, True), (5, 10, True), (6, 10, False), (4, 20, False)]
)
def test_neither_a_part_nor_the_rest_may_be_small(count: int, whole: int, good: bool) -> None:
    assert safe(count, whole, 5) is good


def test_parts_leave_out_what_would_tell_a_few() -> None:
    sums, hidden = parts([(Counter(a=10, b=9, c=2), 10), (Counter(a=20, b=8), 20)], 5)
    # b: 9 of 10 would tell of one request; c: two.
    assert sums == {"a": 30, "b": 8}
    assert hidden == {"c"}


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), COUNTS, min_size=1), max_size=5))
def test_shares_keep_the_sum_and_tell_no_small_one(found: list[dict[str, int]]) -> None:
    counters = [Counter(one) for one in found if sum(one.values()) >= 5]
    sums = shares(counters, 5)
    assert sum(sums.values()) == sum(sum(one.values()) for one in counters)
    assert all(count >= 5 for count in sums.values())
    assert not any(0 < one[name] < 5 and len(counters) == 1 and name in sums
                   for one in counters for name in one)  # fmt: skip
    assert set(sums) <= {*"abcd", REST}


@given(st.dictionaries(st.integers(0, 19), st.integers(1, 9), max_size=20), st.integers(1, 6))
def test_steps_cover_all_and_are_large_enough(found: dict[int, int], least: int) -> None:
    made = steps(found, 20, least)
    assert sum(count for *_, count in made) == sum(found.values())
    assert [one for first, end, _ in made for one in range(first, end)] == list(range(20))
    small = [count for *_, count in made if 0 < count < least]
    assert not small or (len(small) == 1 and sum(found.values()) < least)
