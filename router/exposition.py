"""What was counted, in the Prometheus text format: rendered by `prometheus_client`.

Apart from `router.metrics`, which each request uses: what renders is a thirtieth of a start, and
nobody asks for it before the admin listener is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from router.metrics import SECONDS, Described, Readout


def rendered(read: Readout, described: Iterable[Described]) -> bytes:
    """The Prometheus text exposition of what was counted."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Exposed([_family(one, read) for one in described]))
    return generate_latest(registry)


def _family(described: Described, read: Readout) -> Metric:
    if described.kind == "histogram":
        return _histogram(described, read)
    kind, source = _GAUGE, read.gauges
    if described.kind == "counter":
        kind, source = _COUNTER, read.counters
    family = kind(described.name, described.help, labels=described.labels)
    for (name, labels), value in sorted(source.items()):
        if name == described.name:
            family.add_metric(labels, value)
    return family


def _histogram(described: Described, read: Readout) -> Metric:
    family = HistogramMetricFamily(described.name, described.help, labels=described.labels)
    for (name, labels), counts in sorted(read.histograms.items()):
        if name == described.name:
            family.add_metric(labels, list(_cumulative(counts[:-1])), counts[-1])
    return family


_Simple = type[CounterMetricFamily] | type[GaugeMetricFamily]
_COUNTER: Final[_Simple] = CounterMetricFamily
_GAUGE: Final[_Simple] = GaugeMetricFamily


class _Exposed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _cumulative(counts: list[float]) -> Iterator[tuple[str, float]]:
    total = 0.0
    for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
        total += count
        yield bound, total
