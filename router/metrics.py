"""Metrics as plain dicts, shown in the Prometheus text format when somebody asks.

Recording costs a dict look-up; `router.exposition` renders what was counted. Label values come
from closed sets only (steps, codes, endpoint names, directions): never from a client, so nobody
can grow them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from router.types import Attempt

STEPS: Final = (
    "authenticate", "admit", "classify", "decide", "grade", "filter",
    "rank", "fulfil", "commit", "dispatch", "relay", "settle",
)  # fmt: skip
"""The twelve steps' names: in code, labels, audit fields, traces and the README figure."""

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
                  30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Described:
    """One metric: its full name, kind (`counter`, `gauge`, `histogram`), help and labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()
    summed: bool = False
    """Of a gauge: whether the sum over several workers says something."""


ALL: Final = (
    Described("domicile_requests_total", "counter", "Requests ended.", ("surface", "code")),
    Described(
        "domicile_attempts_total",
        "counter",
        "Attempts at an endpoint; of TLS that failed, with why.",
        ("endpoint", "result"),
    ),
    Described("domicile_tokens_total", "counter", "Tokens used.", ("endpoint", "direction")),
    Described(
        "domicile_refused_outside_total", "counter", "Candidates left out, by reason.", ("reason",)
    ),
    Described("domicile_misdirected_total", "counter", "421 answers, early and late.", ("when",)),
    Described("domicile_failovers_total", "counter", "Requests answered by a later attempt.", ()),
    Described(
        "domicile_hedges_total",
        "counter",
        "Attempts cut off because one beside them had content first.",
        ("endpoint",),
    ),
    Described(
        "domicile_shed_total",
        "counter",
        "Requests refused because nothing inside their boundary had room, by class.",
        ("priority",),
    ),
    Described(
        "domicile_limited_total",
        "counter",
        "Requests refused by a limit of their tenant, app or key, by whose and which.",
        ("whose", "limit"),
    ),
    Described(
        "domicile_burst_spent",
        "gauge",
        "What counts of an endpoint's burst budget now, in dollars or tokens.",
        ("endpoint", "of"),
    ),
    Described(
        "domicile_burst_left", "gauge", "What is left of it, as it counts.", ("endpoint", "of")
    ),
    Described(
        "domicile_burst_refused_total",
        "counter",
        "Times an endpoint was passed over because its burst budget had no room.",
        ("endpoint",),
    ),
    Described("domicile_log_failures_total", "counter", "Commits that the region log refused.", ()),
    Described(
        "domicile_malformed_events_total",
        "counter",
        "Stream events that were no JSON.",
        ("endpoint",),
    ),
    Described(
        "domicile_drift_total", "counter", "Times an endpoint was found elsewhere.", ("endpoint",)
    ),
    Described(
        "domicile_probes_total",
        "counter",
        "Probes by kind and result; a canary asks for one token.",
        ("endpoint", "probe", "result"),
    ),
    Described("domicile_reloads_total", "counter", "Reloads tried, by result.", ("result",)),
    Described(
        "domicile_grade_total",
        "counter",
        "Requests graded: the tier found enough, and why.",
        ("model", "tier", "reason"),
    ),
    Described(
        "domicile_grading_drift_total",
        "counter",
        "Times that prompts, scores or answers were found to have changed.",
        ("model", "series"),
    ),
    Described(
        "domicile_quality_changes_total",
        "counter",
        "Groups returned to the large tier (alarm) or given back (recovered).",
        ("model", "change"),
    ),
    Described(
        "domicile_quality_alarms", "gauge", "Groups answered by the large tier now.", ("model",)
    ),
    Described(
        "domicile_shadow_total",
        "counter",
        "Requests asked of both tiers, by what came of it.",
        ("model", "result"),
    ),
    Described(
        "domicile_outcomes_lost_total",
        "counter",
        "Judged requests, or alarms, that could not be written into the outcome store.",
        (),
    ),
    Described(
        "domicile_cascade_total",
        "counter",
        "Answers of a small tier looked at: kept, or why not.",
        ("model", "result"),
    ),
    Described(
        "domicile_cascade_wasted_seconds_total",
        "counter",
        "Seconds spent on answers of a small tier that were not kept.",
        ("model",),
    ),
    Described(
        "domicile_cascade_wasted_tokens_total",
        "counter",
        "Tokens of answers of a small tier that were not kept.",
        ("model",),
    ),
    Described("domicile_vetoes", "gauge", "Vetoes in force, by kind.", ("what",)),
    Described("domicile_open_requests", "gauge", "Requests open now.", (), summed=True),
    Described("domicile_tasks", "gauge", "Tasks of the event loop."),
    Described(
        "domicile_inflight_tokens",
        "gauge",
        "Tokens in flight, estimated.",
        ("endpoint",),
        summed=True,
    ),
    Described(
        "domicile_saturation",
        "gauge",
        "Load of the most loaded replica, with what waits for it, over what it can take.",
        ("endpoint",),
    ),
    Described("domicile_workers", "gauge", "Worker processes, by state.", ("state",), summed=True),
    Described("domicile_worker_restarts_total", "counter", "Workers that were started again.", ()),
    Described("domicile_replicas", "gauge", "Replicas of an endpoint, as found.", ("endpoint",)),
    Described("domicile_marked_replicas", "gauge", "Replicas under a bad mark.", ()),
    Described("domicile_log_size", "gauge", "Entries in the region log.", ()),
    Described("domicile_export_behind", "gauge", "Lines a sink has still to look at.", ("sink",)),
    Described("domicile_export_events_total", "counter", "Events that a sink took.", ("sink",)),
    Described("domicile_export_failures_total", "counter", "Turns a sink didn't take.", ("sink",)),
    Described(
        "domicile_export_withheld_total",
        "counter",
        "Events that may not be kept where a sink is.",
        ("sink",),
    ),
    Described("domicile_log_sealed", "gauge", "Entries that are sealed, as read back.", ()),
    Described("domicile_anchor_size", "gauge", "Entries that an anchor holds.", ("anchor",)),
    Described(
        "domicile_anchor_age_seconds",
        "gauge",
        "Seconds since an anchor took a checkpoint; infinite before the first.",
        ("anchor",),
    ),
    Described(
        "domicile_request_seconds",
        "histogram",
        "Time from arrival to end, in seconds.",
        ("surface",),
    ),
    Described(
        "domicile_first_content_seconds",
        "histogram",
        "From when a stream was asked for to its first content, of the attempt that answered.",
        ("endpoint",),
    ),
    Described(
        "domicile_own_seconds",
        "histogram",
        "From a request's arrival to its first dispatch: its body, deciding, waiting, the log.",
        (),
    ),
)

Labels = tuple[str, ...]
Numbers = dict[tuple[str, Labels], float]


@dataclass(frozen=True, slots=True)
class Readout:
    """Everything a process counted, at one moment: by name and label values."""

    counters: Numbers
    gauges: Numbers
    histograms: dict[tuple[str, Labels], list[float]]


class Metrics:
    """The counters, gauges and histograms of one process."""

    __slots__ = ("_gauges", "_histograms", "_values")

    def __init__(self) -> None:
        self._values: defaultdict[tuple[str, Labels], float] = defaultdict(int)
        self._gauges: Numbers = {}
        self._histograms: dict[tuple[str, Labels], list[float]] = {}

    def count(self, name: str, labels: Labels = (), by: float = 1) -> None:
        """Add to a counter."""
        self._values[name, labels] += by

    def set(self, name: str, value: float, labels: Labels = ()) -> None:
        """Set a gauge."""
        self._gauges[name, labels] = value

    def renew(self, name: str, values: Iterable[tuple[Labels, float]]) -> None:
        """Set a gauge for these labels alone: what it was of others, which are gone, is not told
        any more."""
        for key in [key for key in self._gauges if key[0] == name]:
            del self._gauges[key]
        for labels, value in values:
            self._gauges[name, labels] = value

    def time(self, name: str, seconds: float, labels: Labels = ()) -> None:
        """Record a duration in seconds."""
        buckets = self._histograms.get((name, labels))
        if buckets is None:
            buckets = self._histograms[name, labels] = [0.0] * (len(SECONDS) + 2)
        buckets[bisect_left(SECONDS, seconds)] += 1
        buckets[-1] += seconds

    def value(self, name: str, labels: Labels = ()) -> float:
        """A counter's or gauge's value; 0 when never touched."""
        return self._values.get((name, labels), self._gauges.get((name, labels), 0.0))

    def read(self) -> Readout:
        """Everything counted so far, as it is now."""
        histograms = {key: list(counts) for key, counts in self._histograms.items()}
        return Readout(dict(self._values), dict(self._gauges), histograms)


def attempted(metrics: Metrics, tried: Iterable[Attempt], *, stream: bool) -> None:
    """Count attempts by what came of them; of a stream, how long its first content took."""
    for one in tried:
        told = f"{one.result}:{one.provider_code}" if one.result == "tls_failed" else one.result
        metrics.count("domicile_attempts_total", (one.endpoint, told))
        if stream and one.result == "ok":
            metrics.time("domicile_first_content_seconds", one.millis / 1000, (one.endpoint,))
