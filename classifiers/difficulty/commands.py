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
from time import thread_time
from typing import Final

import numpy as np

from classifiers.difficulty import dataset, evaluated, evaluation, plots, recipe
from classifiers.difficulty.artifact import (
    ANY,
    SHIPPED,
    Artifact,
    ArtifactError,
    PairModel,
    load,
    save,
)
from classifiers.difficulty.calibration import platt_knots
from classifiers.difficulty.card import render
from classifiers.difficulty.compiled import find
from classifiers.difficulty.curves import floor_points
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.evaluated import Evaluation, Part, Told, untold
from classifiers.difficulty.evaluation import NoRows
from classifiers.difficulty.scorer import Difficulty
from classifiers.difficulty.training import TooFewRows

MEASURED: Final = SHIPPED.with_name("prior.measured.jsonl")
DRAWS: Final = 6
CALIBRATE_BELOW: Final = 500
MIN_LOCAL: Final = 200
"""Fewer labels than this cannot switch grading on."""


class NotBetter(Exception):
    """The new model's lower confidence bound is not above the one in use."""


def evaluate(
    files: Sequence[Path],
    pair: str | None = None,
    labels: int | None = None,
    model: Path = SHIPPED,
    bootstrap: int = evaluation.DRAWS,
    clock: Callable[[], float] = thread_time,
    told: Told = untold,
    draw: bool = True,
) -> Evaluation:
    """Measure on labelled rows. Without `pair` the artifact at `model` scores every row.

    With `pair` (`WEAK:STRONG`) a model is fitted on the training rows, or on `labels` of them
    drawn DRAWS times, and measured on the others; below CALIBRATE_BELOW labels the artifact
    is calibrated on them, not replaced. `labels` without `pair` are of the only pair of the rows.
    `draw`: make figures, too.
    Raises RowError, ArtifactError, NoRows, TooFewRows.
    """
    told("reading rows", 0, 1)
    read = dataset.read(files, lambda rows: told(f"reading rows ({rows:,})", 0, 1))
    if not read:
        raise NoRows("the files hold no rows")
    said = _cut(read)
    artifact, rows = _either(model), dataset.binary(read)
    if pair is None and labels is None:
        how, parts = _as_it_is(rows, artifact, told)
    else:
        how, parts = _of_pair(rows, pair or _only_pair(rows), labels, artifact, told)
    found = evaluated.measured(how, artifact, parts, bootstrap, clock, told, draw)
    return replace(found, said=said) if said else found


def _cut(rows: Sequence[Example]) -> tuple[str, ...]:
    """What to know of outcomes that are neither 0 nor 1."""
    between = sum(not {row.y_weak, row.y_strong} <= {0.0, 1.0} for row in rows)
    said = f"outcomes of {between} rows are between 0 and 1: they were cut at 0.5"
    return (said,) if between else ()


def _as_it_is(rows: Sequence[Example], artifact: Artifact, told: Told) -> tuple[str, list[Part]]:
    held = [row for row in rows if row.split != "train"] or list(rows)
    own = len(held) == len(rows) and held[0].split == "train"
    how = "artifact on its own training rows" if own else "artifact"
    scores = evaluation.score(artifact, held, lambda done: told("scoring", done, len(held)))
    return how, [(scores, held)]


def _of_pair(
    rows: Sequence[Example], pair: str, labels: int | None, artifact: Artifact, told: Told
) -> tuple[str, list[Part]]:
    own = [row for row in rows if row.pair == pair]
    if not own:
        raise TooFewRows(f"no rows of pair `{pair}`; {_there(rows, pair)}")
    train = [row for row in own if row.split == "train"]
    test = [row for row in own if row.split != "train"]
    if labels is not None:
        parts = []
        for seed in range(DRAWS):
            told("draws of labels", seed, DRAWS)
            parts.append(_drawn(artifact, train, test, labels, seed))
        how = "calibrated" if labels < CALIBRATE_BELOW else "trained"
        return f"{labels} labels, {how}", parts
    told("training", 0, 1)
    if train and test:
        fitted = evaluation.fit_and_score(train, test, artifact.common)
        return "trained on split train", [(fitted, test)]
    if test and pair in artifact.pairs:
        return "artifact", [(evaluation.score(artifact, test), test)]
    fit = partial(evaluation.fit_and_score, common=artifact.common)
    return "grouped 5-fold", [(evaluation.cross_validated(own, fit), own)]


