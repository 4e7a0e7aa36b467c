"""The card says what the model is made of and what it cannot do."""

from __future__ import annotations

from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.card import render


def test_card_names_version_data_pairs_and_limits(artifact: Artifact) -> None:
    text = render(artifact)
    assert artifact.version() in text
    assert "| source0 | 134 |" in text
    assert "| w → s | 400 |" in text
    assert "any other pair" in text
    assert "Pairs do not transfer" in text
    assert "trained locally" in text
