"""Presidio behind the interface of a classifier: its finds, its limits, and itself where it is."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from classifiers import presidio
from classifiers.patterns import KINDS
from classifiers.presidio import LIMIT, PACKAGE, RECOGNIZERS, Found, Presidio
from classifiers.suite import Suite
from classifiers.view import PromptView


@dataclass(frozen=True)
class Find:
    score: float


@dataclass
class Scripted:
    """A recognizer that finds one word, so sure."""

    word: str
    score: float
    supported_entities: list[str] = field(default_factory=lambda: ["WORD"])
    seen: list[str] = field(default_factory=list)

    def analyze(self, text: str, entities: list[str], nlp_artifacts: None) -> Sequence[Found]:
        assert entities == ["WORD"]
        self.seen.append(text)
        return [Find(self.score)] if self.word in text else []


def findings(classifier: Presidio, view: PromptView) -> tuple[list[str], frozenset[str]]:
    result = Suite([classifier], lambda: 0.0).run(view)
    assert all(found.source == "presidio" for found in result.findings)
    return [found.value for found in result.findings], result.opened


def test_a_kind_is_claimed_once_and_only_when_sure() -> None:
    asked = [
        ("card", Scripted("a", 1.0)), ("card", Scripted("b", 1.0)),
        ("tax_id", Scripted("c", 0.4)), ("national_id", Scripted("d", 0.5)),
    ]  # fmt: skip
    found = findings(Presidio(asked=asked), PromptView.of_text("a b c d"))
    assert found == (["card", "national_id"], frozenset())


def test_only_the_asked_kinds_are_looked_for() -> None:
    card, tax = Scripted("a", 1.0), Scripted("a", 1.0)
    one = Presidio("holds", frozenset({"card"}), [("card", card), ("tax_id", tax)])
    assert findings(one, PromptView.of_text("a")) == (["card"], frozenset())
    assert one.supplies == {"holds"}
    assert tax.seen == []


@pytest.mark.parametrize("end", [" " * LIMIT, ""])
def test_what_was_not_read_opens_and_keeps_what_was_found(end: str) -> None:
    content = [{"type": "text", "text": "a" + end}, *([] if end else [{"type": "image_url"}])]
    view = PromptView.of_chat({"messages": [{"role": "user", "content": content}]})
    recognizer = Scripted("a", 1.0)
    found = findings(Presidio(asked=[("card", recognizer)]), view)
    assert found == (["card"], frozenset({"contains"}))
    assert len(recognizer.seen[0]) <= LIMIT


def test_what_stands_beside_the_dialogue_is_looked_at() -> None:
    view = PromptView.of_chat({"messages": [], "metadata": {"n": "needle"}})
    assert findings(Presidio(asked=[("card", Scripted("needle", 1.0))]), view)[0] == ["card"]


def test_every_recognizer_has_a_kind() -> None:
    assert set(RECOGNIZERS.values()) <= set(KINDS)
    assert presidio.installed() == (importlib.util.find_spec(PACKAGE) is not None)


@pytest.mark.skipif(not presidio.installed(), reason=f"`{PACKAGE}` is not installed")
@pytest.mark.filterwarnings("ignore")
def test_presidio_itself() -> None:
    one = Presidio()
    text = "card 4111 1111 1111 1111, PESEL 44051401359, DE89370400440532013000, USt DE136695976"
    kinds, opened = findings(one, PromptView.of_text(text))
    assert {"card", "bank_account", "national_id"} <= set(kinds)
    assert opened == frozenset()
    assert findings(one, PromptView.of_text("order 12345678 of last week")) == ([], frozenset())


@pytest.mark.skipif(presidio.installed(), reason=f"`{PACKAGE}` is installed")
def test_without_the_extra_it_can_not_be_made() -> None:
    with pytest.raises(ImportError, match=PACKAGE):
        Presidio()
