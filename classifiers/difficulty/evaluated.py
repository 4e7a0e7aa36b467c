"""A measurement as it is told: flat numbers, the same for each source, and figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Final

import numpy as np

from classifiers.difficulty import evaluation, over_time, plots
from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.compiled import find
from classifiers.difficulty.curves import FEW, Interval
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import Report, Scores
from classifiers.difficulty.scorer import Difficulty

_TIMED: Final = 1000
_IN_NAMES: Final = re.compile(r"[^\w.-]+")
_PASSES: Final = 3
Told = Callable[[str, int, int], None]
"""Progress: what is being done, how many parts of it are done, of how many."""

Part = tuple[Scores, Sequence[Example]]


def untold(what: str, done: int, total: int) -> None:
    """Progress that nobody follows."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Reports of one question; several when labels were drawn several times.

    `us_per_prompt`: CPU time of this thread, NaN where no prompt has a text. `sources`: reports of
    each source by its name, where there are several; `own`: share of the rows whose pair the model
    was trained on.
    """

    how: str
    model: str
    reports: tuple[Report, ...]
    us_per_prompt: float
    figures: Mapping[str, str]
    """SVG texts by name: `call_performance`, `calibration`, `drift` (of scores, since training), of
    rows with a time `drift_over_time` and `quality_over_time`; of several pairs one each."""
    sources: Mapping[str, Report] = field(default_factory=dict)
    own: float = 1.0
    said: tuple[str, ...] = ()
    """Notes on the rows themselves."""

    def as_json(self) -> dict[str, object]:
        """Flat numbers: means over draws, `*_low` and `*_high` the 95 % bounds.

        A number that can't be told is None, and `notes` say why.
        """
        out: dict[str, object] = {
            "n": self.reports[0].n, **_numbers(self.reports),
            "us_per_prompt": _told(self.us_per_prompt, 1), "draws": len(self.reports),
            "how": self.how, "model": self.model, "own_model": _told(self.own),
            "notes": self.notes(),
        }  # fmt: skip
        if self.sources:
            out["sources"] = {
                name: {"n": one.n, **_numbers([one]), "notes": _notes([one])}
                for name, one in self.sources.items()
            }
        return out

    def notes(self) -> list[str]:
        """What a reader of the numbers has to know."""
        notes = [*self.said, *_notes(self.reports)]
        if not isfinite(self.us_per_prompt):
            notes.append("no row has a text: the time of a prompt was not measured")
        if self.own < 1:
            notes.append(
                f"{1 - self.own:.1%} of the rows are of pairs that the artifact has no model of: "
                "they are ordered by the length of their question alone"
            )
        if len(self.sources) > 1:
            notes.append("several sources: see the numbers of each")
        return notes


def _numbers(reports: Sequence[Report]) -> dict[str, object]:
    out: dict[str, object] = {"gap": _mean([report.gap for report in reports])}
    for name in ("apgr", "cpt50", "cpt80"):
        intervals: list[Interval] = [getattr(report, name) for report in reports]
        values = [interval.value for interval in intervals]
        out[name] = _mean(values)
        out[f"{name}_low"] = _mean([interval.low for interval in intervals])
        out[f"{name}_high"] = _mean([interval.high for interval in intervals])
        out[f"{name}_spread"] = _told(float(np.std(values)))
    for name in ("ece", "ece_debiased", "brier", "abstained", "gated"):
        out[name] = _mean([getattr(report, name) for report in reports])
    return out


def _notes(reports: Sequence[Report]) -> list[str]:
    unsaid = next((report.unsaid for report in reports if report.unsaid), "")
    if unsaid:
        return [f"no APGR and CPT: {unsaid}"]
    few = min(report.prompts for report in reports)
    if few < evaluation.SURE:
        return [f"too few rows for sure bounds: they are of {few} different prompts"]
    left_out = max(report.left_out for report in reports)
    if left_out > FEW:
        told = f"in {left_out:.1%} of bootstrap draws strong was not better than weak"
        return [f"too few rows for sure bounds: {told}, and the bounds leave those out"]
    return []


def _mean(values: Sequence[float]) -> float | None:
    return _told(float(np.mean(values)))


def _told(value: float, digits: int = 6) -> float | None:
    return round(value, digits) if isfinite(value) else None


def measured(
    how: str,
    artifact: Artifact,
    parts: Sequence[Part],
    bootstrap: int,
    clock: Callable[[], float],
    told: Told,
    draw: bool,
) -> Evaluation:
    """Reports and times of scored rows, and figures if asked; several parts are draws of labels."""
    reports = [
        evaluation.report(
            scores,
            evaluation.gains(rows),
            bootstrap,
            passed=_following(told, number, len(parts), bootstrap),
            groups=evaluation.groups_of(rows),
        )
        for number, (scores, rows) in enumerate(parts)
    ]
    rows = parts[0][1]
    own = float(np.mean([not evaluation.is_generic(artifact, row) for row in rows]))
    return Evaluation(
        how, artifact.version(), tuple(reports), _timed(artifact, rows, clock),
        _figures(artifact, parts, reports[0]) if draw else {}, _by_source(parts, bootstrap, told),
        own if how.startswith("artifact") else 1.0,
    )  # fmt: skip


def _following(told: Told, before: int, parts: int, bootstrap: int) -> evaluation.Passed:
    """Tells of draws of one report after `before` others, of so many parts."""

    def passed(draws: int) -> None:
        told(f"bounds by bootstrap, part {before + 1} of {parts}", draws, bootstrap)

    return passed


def _by_source(parts: Sequence[Part], bootstrap: int, told: Told) -> dict[str, Report]:
    scores, rows = parts[0]
    sources = np.array([row.source for row in rows])
    names = sorted(set(sources.tolist()))
    if len(parts) > 1 or len(names) < 2:
        return {}
    gain, groups = evaluation.gains(rows), np.array(evaluation.groups_of(rows))
    return {
        name: evaluation.report(
            scores.only(sources == name),
            gain[sources == name],
            bootstrap,
            passed=_following(told, number, len(names), bootstrap),
            groups=groups[sources == name].tolist(),
        )
        for number, name in enumerate(names)
    }


def _figures(artifact: Artifact, parts: Sequence[Part], first: Report) -> dict[str, str]:
    curves_of = {
        f"draw {number + 1}" if len(parts) > 1 else "router": (scores.rank, evaluation.gains(rows))
        for number, (scores, rows) in enumerate(parts)
    }
    scores, rows = parts[0]
    better = (evaluation.gains(rows) > 0).astype(float)
    note = f", debiased ECE {first.ece_debiased:.3f}"
    found = {"calibration": plots.calibration(scores.probability, better, note)}
    if not first.unsaid:
        only_one = evaluation.groups_of(rows) if len(parts) == 1 else ()
        found["call_performance"] = plots.call_performance(curves_of, only_one)
    for pair in sorted({row.pair for row in rows}):
        own = [row for row in rows if row.pair == pair]
        only = "" if len(own) == len(rows) else f"_{_IN_NAMES.sub('_', pair)}"
        model, now = artifact.pairs.get(pair), evaluation.score(artifact, own).rank
        reference = model.quantiles if model is not None else ()
        if model is not None:
            found[f"drift{only}"] = plots.score_drift(reference, now.tolist())
        timely = over_time.figures(own, now, reference)
        found |= {f"{name}{only}": text for name, text in timely.items()}
    return found


def _timed(artifact: Artifact, rows: Sequence[Example], clock: Callable[[], float]) -> float:
    """Mean over prompts of the least of _PASSES times each, by what the router would use."""
    difficulty = Difficulty(artifact, rows[0].weak, rows[0].strong, find()[0])
    views = [row.view for row in rows[:_TIMED] if row.view.parts]
    if not views:
        return float("nan")
    spent = np.zeros((_PASSES, len(views)))
    for row in spent:
        for number, view in enumerate(views):
            started = clock()
            difficulty.score(view)
            row[number] = clock() - started
    return float(spent.min(axis=0).mean()) * 1e6
