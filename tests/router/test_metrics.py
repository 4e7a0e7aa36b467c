"""The metrics registry: what is counted is what a scraper reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from router.exposition import rendered
from router.metrics import ALL, STEPS, Metrics


def read(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(rendered(metrics.read(), ALL).decode())
        for sample in family.samples
    }


def test_twelve_steps() -> None:
    assert len(STEPS) == len(set(STEPS)) == 12


def test_counters_and_gauges_are_exposed() -> None:
    metrics = Metrics()
    metrics.count("domicile_requests_total", ("chat.completions", "ok"))
    metrics.count("domicile_requests_total", ("chat.completions", "ok"), 2)
    metrics.set("domicile_open_requests", 7)
    samples = read(metrics)
    labels = (("code", "ok"), ("surface", "chat.completions"))
    assert samples["domicile_requests_total", labels] == 3
    assert samples["domicile_open_requests", ()] == 7


def test_histograms_are_cumulative() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.02, 1000):
        metrics.time("domicile_own_seconds", seconds)
    samples = read(metrics)
    assert samples["domicile_own_seconds_bucket", (("le", "0.001"),)] == 1
    assert samples["domicile_own_seconds_bucket", (("le", "0.025"),)] == 2
    assert samples["domicile_own_seconds_bucket", (("le", "+Inf"),)] == 3
    assert samples["domicile_own_seconds_count", ()] == 3
    assert round(samples["domicile_own_seconds_sum", ()], 4) == 1000.0205


def test_every_metric_is_described_once() -> None:
    assert len({m.name for m in ALL}) == len(ALL)
    assert all(m.help.endswith(".") for m in ALL)
