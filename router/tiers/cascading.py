"""Cascade: whether a small tier's answer is kept, or a larger one of the same plan is asked.

Only whole answers are looked at: of a stream nothing is known before its first byte leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from classifiers.difficulty.cascade import escalates
from router.dispatch import Dispatched
from router.metrics import Metrics
from router.opening import OpenedWhole
from router.tiers.judges import answers_of, wanted_of
from router.tiers.shadow import SURFACE
from router.usage import Usage, read


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
        reason = _reason(opened.frame.data, plan.body, read(opened.frame.usage), least)
        self.metrics.count("domicile_cascade_total", (model.name, reason or "kept"))
        if reason:
            usage = read(opened.frame.usage)
            tokens = 0 if usage is None else usage.input + usage.output
            labels = (model.name,)
            self.metrics.count("domicile_cascade_wasted_tokens_total", labels, tokens)
            seconds = self.clock() - found.began
            self.metrics.count("domicile_cascade_wasted_seconds_total", labels, seconds)
        return bool(reason)


def _reason(data: bytes, body: Mapping[str, object], usage: Usage | None, least: float) -> str:
    """Why the answer is not kept: the first reason of any of its choices; empty if it is kept."""
    wanted, answers = wanted_of(body), answers_of(data)
    asked = _cut_as_asked(body, usage, len(answers))
    return next(filter(None, (escalates(one, wanted, least, asked) for one in answers)), "")


def _cut_as_asked(body: Mapping[str, object], usage: Usage | None, choices: int) -> bool:
    """Whether an answer that was cut has the length that was asked for, by the client or a policy:
    a larger tier would be cut there too, and cost more. Its own window may have cut it sooner."""
    given = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    limits = [one for one in given if isinstance(one, int) and not isinstance(one, bool)]
    if not limits:
        return False
    return usage is None or choices != 1 or usage.output >= min(limits)
