"""The standing audit: what grading costs in quality, per group, and when to stop it.

A small random lane of requests is answered by both tiers. Their difference is the loss that
grading caused where it chose small. An alarm is an e-detector (Shin, Ramdas, Rinaldo 2022): while
no group's mean loss, given all that came before, is above the tolerance, the mean time to the
first false alarm of any group is at least `run` observations, however many groups there are, and
it forgets the good past, so that a later change is found fast. Each observation counts for three
groups, so that the sum of all detectors grows by three at most, in the mean, and one of them has to
reach three times `run`.

The way back is the same test, turned round: a group whose mean loss stays above the tolerance is
returned to small after three times `run` of its own observations at the earliest, in the mean. It
forgets the bad past as the other one forgets the good, so that how long a model was bad does not
matter once it is good again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import log, sqrt
from typing import Final, Literal

Tier = Literal["small", "large"]
RUN: Final = 20_000.0
STAKES: Final = (0.1, 0.3, 0.6, 0.9)
LEAST: Final = 50
HOLD: Final = 3600.0
GROUPS: Final = 50_000
"""Groups of a model that are followed; of those that come later nothing is known, which is counted.
None is left out for another: it may be under alarm."""
EACH: Final = 3
"""Groups that one request counts for."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """One request of the lane: its groups, the tier grading chose, both qualities in [0, 1]."""

    tenant: str
    kind: str
    language: str
    graded: Tier
    small: float
    large: float

    @property
    def loss(self) -> float:
        """Quality lost by the grade, in [-1, 1]; 0 where it chose large."""
        return self.large - self.small if self.graded == "small" else 0.0

    def groups(self) -> tuple[str, ...]:
        """The groups it counts for: its tenant, and its class and language within the tenant."""
        return (
            f"tenant={self.tenant}",
            f"tenant={self.tenant} class={self.kind}",
            f"tenant={self.tenant} language={self.language}",
        )


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean loss per request of the lane with its 95 % empirical Bernstein bounds.

    `small`, `large`: mean quality if that tier had answered every request of the lane; what
    grading gives is `large` minus `loss`, which is its regret against always asking large.
    """

    n: int
    loss: float
    low: float
    high: float
    small: float = 0.0
    large: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """A change of state, for metrics and the log: `alarm` returns a group to large."""

    group: str
    change: Literal["alarm", "recovered"]
    reason: str
    at: float
    estimate: Estimate


def explores(rate: float, draw: float) -> bool:
    """True if a request joins the lane; `draw` is uniform in [0, 1) and injected."""
    if not 0.0 <= rate <= 0.05:
        raise ValueError(f"exploration rate `{rate}` must be between 0 and 0.05")
    return draw < rate


class _Group:
    """Sums and e-processes of one group: `detectors` find that it got worse, and `back`, while it
    is under alarm, that it is good again."""

    __slots__ = ("alarmed_at", "back", "detectors", "large", "n", "small", "squares", "total")

    def __init__(self) -> None:
        self.alarmed_at: float | None = None
        self.begin(None)

    def begin(self, alarmed_at: float | None) -> None:
        """Know nothing, from an alarm on or from its end."""
        self.alarmed_at = alarmed_at
        self.back = [] if alarmed_at is None else [0.0] * len(STAKES)
        self.restart()

    def restart(self) -> None:
        self.n, self.total, self.squares = 0, 0.0, 0.0
        self.small = self.large = 0.0
        self.detectors = [0.0] * len(STAKES)

    def better(self, loss: float, tolerance: float, limit: float) -> bool:
        """Add a loss to what shows that the group is good again; whether it does."""
        most = limit * len(STAKES)
        for index, stake in enumerate(STAKES):
            factor = 1 + stake / (1 - tolerance) * (tolerance - loss)
            # More than is needed would be forgotten late, should it get worse while it waits.
            self.back[index] = min((1 + self.back[index]) * factor, most)
        return sum(self.back) / len(STAKES) >= limit

    def add(self, shadow: Shadow, tolerance: float) -> float:
        """Add a loss; the value of the detector."""
        loss = shadow.loss
        self.n += 1
        self.small += shadow.small
        self.large += shadow.large
        self.total += loss
        self.squares += loss * loss
        for index, stake in enumerate(STAKES):
            # A stake below 1 / (1 + tolerance) keeps every factor positive.
            factor = 1 + stake / (1 + tolerance) * (loss - tolerance)
            self.detectors[index] = (1 + self.detectors[index]) * factor
        return sum(self.detectors) / len(STAKES)

    def estimate(self) -> Estimate:
        tiers = self.small / max(self.n, 1), self.large / max(self.n, 1)
        if self.n < 2:
            return Estimate(self.n, self.total, -1.0, 1.0, *tiers)
        mean = self.total / self.n
        variance = max(0.0, (self.squares - self.n * mean * mean) / (self.n - 1))
        # Maurer and Pontil 2009, two-sided at 95 %, values in an interval of length 2.
        size = log(4 / 0.05)
        margin = sqrt(2 * variance * size / self.n) + 14 * size / (3 * (self.n - 1))
        low, high = max(-1.0, mean - margin), min(1.0, mean + margin)
        return Estimate(self.n, mean, low, high, *tiers)


