"""Cascade: whether a small tier's answer is kept, or a larger one of the same plan is asked.

Only whole answers are looked at: of a stream nothing is known before its first byte leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from classifiers.difficulty.cascade import escalates
from router.dispatch import Dispatched
from router.metrics import Metrics
from router.opening import OpenedWhole
from router.tiers.judges import answer_of, wanted_of
from router.tiers.shadow import SURFACE
from router.usage import read


@dataclass(frozen=True, slots=True)
class Cascade:
    """Looks at answers of small tiers, and counts what the look cost."""

    metrics: Metrics
    clock: Callable[[], float]

    def doubts(self, found: Dispatched) -> bool:
        """Whether a larger tier is to be asked; only where the plan has one."""
        plan, opened = found.plan, found.opened
        model = plan.arrival.snapshot.policy.models[plan.admitted.asked.model]
        least = model.grading.cascade
        if least is None or not model.substitutable or not isinstance(opened, OpenedWhole):
            return False
        stored = plan.arrival.stored
        pinned = stored is not None and stored.tier is not None
        larger = any(one.tier > found.candidacy.tier for one in plan.ranked.order)
        if pinned or not larger or plan.arrival.surface.name != SURFACE:
            return False
        answer = answer_of(opened.frame.data)
        reason = "" if answer is None else escalates(answer, wanted_of(plan.body), least)
        self.metrics.count("domicile_cascade_total", (model.name, reason or "kept"))
        if reason:
            usage = read(opened.frame.usage)
            tokens = 0 if usage is None else usage.input + usage.output
            labels = (model.name,)
            self.metrics.count("domicile_cascade_wasted_tokens_total", labels, tokens)
            seconds = self.clock() - found.began
            self.metrics.count("domicile_cascade_wasted_seconds_total", labels, seconds)
        return bool(reason)
