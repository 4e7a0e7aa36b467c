"""A small world in which difficulty can be learned: proofs are hard, greetings are easy."""

from __future__ import annotations

import random

import pytest

from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.dataset import Example
from classifiers.difficulty.features import extract
from classifiers.difficulty.recipe import build
from classifiers.view import PromptView

EASY = "hello please name the colour of a sunny sky and say what day follows monday".split()  # noqa: SIM905
HARD = "prove that every compact metric lemma implies uniform convergence under curvature".split()  # noqa: SIM905
FILL = [f"word{i}" for i in range(200)]


def example(number: int, seed: int = 0, weak: str = "w", strong: str = "s") -> Example:
    """Half of the prompts are hard: there the weak model fails four times in five."""
    rng = random.Random(f"{seed}/{number}")
    hard = number % 2 == 0
    words = rng.choices(HARD if hard else EASY, k=rng.randint(4, 20))
    words += rng.choices(FILL, k=rng.randint(2, 20))
    rng.shuffle(words)
    view = PromptView.of_text(" ".join(words) + rng.choice(["?", ".", ""]))
    y_weak = float(rng.random() < (0.2 if hard else 0.9))
    return Example(
        weak, strong, y_weak, float(rng.random() < 0.9), f"source{number % 3}",
        "hard" if hard else "easy", "train" if number % 5 else "test", f"g{number}", view,
        extract(view),
    )  # fmt: skip


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    return [example(number) for number in range(400)]


@pytest.fixture(scope="session")
def fresh() -> list[Example]:
    return [example(number, seed=1) for number in range(400)]


@pytest.fixture(scope="session")
def artifact(examples: list[Example]) -> Artifact:
    return build(examples, "toy")
