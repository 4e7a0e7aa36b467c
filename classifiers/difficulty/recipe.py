"""The recipe of an artifact: every pair of the rows, then one model for pairs without their own.

Run twice on the same rows, lock and kind of machine it gives the same bytes; the card names both.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import scipy
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from classifiers.difficulty import commonness, curves, evaluation
from classifiers.difficulty.artifact import ANY, Artifact, PairModel, Tables
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.training import TooFewRows, Trained, train_any, train_pair

LICENCES: Final[Mapping[str, str]] = {
    "routellm_mmlu": "MMLU: MIT; outcomes: RouteLLM, Apache-2.0",
    "mmlu_pro": "MMLU-Pro: MIT; outcomes: Apache-2.0",
    "llmrouter": "twelve tasks, permissive or CC; outcomes: LLMRouter, MIT",
    "zeroeval_crux": "CRUXEval: MIT; outcomes: ZeroEval, Apache-2.0",
    "zeroeval_math_l5": "MATH: MIT (was subject to a takedown); outcomes: ZeroEval, Apache-2.0",
}
"""Licences of the sources of the shipped prior, as commonly stated on 2026-11-29."""

NEVER: Final = ("alpaca", "cmmlu", "routerbench")
"""Sources that no shipped artifact may contain: non-commercial, or not cleared."""

MIN_PAIR: Final = 200
HELD_DRAWS: Final = 500


class ForbiddenSource(Exception):
    """A row comes from a source that a prior must not contain."""


def build(
    examples: Sequence[Example],
    name: str,
    prior: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    held: Sequence[Example] = (),
    common: bytes | None = None,
) -> Artifact:
    """Train all pairs with MIN_PAIR different prompts and more, and the model of any pair.

    `held`: rows kept back from training, which the card then holds measurements of.
    `common`: how common words are; counted over the examples if not given.
    `prior`: the artifact is to be shipped, so forbidden sources are refused and licences listed.
    `tell` is called with each pair before its training. Raises TooFewRows, ForbiddenSource.
    """
    if prior:
        _permitted(examples)
    # More threads add in another order, and the last digit would change from run to run.
    with threadpool_limits(limits=1):
        levels = commonness.counted(e.features for e in examples) if common is None else common
        artifact = _build(examples, name, prior, tell, levels)
        measured = {"held": {pair: _measured(artifact, rows) for pair, rows in _by_pair(held)}}
        return replace(artifact, card={**artifact.card, **measured}) if held else artifact


def _by_pair(examples: Sequence[Example]) -> list[tuple[str, list[Example]]]:
    groups: dict[str, list[Example]] = {}
    for example in examples:
        groups.setdefault(example.pair, []).append(example)
    return sorted(groups.items())


def _measured(artifact: Artifact, held: Sequence[Example]) -> dict[str, object]:
    """What a card says of rows that the artifact was not trained on; intervals are 95 %."""
    gain = evaluation.gains(held)
    scores = evaluation.score(artifact, held)
    found = evaluation.report(scores, gain, HELD_DRAWS, groups=evaluation.groups_of(held))
    intervals = {"apgr": found.apgr, "cpt50": found.cpt50, "cpt80": found.cpt80}
    numbers = {"ece_debiased": found.ece_debiased, "abstained": found.abstained}
    return {
        "n": found.n,
        **{
            k: found.unsaid or [round(v, 3) for v in (i.value, i.low, i.high)]
            for k, i in intervals.items()
        },
        **{k: round(v, 4) for k, v in numbers.items()},
    }


def _build(
    examples: Sequence[Example],
    name: str,
    prior: bool,
    tell: Callable[[str], None],
    common: bytes,
) -> Artifact:
    trained: dict[str, Trained] = {}
    for pair, rows in _by_pair(examples):
        if len({row.group for row in rows}) >= MIN_PAIR:
            tell(pair)
            trained[pair] = train_pair(rows, rows[0].weak, rows[0].strong, common)
    if not trained:
        counts = {pair: len({row.group for row in rows}) for pair, rows in _by_pair(examples)}
        raise TooFewRows(
            f"no pair has {MIN_PAIR} different prompts to train on ("
            f"{', '.join(f'{pair}: {count}' for pair, count in counts.items())}); "
            "collect more outcomes"
        )
    tell(ANY)
    trained[ANY] = train_any(examples, common)
    pairs: dict[str, PairModel] = {key: one.model for key, one in trained.items()}
    tables: dict[str, Tables] = {key: one.tables for key, one in trained.items()}
    return Artifact(name, facts(examples, trained, prior), pairs, tables, common)


def facts(
    examples: Sequence[Example], trained: Mapping[str, Trained], prior: bool
) -> dict[str, object]:
    """What the model card says about data, build and training; JSON values only."""
    sources = Counter(e.source for e in examples)
    return {
        "prior": prior,
        "rows": len(examples),
        "sources": {source: sources[source] for source in sorted(sources)},
        "licences": {s: LICENCES.get(s, "as given by the operator") for s in sorted(sources)},
        "build": {
            "python": ".".join(platform.python_version_tuple()[:2]),
            "numpy": np.__version__, "scipy": scipy.__version__, "machine": platform.machine(),
        },
        "left_out": {pair: _left_out(examples, one) for pair, one in sorted(trained.items())},
    }  # fmt: skip


def calibrated_facts(artifact: Artifact, pair: str, labels: Sequence[Example]) -> dict[str, object]:
    """What the card says of one pair that was calibrated on `labels`: what it has of `artifact`,
    without what was measured of other pairs, or with other probabilities."""
    left_out = artifact.card.get("left_out")
    own = {k: v for k, v in left_out.items() if k == pair} if isinstance(left_out, Mapping) else {}
    sources = Counter(e.source for e in labels)
    return {
        **{k: v for k, v in artifact.card.items() if k != "held"},
        "prior": False, "left_out": own, "calibrated_from": artifact.version(),
        "labels": {source: sources[source] for source in sorted(sources)},
    }  # fmt: skip


def _left_out(examples: Sequence[Example], trained: Trained) -> dict[str, float]:
    own = [e for e in examples if trained.model.name in (ANY, e.pair)]
    gain = np.array([e.y_strong - e.y_weak for e in own])
    return {
        "apgr": round(curves.apgr(trained.gains, gain), 3),
        "cpt50": round(curves.cpt(trained.gains, gain, 0.5), 3),
        "cpt80": round(curves.cpt(trained.gains, gain, 0.8), 3),
    }


def _permitted(examples: Sequence[Example]) -> None:
    for source in sorted({e.source for e in examples}):
        if any(name in source.lower() for name in NEVER):
            raise ForbiddenSource(f"`{source}` must not be in a shipped artifact; leave it out")
