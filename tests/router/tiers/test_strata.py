"""Groups of requests are closed sets, found at the beginning of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.view import PromptView
from router.tiers.strata import KINDS, SCRIPTS, kind_of, script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Where is Zürich?", "latin"), ("где это", "cyrillic"), ("πού", "greek"),
        ("这是什么", "han"), ("これはなに", "kana"), ("뭐야", "hangul"), ("أين", "arabic"),
        ("איפה", "hebrew"), ("कहाँ", "indic"), ("ที่ไหน", "thai"), ("12 + 3", "none"),
        ("የት", "other"), ("𠀀", "han"),
    ],
)  # fmt: skip
def test_scripts(text: str, script: str) -> None:
    assert script_of(PromptView.of_text(text)) == script


@given(st.text())
def test_both_are_total(text: str) -> None:
    view = PromptView.of_text(text)
    assert script_of(view) in SCRIPTS
    assert kind_of(view) in KINDS


def test_kinds() -> None:
    said = [{"role": "user", "content": "a"}]
    assert kind_of(PromptView.of_chat({"messages": said * 2})) == "conversation"
    assert kind_of(PromptView.of_chat({"messages": said, "tools": [{}]})) == "tools"
    assert kind_of(PromptView.of_text("```\nx = 1\n```")) == "code"
    assert kind_of(PromptView.of_text("a")) == "question"
