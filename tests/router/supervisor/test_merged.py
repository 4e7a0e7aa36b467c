"""Metrics of several workers: added where a sum is true, shown apart where it is not."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from router.metrics import ALL, Metrics
from router.supervisor.merged import NOTHING, added, merged

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: bytes) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def counted(requests: int, size: int, seconds: float = 0.002) -> Metrics:
    metrics = Metrics()
    metrics.count("domicile_requests_total", ("chat.completions", "ok"), requests)
    metrics.set("domicile_open_requests", requests)
    metrics.set("domicile_log_size", size)
    metrics.set("domicile_anchor_age_seconds", seconds, ("s3://a",))
    metrics.time("domicile_own_seconds", seconds)
    return metrics


def test_counters_and_histograms_are_added_and_gauges_as_they_say() -> None:
    found = samples(merged({1: counted(3, 10).read(), 2: counted(4, 20, 0.2).read()}, NOTHING))
    labels = (("code", "ok"), ("surface", "chat.completions"))
    assert found["domicile_requests_total", labels] == 7
    assert found["domicile_open_requests", ()] == 7
    assert found["domicile_log_size", (("worker", "1"),)] == 10
    assert found["domicile_log_size", (("worker", "2"),)] == 20
    assert found["domicile_anchor_age_seconds", (("anchor", "s3://a"), ("worker", "2"))] == 0.2
    assert found["domicile_own_seconds_count", ()] == 2
    assert found["domicile_own_seconds_bucket", (("le", "0.0025"),)] == 1
    assert round(found["domicile_own_seconds_sum", ()], 3) == 0.202


def test_no_counter_falls_when_a_worker_ends() -> None:
    first, second = counted(3, 10), counted(4, 20)
    before = samples(merged({1: first.read(), 2: second.read()}, NOTHING))
    ended = added([NOTHING, first.read()])
    after = samples(merged({1: Metrics().read(), 2: second.read()}, ended))
    labels = (("code", "ok"), ("surface", "chat.completions"))
    assert after["domicile_requests_total", labels] == before["domicile_requests_total", labels]
    assert after["domicile_own_seconds_count", ()] == 2
    assert after["domicile_open_requests", ()] == 4
    assert ("domicile_log_size", (("worker", "1"),)) not in after


def test_what_was_read_is_not_changed_by_adding() -> None:
    read = counted(1, 1).read()
    added([read, read])
    assert read.histograms["domicile_own_seconds", ()][-1] == 0.002


def test_the_supervisor_counts_too() -> None:
    own = Metrics()
    own.count("domicile_worker_restarts_total")
    own.set("domicile_workers", 2, ("serving",))
    found = samples(merged({}, NOTHING, own.read()))
    assert found["domicile_worker_restarts_total", ()] == 1
    assert found["domicile_workers", (("state", "serving"),)] == 2


def test_only_gauges_are_marked_as_summed() -> None:
    assert {one.kind for one in ALL if one.summed} == {"gauge"}
