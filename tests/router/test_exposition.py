"""The text that a scraper reads, read back by the reader of the library that Prometheus has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from router.exposition import rendered
from router.metrics import SECONDS, Described, Metrics, Readout

COUNTED = Described("d_asked_total", "counter", "Asked.", ("endpoint",))
STANDING = Described("d_open", "gauge", "Open.", ("endpoint",))
TIMED = Described("d_seconds", "histogram", "Took.", ("endpoint",))
DESCRIBED = (COUNTED, STANDING, TIMED)
NUMBERS = st.floats(min_value=0, max_value=1e12)
LABELS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=8)


def read(readout: Readout) -> Mapping[tuple[str, str, str], float]:
    """Samples by name, endpoint and bound."""
    return dict(_samples(rendered(readout, DESCRIBED).decode()))


def _samples(text: str) -> Iterator[tuple[tuple[str, str, str], float]]:
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            yield (one.name, one.labels["endpoint"], one.labels.get("le", "")), one.value


@given(counted=st.dictionaries(LABELS, NUMBERS), standing=st.dictionaries(LABELS, NUMBERS))
def test_what_was_counted_is_read_back_whatever_its_labels(
    counted: dict[str, float], standing: dict[str, float]
) -> None:
    metrics = Metrics()
    for label, number in counted.items():
        metrics.count(COUNTED.name, (label,), number)
    for label, number in standing.items():
        metrics.set(STANDING.name, number, (label,))
    assert read(metrics.read()) == {
        **{(COUNTED.name, label, ""): number for label, number in counted.items()},
        **{(STANDING.name, label, ""): number for label, number in standing.items()},
    }


@given(seconds=st.lists(st.floats(min_value=0, max_value=4000), min_size=1))
def test_a_bucket_has_all_that_took_no_longer(seconds: list[float]) -> None:
    metrics = Metrics()
    for one in seconds:
        metrics.time(TIMED.name, one, ("eu",))
    samples = read(metrics.read())
    for bound in SECONDS:
        within = sum(one <= bound for one in seconds)
        assert samples[f"{TIMED.name}_bucket", "eu", str(bound)] == within
    assert samples[f"{TIMED.name}_bucket", "eu", "+Inf"] == len(seconds)
    assert samples[f"{TIMED.name}_count", "eu", ""] == len(seconds)
    assert abs(samples[f"{TIMED.name}_sum", "eu", ""] - sum(seconds)) < 1e-6 * (1 + sum(seconds))


def test_each_metric_is_told_with_its_kind_and_help_also_before_anything_is_counted() -> None:
    text = rendered(Metrics().read(), DESCRIBED).decode()
    for one in DESCRIBED:
        assert f"# HELP {one.name} {one.help}\n" in text
        assert f"# TYPE {one.name} {one.kind}\n" in text


def test_what_nobody_described_is_not_told() -> None:
    metrics = Metrics()
    metrics.count("d_secret_total", ("eu",))
    assert read(metrics.read()) == {}
