"""The recipe repeats byte for byte and leaves out what must not be shipped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from classifiers.difficulty.artifact import ANY, Artifact
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.recipe import ForbiddenSource, build
from classifiers.difficulty.training import TooFewRows


def test_the_same_rows_give_the_same_bytes(artifact: Artifact, examples: list[Example]) -> None:
    assert build(examples, "toy").encode() == artifact.encode()


def test_pairs_with_enough_rows_and_one_for_all_others(examples: list[Example]) -> None:
    few = [replace(e, weak="other") for e in examples[:60]]
    told: list[str] = []
    built = build([*examples, *few], "toy", tell=told.append)
    assert set(built.pairs) == {"w:s", ANY}
    assert told == ["w:s", ANY]
    with pytest.raises(TooFewRows, match="200"):
        build(few, "toy")


@pytest.mark.parametrize("source", ["AlpacaEval", "cmmlu_dev", "routerbench"])
def test_forbidden_sources_stop_a_prior_only(examples: list[Example], source: str) -> None:
    rows = [*examples, replace(examples[0], source=source)]
    with pytest.raises(ForbiddenSource, match=source):
        build(rows, "toy", prior=True)
    assert build(rows, "toy").card["prior"] is False


def test_facts_name_data_and_build(artifact: Artifact) -> None:
    assert artifact.card["rows"] == 400
    assert artifact.card["sources"] == {"source0": 134, "source1": 133, "source2": 133}
    build_facts = artifact.card["build"]
    assert isinstance(build_facts, dict)
    assert set(build_facts) == {"python", "numpy", "scipy", "machine"}
