"""Small groups: what a report for others than the tenant itself must not tell.

A group of fewer than `least` requests is never told by itself. It is put together with others,
first over tenants, then over data classes too, until there are enough; **where** it was processed
(or why it was refused) is always named. What is still too small is named without a number and is in
no total.

Nothing can be had by subtraction, because every request of a small group is counted in at most one
figure: the row it was put into. All other figures count only groups that are told in full, and of
those only parts that are themselves large enough, the rest of the group included (`safe`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeVar

from router.reports.figures import Group, Tally, summed

TOGETHER: Final = "(small groups)"
REST: Final = "not told apart"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """Groups told together. `count` is `None` when they are fewer than may be told.

    `full` says that it is one group, told in full; only such rows count elsewhere.
    """

    group: Group
    count: int | None
    tally: Tally
    full: bool


def told(groups: Mapping[Group, Tally], least: int) -> list[Row]:
    """Every group in exactly one row. `least` of 1 or less tells each by itself."""
    rows: list[Row] = []
    left = {group: [tally] for group, tally in groups.items()}
    for number, coarser in enumerate((_itself, _all_tenants, _all_classes)):
        merged: dict[Group, list[Tally]] = defaultdict(list)
        for group, tallies in left.items():
            merged[coarser(group)] += tallies
        left = {}
        for group, tallies in merged.items():
            count = sum(one.count for one in tallies)
            if count >= least:
                rows.append(Row(group, count, summed(tallies), full=number == 0))
            else:
                left[group] = tallies
    rows += [Row(group, None, Tally(), full=False) for group in left]
    return sorted(rows, key=lambda row: (-(row.count or 0), row.group))


def _itself(group: Group) -> Group:
    return group


def _all_tenants(group: Group) -> Group:
    return replace(group, tenant=TOGETHER)


def _all_classes(group: Group) -> Group:
    return replace(group, tenant=TOGETHER, data_class=TOGETHER)


def safe(count: int, whole: int, least: int) -> bool:
    """Whether a part of a told group may be told: neither it nor the rest is a small group."""
    return count >= least and (count == whole or whole - count >= least)


def parts(found: Sequence[tuple[Counter[T], int]], least: int) -> tuple[dict[T, int], frozenset[T]]:
    """What several groups' counters say together, and what can't be told at all.

    `found` are counters of parts that may overlap, each with its group's own count. A part that
    is unsafe in one group is left out of the sum there.
    """
    sums: Counter[T] = Counter()
    hidden: set[T] = set()
    for counter, whole in found:
        for name, count in counter.items():
            if safe(count, whole, least):
                sums[name] += count
            else:
                hidden.add(name)
    return dict(sums), frozenset(hidden - sums.keys())


def shares(found: Sequence[Counter[str]], least: int) -> dict[str, int]:
    """Counters that each divide a told group, as one; small shares are put together (`REST`)."""
    sums: Counter[str] = Counter()
    for counter in found:
        small, rest = [], 0
        for name, count in sorted(counter.items(), key=lambda one: (one[1], one[0])):
            if count < least or 0 < rest < least:
                small.append(name)
                rest += count
        sums.update({name: count for name, count in counter.items() if name not in small})
        if rest:
            sums[REST] += rest
    return dict(sums)


def steps(counter: Mapping[int, int], number: int, least: int) -> list[tuple[int, int, int]]:
    """A timeline's steps `(first, end, count)`, small ones put together with what follows.

    The end is outside. Steps without a request stay empty, unless they lie inside such a stretch.
    """
    found: list[tuple[int, int, int]] = []
    first, count = 0, 0
    for at in range(number):
        count += counter.get(at, 0)
        if count == 0 or count >= least:
            found.append((first, at + 1, count))
            first, count = at + 1, 0
    if count:
        # What is left at the end is too small: it goes to the last stretch that is not.
        while found and found[-1][2] == 0:
            first = found.pop()[0]
        if found:
            first, _, before = found.pop()
            count += before
        found.append((first, number, count))
    return _checked(found, number)


def _checked(found: list[tuple[int, int, int]], number: int) -> list[tuple[int, int, int]]:
    joined = all(one[1] == other[0] for one, other in pairwise(found))
    if not joined or not found or found[0][0] != 0 or found[-1][1] != number:
        raise ValueError("the steps of a timeline must follow each other")
    return found
