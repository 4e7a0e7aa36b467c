"""The metrics of several workers as one exposition.

Counters and histograms are added up, over workers that ended too, so that none ever falls: what a
worker counted after it was last read, and before it died, is lost. A gauge is added up where the
sum says something; else each worker's is shown, with a label of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from router.exposition import rendered
from router.metrics import ALL, Described, Readout

LABEL = "worker"
NOTHING = Readout({}, {}, {})


def added(reads: Iterable[Readout]) -> Readout:
    """Counters and histograms of several reads together; no gauges."""
    counters: dict[tuple[str, tuple[str, ...]], float] = {}
    histograms: dict[tuple[str, tuple[str, ...]], list[float]] = {}
    for read in reads:
        for key, value in read.counters.items():
            counters[key] = counters.get(key, 0.0) + value
        for key, counts in read.histograms.items():
            known = histograms.get(key)
            both = counts if known is None else [a + b for a, b in zip(known, counts, strict=True)]
            histograms[key] = list(both)
    return Readout(counters, {}, histograms)


def merged(workers: Mapping[int, Readout], before: Readout, own: Readout = NOTHING) -> bytes:
    """The Prometheus text of all.

    Args:
        workers: each worker's number, and what it counted.
        before: what those that ended had counted.
        own: what the supervisor counts.
    """
    told = added([*workers.values(), before, own])
    summed = {one.name for one in ALL if one.summed}
    gauges = dict(own.gauges)
    for number, read in sorted(workers.items()):
        for (name, labels), value in read.gauges.items():
            key = (name, labels) if name in summed else (name, (*labels, str(number)))
            gauges[key] = gauges.get(key, 0.0) + value
    described = [_apart(one) for one in ALL]
    return rendered(Readout(told.counters, gauges, told.histograms), described)


def _apart(one: Described) -> Described:
    if one.kind != "gauge" or one.summed:
        return one
    return replace(one, labels=(*one.labels, LABEL))
