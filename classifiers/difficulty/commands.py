"""What `domicile classifier` does, as plain functions: the command line only wires and prints.

Rows whose `split` is `train` are for fitting, all others for measuring. If only one kind is
given, a pair is measured by its shipped model (no training rows) or by grouped 5-fold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import numpy as np

from classifiers.difficulty import dataset, evaluation, plots, recipe
from classifiers.difficulty.artifact import ANY, Artifact, ArtifactError, PairModel, load, save
from classifiers.difficulty.calibration import platt_knots
from classifiers.difficulty.card import render
from classifiers.difficulty.compiled import find
from classifiers.difficulty.curves import Interval, floor_points
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluation import Report, Scores
from classifiers.difficulty.scorer import Difficulty
from classifiers.difficulty.training import TooFewRows

SHIPPED: Final = Path(__file__).parent.parent / "models" / "prior.bin"
MEASURED: Final = SHIPPED.with_name("prior.measured.jsonl")
DRAWS: Final = 6
CALIBRATE_BELOW: Final = 500
MIN_LOCAL: Final = 200
"""Fewer labels than this cannot switch grading on."""
_TIMED: Final = 1000


Told = Callable[[str, int, int], None]
"""Progress: what is being done, how many parts of it are done, of how many."""


def untold(what: str, done: int, total: int) -> None:
    """Progress that nobody follows."""


class NotBetter(Exception):
    """The new model's lower confidence bound is not above the one in use."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Reports of one question; several when labels were drawn several times."""

    how: str
    model: str
    reports: tuple[Report, ...]
    us_per_prompt: float
    figures: Mapping[str, str]
    """SVG texts by name: `curve`, `calibration` and `drift`."""

    def as_json(self) -> dict[str, object]:
        """Flat numbers: means over draws, `*_low` and `*_high` the 95 % bounds."""
        first, out = self.reports[0], {}
        for name in ("apgr", "cpt50", "cpt80"):
            intervals: list[Interval] = [getattr(report, name) for report in self.reports]
            values = [interval.value for interval in intervals]
            out[name] = _mean(values)
            out[f"{name}_low"] = _mean([interval.low for interval in intervals])
            out[f"{name}_high"] = _mean([interval.high for interval in intervals])
            out[f"{name}_spread"] = round(float(np.std(values)), 4)
        for name in ("ece", "ece_debiased", "brier", "abstained", "gated"):
            out[name] = _mean([getattr(report, name) for report in self.reports])
        return {
            "n": first.n, "gap": round(first.gap, 4), **out,
            "us_per_prompt": round(self.us_per_prompt, 1), "draws": len(self.reports),
            "how": self.how, "model": self.model,
        }  # fmt: skip


def evaluate(
    files: Sequence[Path],
    pair: str | None = None,
    labels: int | None = None,
    model: Path = SHIPPED,
    bootstrap: int = evaluation.DRAWS,
    clock: Callable[[], float] = perf_counter,
    told: Told = untold,
) -> Evaluation:
    """Measure on labelled rows. Without `pair` the artifact at `model` scores every row.

    With `pair` (`WEAK:STRONG`) a model is fitted on the training rows, or on `labels` of them
    drawn DRAWS times, and measured on the others; below CALIBRATE_BELOW labels the artifact
    is calibrated on them, not replaced. Raises RowError, ArtifactError, TooFewRows.
    """
    told("reading rows", 0, 1)
    rows = dataset.binary(dataset.read(files))
    artifact = load(model)
    if pair is None:
        held = [row for row in rows if row.split != "train"] or list(rows)
        kept = () if len(held) < len(rows) or held[0].split != "train" else held
        how = "artifact on its own training rows" if kept else "artifact"
        scored = evaluation.score(artifact, held)
        return _evaluation(how, artifact, [(scored, held)], bootstrap, clock, told)
    own = [row for row in rows if row.pair == pair]
    if not own:
        known = ", ".join(sorted({row.pair for row in rows}))
        raise TooFewRows(f"no rows of pair `{pair}`; the files have {known}")
    train = [row for row in own if row.split == "train"]
    test = [row for row in own if row.split != "train"]
    if labels is not None:
        parts = []
        for seed in range(DRAWS):
            told("draws of labels", seed, DRAWS)
            parts.append(_drawn(artifact, train, test, labels, seed))
        how = f"{labels} labels, " + ("calibrated" if labels < CALIBRATE_BELOW else "trained")
        return _evaluation(how, artifact, parts, bootstrap, clock, told)
    told("training", 0, 1)
    if train and test:
        fitted = evaluation.fit_and_score(train, test, artifact.common)
        return _evaluation(
            "trained on split train", artifact, [(fitted, test)], bootstrap, clock, told
        )
    if test and pair in artifact.pairs:
        scored = evaluation.score(artifact, test)
        return _evaluation("artifact", artifact, [(scored, test)], bootstrap, clock, told)
    fit = partial(evaluation.fit_and_score, common=artifact.common)
    crossed = evaluation.cross_validated(own, fit)
    return _evaluation("grouped 5-fold", artifact, [(crossed, own)], bootstrap, clock, told)