class StandingAudit:
    """Follows the losses of every group and says who may still be answered by small.

    `tolerance`: mean loss per request that is accepted, in [0, 1). After an alarm a group stays
    with large for `hold` seconds and until LEAST and more further losses, of what grading would
    have chosen, show that it is within the tolerance again.
    `unfollowed`: times that a request belonged to a group beyond GROUPS.
    """

    __slots__ = ("_alarms", "_groups", "_hold", "_limit", "_tolerance", "unfollowed")

    def __init__(self, tolerance: float, run: float = RUN, hold: float = HOLD) -> None:
        if not 0.0 <= tolerance < 1.0:
            raise ValueError(f"tolerance `{tolerance}` must be at least 0 and below 1")
        self._tolerance, self._limit, self._hold = tolerance, EACH * run, hold
        self.unfollowed = 0
        self._groups: dict[str, _Group] = {}
        self._alarms: set[str] = set()

    def observe(self, shadow: Shadow, now: float) -> tuple[Event, ...]:
        """Count one request of the lane; the changes of state it caused."""
        events = (self._count(name, shadow, now) for name in shadow.groups())
        return tuple(event for event in events if event is not None)

    @property
    def calm(self) -> bool:
        """True while no group is under alarm, so that every request may be answered by small."""
        return not self._alarms

    def allows_small(self, tenant: str, kind: str, language: str) -> bool:
        """False while any group of the request is under alarm."""
        groups = Shadow(tenant, kind, language, "small", 0.0, 0.0).groups()
        return not any(self._alarmed(name) for name in groups)

    def estimates(self) -> Iterable[tuple[str, Estimate]]:
        """Every group with its estimate since its start or its last change of state, or since it
        was shown once more, under alarm, that it is bad; those under alarm first."""
        names = sorted(self._groups, key=lambda name: (name not in self._alarms, name))
        return ((name, self._groups[name].estimate()) for name in names)

    def alarms(self) -> Iterable[tuple[str, float]]:
        """Every group under alarm, and since when."""
        return ((name, self._groups[name].alarmed_at or 0.0) for name in sorted(self._alarms))

    def resume(self, group: str, at: float) -> bool:
        """Put a group under the alarm it had before a restart; False if it is under one."""
        if self._alarmed(group):
            return False
        found = self._groups.setdefault(group, _Group())
        found.begin(at)
        self._alarms.add(group)
        return True

    def returned(self, group: str) -> bool:
        """Whether a group is under alarm, and answered by large."""
        return self._alarmed(group)

    def _count(self, name: str, shadow: Shadow, now: float) -> Event | None:
        group = self._group(name)
        if group is None:
            return None
        worse = group.add(shadow, self._tolerance) >= self._limit
        if group.alarmed_at is None:
            return self._alarm(name, group, now) if worse else None
        better = group.better(shadow.loss, self._tolerance, self._limit)
        if worse:
            group.restart()
        if not better or group.n < LEAST or now - group.alarmed_at < self._hold:
            return None
        estimate = group.estimate()
        self._end(name, group)
        return Event(name, "recovered", "within the tolerance again", now, estimate)

    def _alarm(self, name: str, group: _Group, now: float) -> Event:
        event = Event(name, "alarm", "quality", now, group.estimate())
        group.begin(now)
        self._alarms.add(name)
        return event

    def _end(self, name: str, group: _Group) -> None:
        group.begin(None)
        self._alarms.discard(name)

    def _alarmed(self, name: str) -> bool:
        return name in self._alarms

    def _group(self, name: str) -> _Group | None:
        found = self._groups.get(name)
        if found is None:
            # A tenant has few classes and languages, and itself comes first of them.
            if len(self._groups) >= GROUPS:
                self.unfollowed += 1
                return None
            found = self._groups[name] = _Group()
        return found
