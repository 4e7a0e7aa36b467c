"""The recipe repeats byte for byte and leaves out what must not be shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from classifiers.difficulty import commands
from classifiers.difficulty.artifact import ANY, SHIPPED, Artifact, load
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.recipe import ForbiddenSource, build, facts
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


def test_kept_back_rows_are_measured_for_the_card(
    artifact: Artifact, examples: list[Example], fresh: list[Example]
) -> None:
    built = build(examples, "toy", held=fresh)
    held = built.card["held"]
    assert isinstance(held, dict)
    assert held["w:s"]["n"] == 400
    value, low, high = held["w:s"]["apgr"]
    assert 0.6 < low < value < high
    assert built.pairs == artifact.pairs
    assert "held" not in artifact.card


TRAINED = """
import sys
from pathlib import Path
from classifiers.difficulty import commands
print(commands.train([Path(one) for one in sys.argv[2:]], Path(sys.argv[1])))
"""


@pytest.mark.parametrize("machine", ["Nehalem", "Haswell"])
def test_another_kind_of_processor_gives_the_same_bytes(
    machine: str, tmp_path: Path, examples: list[Example]
) -> None:
    files = []
    for name, part in {"a": examples[::2], "b": examples[1::2]}.items():
        rows = [{"prompt": e.view.question, "weak": e.weak, "strong": e.strong, "y_weak": e.y_weak,
                 "y_strong": e.y_strong, "group": e.group} for e in part]  # fmt: skip
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("\n".join(map(json.dumps, rows)))
    commands.train(files, tmp_path / "here.bin")
    # OpenBLAS then multiplies, and finds eigenvectors, as on that processor.
    other = {**os.environ, "OPENBLAS_CORETYPE": machine, "NPY_DISABLE_CPU_FEATURES": "X86_V3"}
    words = [sys.executable, "-c", TRAINED, tmp_path / "there.bin", *reversed(files)]
    subprocess.run([*map(str, words)], env=other, check=True, capture_output=True)
    assert (tmp_path / "there.bin").read_bytes() == (tmp_path / "here.bin").read_bytes()


@pytest.mark.slow
def test_the_recipe_gives_the_shipped_prior_byte_for_byte(dev_data: Path, tmp_path: Path) -> None:
    shipped = load(SHIPPED)
    here = facts([], {}, prior=True)["build"]
    if here != shipped.card["build"]:
        pytest.skip(f"it was built on {shipped.card['build']}, and here is {here}")
    sources = ("routellm_mmlu", "mmlu_pro", "llmrouter", "zeroeval")
    files = [
        dev_data / "classifier" / f"{source}.{part}.jsonl.gz"
        for source in sources for part in ("train", "dev")
    ]  # fmt: skip
    commands.train(files, tmp_path / "prior.bin", "prior", prior=True)
    assert (tmp_path / "prior.bin").read_bytes() == SHIPPED.read_bytes()