def train(
    files: Sequence[Path],
    output: Path,
    name: str = "local",
    prior: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> str:
    """Train all pairs of the files' training rows (all rows if none is marked); return version.

    Rows that are marked otherwise are kept back, and measured for the card.
    """
    rows = dataset.binary(dataset.read(files))
    marked = [row for row in rows if row.split == "train"]
    held = [row for row in rows if row.split != "train"] if marked else []
    common = None if prior else load(SHIPPED).common
    return save(recipe.build(marked or rows, name, prior, tell, held, common), output)


def calibrate(
    files: Sequence[Path], pair: str, output: Path, model: Path = SHIPPED, name: str = "local"
) -> str:
    """Fit the probabilities of one pair to local labels and write a new artifact.

    The order of prompts stays that of `model`. Raises TooFewRows below MIN_LOCAL labels.
    """
    rows = [row for row in dataset.binary(dataset.read(files)) if row.pair == pair]
    if len(rows) < MIN_LOCAL:
        raise TooFewRows(f"{len(rows)} labels of `{pair}`; at least {MIN_LOCAL} are needed")
    return save(replace(calibrated(load(model), rows), name=name), output)


def calibrated(artifact: Artifact, rows: Sequence[Example]) -> Artifact:
    """The artifact with a model for the rows' pair whose probabilities fit the rows.

    The rows ordered nothing, so what they say of quality at each share is an honest bound.
    """
    difficulty = Difficulty(artifact, rows[0].weak, rows[0].strong)
    values = np.array([difficulty.judge(row.features, row.view).value for row in rows])
    fitted: PairModel = replace(
        difficulty.model, weak=rows[0].weak, strong=rows[0].strong, rows=len(rows),
        floor=floor_points(values, evaluation.gains(rows)),
        knots=platt_knots(values, evaluation.gains(rows) > 0),
        quantiles=tuple(float(q) for q in np.quantile(values, np.linspace(0, 1, 101)).round(9)),
    )  # fmt: skip
    tables = artifact.tables[difficulty.model.name]
    card = {**artifact.card, "prior": False, "calibrated_from": artifact.version()}
    return replace(artifact, card=card, pairs={fitted.name: fitted}, tables={fitted.name: tables})


def card(model: Path = SHIPPED) -> str:
    """The model card in Markdown; that of the shipped artifact has its benchmark in it."""
    artifact = load(model)
    return render(artifact, find()[1], measured(artifact))


def measured(artifact: Artifact, file: Path = MEASURED) -> list[dict[str, object]]:
    """The sections that the benchmark printed of this artifact; none of any other."""
    sections = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    own = any(section.get("version") == artifact.version() for section in sections)
    return sections if own else []


def card_figures(model: Path = SHIPPED) -> dict[str, str]:
    """What the artifact itself says, as SVG texts: `bound` and `calibration`."""
    pairs = load(model).pairs
    return {
        "bound": plots.chart(
            "Lower bound (95 %) of recovered quality",
            ("share of calls sent to strong", "recovered quality"),
            [plots.Line(name, pair.floor) for name, pair in pairs.items()],
        ),
        "calibration": plots.chart(
            "Calibration curves",
            ("score: expected gain of strong", "P(strong better)"),
            [plots.Line(name, pair.knots) for name, pair in pairs.items()],
        ),
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """APGR of the artifact `new` minus that of `used`, with 95 % bounds, and figures."""

    value: float
    low: float
    high: float
    figures: Mapping[str, str]
    new: Artifact
    used: Artifact


def compare(new: Path, used: Path, files: Sequence[Path], activate: bool = False) -> Comparison:
    """Compare two artifacts on rows not marked `train`, paired.

    With `activate`, raises NotBetter unless `new` may take the place of `used`: it models every
    pair that `used` does, and for each pair whose model it changes there are MIN_LOCAL rows on
    which the lower bound of the difference is above zero.
    """
    rows = dataset.binary(dataset.read(files))
    held = [row for row in rows if row.split != "train"]
    if not held:
        raise TooFewRows("all rows are marked `train`; compare on rows that no model has seen")
    artifacts = _either(new), _either(used)
    if activate:
        _surely_better(*artifacts, held)
    first, second = (evaluation.score(one, held) for one in artifacts)
    gain = evaluation.gains(held)
    found = evaluation.difference(first.rank, second.rank, gain)
    figures = {
        "curve": plots.call_performance({"new": (first.rank, gain), "used": (second.rank, gain)}),
        "drift": plots.score_drift(second.rank.tolist(), first.rank.tolist()),
    }
    return Comparison(found.value, found.low, found.high, figures, *artifacts)


def _either(path: Path) -> Artifact:
    """One of several artifacts: a mistake says in which of them it is."""
    try:
        return load(path)
    except ArtifactError as error:
        raise ArtifactError(f"`{path}`: {error}") from error


def _surely_better(new: Artifact, used: Artifact, held: Sequence[Example]) -> None:
    own, before = set(new.pairs) - {ANY}, set(used.pairs) - {ANY}
    if before - own:
        lost = "`, `".join(sorted(before - own))
        raise NotBetter(f"the new one has no model of `{lost}`, which the one in use has")
    changed = [pair for pair in sorted(own) if _model(new, pair) != _model(used, pair)]
    if not changed:
        raise NotBetter("the new one has the models of the one in use: nothing would change")
    for pair in changed:
        rows = [row for row in held if row.pair == pair]
        low = float("nan")
        if len(rows) >= MIN_LOCAL:
            first, second = (evaluation.score(one, rows).rank for one in (new, used))
            low = evaluation.difference(first, second, evaluation.gains(rows)).low
        if not low > 0:
            raise NotBetter(
                f"lower bound of the difference for `{pair}` is {low:.3f} on {len(rows)} rows; it "
                f"must be above 0 on at least {MIN_LOCAL}. Keep the model in use and collect more "
                "labels"
            )


def _model(artifact: Artifact, pair: str) -> tuple[PairModel | None, object]:
    return artifact.pairs.get(pair), artifact.tables.get(pair)


def _drawn(
    artifact: Artifact, train: list[Example], test: list[Example], labels: int, seed: int
) -> tuple[Scores, Sequence[Example]]:
    pool = train or test
    inside, outside = evaluation.draw(pool, labels, seed)
    chosen = [pool[i] for i in inside]
    held = test if train and test else [pool[i] for i in outside]
    if not chosen or not held:
        raise TooFewRows(f"{labels} labels leave nothing to measure on {len(pool)} rows")
    if labels < CALIBRATE_BELOW:
        return evaluation.score(calibrated(artifact, chosen), held), held
    return evaluation.fit_and_score(chosen, held, artifact.common), held


def _evaluation(
    how: str,
    artifact: Artifact,
    parts: Sequence[tuple[Scores, Sequence[Example]]],
    bootstrap: int,
    clock: Callable[[], float],
    told: Told,
) -> Evaluation:
    reports = []
    for number, (scores, rows) in enumerate(parts):
        told("bounds by bootstrap", number, len(parts))
        reports.append(evaluation.report(scores, evaluation.gains(rows), bootstrap))
    told("bounds by bootstrap", len(parts), len(parts))
    timed = _timed(artifact, parts[0][1], clock)
    figures = _figures(artifact, parts, reports[0])
    return Evaluation(how, artifact.version(), tuple(reports), timed, figures)


def _figures(
    artifact: Artifact, parts: Sequence[tuple[Scores, Sequence[Example]]], first: Report
) -> dict[str, str]:
    curves_of = {
        f"draw {number + 1}" if len(parts) > 1 else "router": (scores.rank, evaluation.gains(rows))
        for number, (scores, rows) in enumerate(parts)
    }
    scores, rows = parts[0]
    better = (evaluation.gains(rows) > 0).astype(float)
    note = f", debiased ECE {first.ece_debiased:.3f}"
    found = {
        "curve": plots.call_performance(curves_of),
        "calibration": plots.calibration(scores.probability, better, note),
    }
    model = artifact.pairs.get(rows[0].pair)
    same = [row.pair == rows[0].pair for row in rows]
    if model is not None and all(same):
        now = evaluation.score(artifact, rows).rank.tolist()
        found["drift"] = plots.score_drift(model.quantiles, now)
    return found


def _timed(artifact: Artifact, rows: Sequence[Example], clock: Callable[[], float]) -> float:
    difficulty = Difficulty(artifact, rows[0].weak, rows[0].strong, find()[0])
    views = [row.view for row in rows[:_TIMED] if row.view.parts]
    if not views:
        return float("nan")
    started = clock()
    for view in views:
        difficulty.score(view)
    return (clock() - started) / len(views) * 1e6


def _mean(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)
