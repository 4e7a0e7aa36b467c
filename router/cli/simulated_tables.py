"""The runs of `simulate run` as tables: all, by class, by tenant, and by part of a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from router.cli.shown import print_table
from router.simulator.tally import Result

ALL: Final[Mapping[str, str]] = {
    "good": "good", "ttft_p50": "ttft p50", "ttft_p99": "ttft p99", "queueing_p99": "queue p99",
    "itl_p99": "itl p99", "hit_rate": "hits", "utilisation": "use", "spilled": "spilled",
    "refused": "refused", "lost": "lost", "hours": "hours",
}  # fmt: skip
STRAND: Final[Mapping[str, str]] = {
    "requests": "asked", "shed": "shed", "good": "good", "ttft_p50": "ttft p50",
    "ttft_p99": "ttft p99", "itl_p50": "itl p50", "itl_p99": "itl p99", "waited_p99": "waited p99",
    "tokens": "tokens",
}  # fmt: skip
PART: Final[Mapping[str, str]] = {"replicas": "replicas", "jobs": "jobs", "utilisation": "use"}
RUN: Final[Mapping[str, str]] = {"strategy": "strategy", "layout": "layout", "replicas": "size"}
Row = Mapping[str, object]


def tables(results: Sequence[Result], ideals: Sequence[float | None]) -> None:
    """Print them. What all runs have alike stands in no column, but for the size."""
    rows = [one.row() for one in results]
    apart = [name for name in RUN if len({row[name] for row in rows}) > 1]
    first = [name for name in RUN if name in {*apart, "replicas"}] if apart else [*RUN][::2]
    heads = {name: ALL[name] for name in ALL if name != "lost" or any(one.lost for one in results)}
    shown = [_cells(row, [*first, *heads]) for row in rows]
    print_table("simulated load", (*(RUN[name] for name in first), *heads.values()), shown)
    _by("class", "classes", rows, apart, STRAND)
    _by("tenant", "tenants", rows, apart, STRAND)
    if any(one.layout != "one" for one in results):
        _by("part", "parts", rows, apart, PART)
    for one in results:
        if one.moved:
            click.echo(
                f"caches moved, {one.strategy}, {one.layout}, {one.replicas} replicas: "
                f"{one.moved}, in {one.transfer_p50:.3g} s (p50) and {one.transfer_p99:.3g} s (p99)"
            )
    told = [f"{ideal:.4f}" for ideal in dict.fromkeys(ideals) if ideal is not None]
    if told:
        click.echo(f"hit rate of one shared cache of the same total size: {', '.join(told)}")


def _by(
    head: str, key: str, rows: Sequence[Row], apart: Sequence[str], columns: Mapping[str, str]
) -> None:
    """What runs say of their classes, tenants or parts, if anything."""
    shown = [
        [*_cells(row, apart), str(name), *_cells(one, list(columns))]
        for row in rows
        if isinstance(found := row[key], Mapping)
        for name, one in found.items()
    ]
    if shown:
        heads = (*(RUN[name] for name in apart), head, *columns.values())
        print_table(f"by {head}", heads, shown)


def _cells(row: Row, names: Sequence[str]) -> list[str]:
    """Numbers as far as they can be read in passing; JSON has more."""
    found = [row[name] for name in names]
    return [f"{one:.3g}" if isinstance(one, float) else str(one) for one in found]
