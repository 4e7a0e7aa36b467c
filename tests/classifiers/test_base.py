"""The contract is structural: a class with three members is a classifier."""

from __future__ import annotations

from collections.abc import Iterator

from classifiers.base import Classifier, Finding
from classifiers.view import PromptView


class Shouting:
    name = "shouting"
    supplies = frozenset({"tone"})

    def classify(self, view: PromptView) -> Iterator[Finding]:
        if view.question.isupper():
            yield Finding("tone", "loud", self.name)


def test_a_plain_class_is_a_classifier() -> None:
    classifier: Classifier = Shouting()
    assert list(classifier.classify(PromptView.of_text("HELP"))) == [
        Finding("tone", "loud", "shouting")
    ]
    assert not list(classifier.classify(PromptView.of_text("help")))