def train(
    files: Sequence[Path],
    output: Path,
    name: str = "local",
    prior: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> str:
    """Train all pairs of the files' training rows (see `dataset.parted`); return version.

    `tell` is called with each pair before its training, `note` with what to know of the rows.

    The other rows are kept back, and measured for the card. Files are read in the order of their
    names, so that the same files give the same bytes in whatever order they are given.
    """
    rows = dataset.read(sorted(files, key=lambda file: (file.name, str(file))))
    if not rows:
        raise NoRows("the files hold no rows")
    for said in _cut(rows):
        note(said)
    own, held = dataset.parted(dataset.binary(rows))
    if not own:
        named = "`, `".join(sorted({row.split for row in rows if row.split}))
        raise NoRows(f"no row is to train on: `split` is `{named}`, never `train`")
    common = None if prior else load(SHIPPED).common
    artifact = recipe.build(own, name, prior, tell, held, common)
    for pair in sorted({row.pair for row in own} - set(artifact.pairs)):
        prompts = len({row.group for row in own if row.pair == pair})
        note(f"`{pair}` has no model: {prompts} different prompts of {recipe.MIN_PAIR}")
    return save(artifact, output)


def calibrate(
    files: Sequence[Path], pair: str, output: Path, model: Path = SHIPPED, name: str = "local"
) -> tuple[str, dict[str, str]]:
    """Fit the probabilities of one pair to local labels and write a new artifact.

    The order of prompts stays that of `model`. Returns the version and a figure: `calibration`
    before and after. Raises TooFewRows below MIN_LOCAL labels.
    """
    read = dataset.binary(dataset.read(files))
    rows = [row for row in read if row.pair == pair]
    different = len({row.group for row in rows})
    if different < MIN_LOCAL:
        there = "" if rows or not read else f"; {_there(read, pair)}"
        raise TooFewRows(
            f"{different} labels of `{pair}`; at least {MIN_LOCAL} of different prompts are "
            f"needed{there}"
        )
    before = _either(model)
    after = replace(calibrated(before, rows), name=name)
    return save(after, output), _before_and_after(before, after, rows)


def _before_and_after(before: Artifact, after: Artifact, rows: Sequence[Example]) -> dict[str, str]:
    better = (evaluation.gains(rows) > 0).astype(float)
    named = {"before": before, f"after, on the same {len(rows)} labels": after}
    return {
        "calibration": plots.calibrations(
            [
                plots.calibrated_bins(evaluation.score(one, rows).probability, better, said)
                for said, one in named.items()
            ]
        )
    }


def calibrated(artifact: Artifact, rows: Sequence[Example]) -> Artifact:
    """The artifact with a model for the rows' pair whose probabilities fit the rows.

    The rows ordered nothing, so what they say of quality at each share is an honest bound.
    """
    difficulty = Difficulty(artifact, rows[0].weak, rows[0].strong)
    values = np.array([difficulty.judge(row.features, row.view).value for row in rows])
    fitted: PairModel = replace(
        difficulty.model, weak=rows[0].weak, strong=rows[0].strong, rows=len(rows),
        floor=floor_points(values, evaluation.gains(rows), groups=evaluation.groups_of(rows)),
        knots=platt_knots(values, evaluation.gains(rows) > 0),
        quantiles=tuple(float(q) for q in np.quantile(values, np.linspace(0, 1, 101)).round(9)),
    )  # fmt: skip
    tables = artifact.tables[difficulty.model.name]
    card = recipe.calibrated_facts(artifact, fitted.name, rows)
    return replace(artifact, card=card, pairs={fitted.name: fitted}, tables={fitted.name: tables})


def card(model: Path = SHIPPED) -> str:
    """The model card in Markdown; that of the shipped artifact has its benchmark in it."""
    artifact = _either(model)
    return render(artifact, find()[1], measured(artifact))


def measured(artifact: Artifact, file: Path = MEASURED) -> list[dict[str, object]]:
    """The sections that the benchmark printed of this artifact; none of any other."""
    sections = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    own = any(section.get("version") == artifact.version() for section in sections)
    return sections if own else []


def card_figures(model: Path = SHIPPED) -> dict[str, str]:
    """What the artifact itself says, as SVG texts: `bound` and `calibration`."""
    pairs = _either(model).pairs
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
    """Compare two artifacts on the rows that `train` keeps back (see `dataset.parted`), paired.

    With `activate`, raises NotBetter unless `new` may take the place of `used`: it models every
    pair that `used` does, and for each pair whose model it changes there are MIN_LOCAL rows on
    which the lower bound of the difference is above zero.
    """
    rows = dataset.binary(dataset.read(files))
    if not rows:
        raise NoRows("the files hold no rows")
    held = dataset.parted(rows)[1]
    if not held:
        raise TooFewRows("all rows are to train on; compare on rows that no model has seen")
    artifacts = _either(new), _either(used)
    if activate:
        _surely_better(*artifacts, held)
    first, second = (evaluation.score(one, held) for one in artifacts)
    gain = evaluation.gains(held)
    groups = evaluation.groups_of(held)
    found = evaluation.difference(first.rank, second.rank, gain, groups=groups)
    figures = {"drift": plots.score_drift(second.rank.tolist(), first.rank.tolist())}
    if gain.mean() > 0:
        both = {"new": (first.rank, gain), "used": (second.rank, gain)}
        figures["call_performance"] = plots.call_performance(both, groups)
    return Comparison(found.value, found.low, found.high, figures, *artifacts)


def _only_pair(rows: Sequence[Example]) -> str:
    pairs = sorted({row.pair for row in rows})
    if len(pairs) > 1:
        raise TooFewRows(f"labels of which pair? {_there(rows, '')}")
    return pairs[0]


def _there(rows: Sequence[Example], pair: str) -> str:
    """Which pairs the files have, for who asked for another one."""
    for row in rows:
        if pair == f"{row.strong}:{row.weak}":
            return f"the files have it the other way round: `{row.pair}`"
    return "the files have " + ", ".join(sorted({row.pair for row in rows}))


def _either(path: Path) -> Artifact:
    """The artifact in a file: a mistake says in which."""
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
        groups = evaluation.groups_of(rows)
        different, low = len(set(groups)), float("nan")
        if different >= MIN_LOCAL:
            first, second = (evaluation.score(one, rows).rank for one in (new, used))
            gain = evaluation.gains(rows)
            low = evaluation.difference(first, second, gain, groups=groups).low
        if not low > 0:
            raise NotBetter(
                f"lower bound of the difference for `{pair}` is {low:.3f} on {different} rows of "
                f"different prompts; it must be above 0 on at least {MIN_LOCAL} that `train` kept "
                "back. Keep the model in use and collect more labels"
            )


def _model(artifact: Artifact, pair: str) -> tuple[PairModel | None, object]:
    return artifact.pairs.get(pair), artifact.tables.get(pair)


def _drawn(
    artifact: Artifact, train: list[Example], test: list[Example], labels: int, seed: int
) -> Part:
    pool = train or test
    if labels > len(pool):
        raise TooFewRows(f"{labels} labels are asked for, and {len(pool)} rows can be drawn from")
    inside, outside = evaluation.draw(pool, labels, seed)
    chosen = [pool[i] for i in inside]
    held = test if train and test else [pool[i] for i in outside]
    if not chosen or not held:
        raise TooFewRows(f"{labels} labels leave nothing to measure on {len(pool)} rows")
    if labels < CALIBRATE_BELOW:
        return evaluation.score(calibrated(artifact, chosen), held), held
    return evaluation.fit_and_score(chosen, held, artifact.common), held
