"""Step 5's state: for each graded model its thresholds, its standing audit, and its drift.

It lives in the process, not in the snapshot. A model's grader starts afresh when its artifact or
its target changes; what the audit found stays. Any doubt means the highest tier.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

from classifiers.difficulty.audit import GROUPS, Event, Shadow, StandingAudit
from classifiers.difficulty.drift import Drift, DriftWatch
from classifiers.difficulty.grader import Grade, Grader
from classifiers.difficulty.scorer import Score
from policies.model import Model
from regions.model import Tier
from router.audit.entry import Entry, Json
from router.metrics import Metrics
from router.tiers.difficulty import Rated
from router.tiers.outcome_store import Alarm
from router.tiers.strata import kind_of, script_of
from router.types import Decided, Verdict, make_verdict

DEADLINE: Final = 0.005
HANGS: Final = 0.1
ROW: Final = 3
LEASE: Final = 5.0
"""Seconds a scorer is left out after ROW late scores in a row, or one of HANGS seconds: it runs in
process and can't be interrupted. One late score alone is a busy machine's."""
GRADERS: Final = 64
WATCHED: Final = 1024
MILLI: Final = 1000
UNFOLLOWED: Final = f"times a judged request counted for no group: {GROUPS} are followed"
UNWATCHED: Final = f"only the first {WATCHED} tenants, of each model, are watched for it"
UNTOLD: Final = "answered by the large tier: no other worker has told of its alarms yet"
RETURNED: Final = "answered by the large tier: quality bound broken"

Audits = dict[tuple[str, float], StandingAudit]
"""The audit of each model and accepted loss: requests in flight keep that of their snapshot."""


@dataclass(slots=True)
class _Kept:
    """One grader, its late scores in a row, and until when (loop time) it is left out."""

    grader: Grader
    late: int = 0
    benched: float = 0.0

    def is_late(self, seconds: float, ended: float) -> bool:
        """Whether a score took too long to be used."""
        self.late = self.late + 1 if seconds > DEADLINE else 0
        if self.late >= ROW or seconds > HANGS:
            self.late, self.benched = 0, ended + LEASE
        return seconds > DEADLINE


@dataclass(slots=True)
class Graders:
    """What grades requests; belongs to one event loop.

    `clock` gives loop time, `stamp` the time to write into the log; `tell` takes an entry for
    the log without waiting for it.
    """

    metrics: Metrics
    clock: Callable[[], float]
    stamp: Callable[[], float]
    tell: Callable[[Entry], None]
    notes: dict[str, str] = field(default_factory=dict)
    audits: Audits = field(default_factory=dict)
    untold: bool = False
    _kept: OrderedDict[object, _Kept] = field(default_factory=OrderedDict)
    _drifts: dict[tuple[str, str], DriftWatch] = field(default_factory=dict)

    def judge(self, decided: Decided, model: Model, asked: Tier | None) -> Verdict | None:
        """What the classifier finds enough for a request; `None` if the model isn't graded."""
        classified = decided.classified
        rated = classified.admitted.snapshot.difficulty.get(model.name)
        if rated is None:
            return None
        tenant = classified.admitted.authenticated.principal.tenant
        grade = self._graded(rated, decided, tenant, asked is not None and asked >= model.highest)
        tier, reason = (min(model.tiers), "below") if grade.tier == "small" else (
            model.highest, grade.reason
        )  # fmt: skip
        if grade.tier == "small" and not self._allows(decided, model, tenant):
            tier, reason = model.highest, "returned"
        score = grade.score
        self.metrics.count(
            "domicile_grade_total", (model.name, tier.label, reason.partition(":")[0])
        )
        milli = _milli(score)
        self._watch(model.name, tenant, "length", classified.prompt_tokens)
        if milli is not None:
            self._watch(model.name, tenant, "score", milli)
        if score is not None:
            self._watch(model.name, tenant, "known", score.known)
        cut = score is not None and score.cut
        return make_verdict(rated.name, tier, reason, milli, cut, model.substitutable)

    def answered(self, model: str, tenant: str, tokens: int) -> None:
        """Count the length of an answer, in tokens, as the endpoint told it."""
        if any(name == model for name, _ in self.audits):
            self._watch(model, tenant, "output", tokens)

    def audit(self, model: Model) -> StandingAudit:
        """The audit of a model; a changed tolerance starts it afresh, and a smaller one ends no
        alarm."""
        key = (model.name, model.grading.tolerance)
        if key not in self.audits:
            before = [alarm for alarm in self.alarms() if alarm[0] == model.name]
            self.audits[key] = StandingAudit(model.grading.tolerance)
            for _, _, group, _ in before:
                self.notes.pop(_note(model.name, group), None)
            self.resume({model.name: model}, before)
        return self.audits[key]

    def observe(
        self, model: Model, shadow: Shadow, at: float, *, quiet: bool = False, heard: bool = False
    ) -> bool:
        """Count one request that both tiers answered; what changes is told and recorded.

        Args:
            at: seconds since the epoch.
            quiet: it was recorded before, and only restores what is known.
            heard: another process of this router judged it, and counts what changes.

        Returns:
            Whether a group came under alarm, or out of it.
        """
        audit = self._in_force(model)
        events = audit.observe(shadow, at)
        for event in events:
            if not heard and not quiet:
                self.metrics.count("domicile_quality_changes_total", (model.name, event.change))
            self._changed(model.name, event, quiet)
        if audit.unfollowed:
            self.notes[f"grading {model.name}"] = f"{audit.unfollowed} {UNFOLLOWED}"
        return bool(events)

    def _in_force(self, model: Model) -> StandingAudit:
        """The audit of a model as policy has it now; one of an earlier time is no longer it."""
        key = (model.name, model.grading.tolerance)
        if key != next((one for one in reversed(self.audits) if one[0] == model.name), key):
            self.audits.pop(key, None)
        return self.audit(model)

    def alarms(self) -> Iterator[Alarm]:
        """Every group under alarm, by each model's newest audit."""
        newest = {model: (tolerance, audit) for (model, tolerance), audit in self.audits.items()}
        for model, (tolerance, audit) in newest.items():
            yield from ((model, tolerance, group, at) for group, at in audit.alarms())

    def resume(self, models: Mapping[str, Model], alarms: Iterable[Alarm]) -> None:
        """Return groups to large that were before a restart, or by a tolerance not smaller."""
        for name, tolerance, group, at in alarms:
            model = models.get(name)
            if model is None or model.grading.tolerance > tolerance:
                continue
            if self.audit(model).resume(group, at):
                self.notes[_note(name, group)] = RETURNED

    def adopt(self, audits: Mapping[tuple[str, float], StandingAudit] | None) -> None:
        """Know what another process of this router found: its audits in the place of one's own.
        `None`: others know of alarms, and have not told yet."""
        self.untold = audits is None
        if audits is None:
            self.notes["grading"] = UNTOLD
            return
        self.notes.pop("grading", None)
        for model, _, group, _ in self.alarms():
            self.notes.pop(_note(model, group), None)
        for key, audit in audits.items():
            self.audits.pop(key, None)  # each model's newest stands last
            self.audits[key] = audit
        for model, _, group, _ in self.alarms():
            self.notes[_note(model, group)] = RETURNED

    # ----------------------------------------------------------------------------------

    def _graded(self, rated: Rated, decided: Decided, tenant: str, large: bool) -> Grade:
        view = decided.classified.view
        admitted = decided.classified.admitted
        kept = self._of(admitted.asked.model, rated, len(admitted.snapshot.difficulty))
        began = self.clock()
        if view is None or began < kept.benched:
            return _large("benched")
        grade = kept.grader.grade(view, tenant, large)
        ended = self.clock()
        return _large("late", grade) if kept.is_late(ended - began, ended) else grade

    def _of(self, model: str, rated: Rated, models: int) -> _Kept:
        key = (model, *rated.key)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        else:
            of_pair = rated.difficulty.model
            kept = _Kept(
                Grader(
                    rated.difficulty, rated.share, of_pair.quantiles, of_pair.floor, rated.quality
                )
            )
            self._kept[key] = kept
            # All in force, and some of before: one left out in turn would never know its traffic.
            if len(self._kept) > GRADERS + models:
                self._kept.popitem(last=False)
        return kept

    def _allows(self, decided: Decided, model: Model, tenant: str) -> bool:
        audit, view = self.audit(model), decided.classified.view
        if self.untold or view is None:
            return False
        return audit.calm or audit.allows_small(tenant, kind_of(view), script_of(view))

    def _watch(self, model: str, tenant: str, series: str, value: float) -> None:
        key = (model, tenant)
        watch = self._drifts.get(key)
        if watch is None:
            if len(self._drifts) >= WATCHED:
                # One in the place of another would leave both without a whole window.
                self.notes["grading drift"] = UNWATCHED
                return
            # Each series is measured against its own first window: the training rows are others'.
            watch = self._drifts[key] = DriftWatch({})
        drift = watch.observe(series, value)
        if drift is not None:
            self._drifted(model, tenant, drift)

    def _drifted(self, model: str, tenant: str, drift: Drift) -> None:
        """A series changed: that is told, but only a loss of quality moves traffic."""
        self.metrics.count("domicile_grading_drift_total", (model, drift.series))
        body: dict[str, Json] = {
            "event": "grading_drift", "model": model, "tenant": tenant, "series": drift.series,
            "test": drift.test,
            "psi": round(drift.psi * MILLI), "psi_limit": round(drift.psi_limit * MILLI),
            "ks": round(drift.ks * MILLI), "ks_limit": round(drift.ks_limit * MILLI),
        }  # fmt: skip
        self.tell(Entry("drift", "", self.stamp(), body))

    def _changed(self, model: str, event: Event, quiet: bool) -> None:
        note = _note(model, event.group)
        if event.change == "alarm":
            self.notes[note] = RETURNED
        else:
            self.notes.pop(note, None)
        if quiet:
            return
        found = event.estimate
        body: dict[str, Json] = {
            "event": f"quality_{event.change}", "model": model, "group": event.group,
            "why": event.reason, "n": found.n, "loss": round(found.loss * MILLI),
            "low": round(found.low * MILLI), "high": round(found.high * MILLI),
        }  # fmt: skip
        self.tell(Entry("drift", "", self.stamp(), body))


def _note(model: str, group: str) -> str:
    return f"grading {model} {group}"


def _milli(score: Score | None) -> int | None:
    """A score in thousandths; `None` for an abstention, or for what is no number."""
    if score is None or score.abstained or not isfinite(score.value):
        return None
    return round(score.value * MILLI)


def _large(reason: str, grade: Grade | None = None) -> Grade:
    return Grade("large", reason, 0.0, None if grade is None else grade.score)
