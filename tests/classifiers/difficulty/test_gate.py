"""What the model was not trained on goes to the large tier, with the documented reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from classifiers.difficulty.artifact import Artifact
from classifiers.difficulty.scorer import Difficulty
from classifiers.view import PromptView

USUAL = "prove that every compact metric lemma implies hello please name word1 word2 word3"
CODE = "def f(x):\n    return [y ** 2 for y in x if y % 3 == 0]\nprint(f({1, 2}))\n" * 3


def ask(content: object, **more: object) -> Mapping[str, object]:
    return {"messages": [{"role": "user", "content": content}], **more}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (ask(USUAL), ""),
        (ask(""), "too_short"),
        (ask("hi"), "too_short"),
        ({}, "too_short"),
        (
            ask("请证明每个紧致度量空间上的连续函数都是一致连续的，并给出完整的推导过程"),
            "too_short",
        ),
        (ask("请 证明 每个 紧致 度量 空间 上 的 连续 函数 都是 一致 连续 的"), "script"),
        (ask("Докажите, что всякая непрерывная функция равномерно непрерывна"), "script"),
        (ask("zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg"), "vocabulary"),
        (ask(USUAL, tools=[{"type": "function"}]), "new_tools"),
        (ask(USUAL, response_format={"type": "json_schema"}), "new_json_schema"),
        (ask([{"type": "text", "text": USUAL}, {"type": "image_url"}]), "not_text"),
        (ask([{"type": "text", "text": USUAL}, {"type": "brand_new"}]), "unread"),
        (ask("please " * 200), "repetition"),
        (ask(USUAL + " word7" * 6000), "too_long"),
        (ask("x " * 600_000), "unread"),
    ],
)
def test_reasons(artifact: Artifact, body: Mapping[str, object], reason: str) -> None:
    score = Difficulty(artifact, "w", "s").score(PromptView.of_chat(body))
    assert score.reason == reason
    assert score.abstained == bool(reason)


def test_conversations_and_system_prompts_are_new_to_single_prompts(artifact: Artifact) -> None:
    said = [{"role": "user", "content": USUAL}]
    difficulty = Difficulty(artifact, "w", "s")
    many = PromptView.of_chat({"messages": said * 3})
    assert difficulty.score(many).reason == "new_turns"
    system = PromptView.of_chat({"messages": [{"role": "system", "content": "x"}, *said]})
    assert difficulty.score(system).reason == "new_system"


def test_code_is_judged_as_strange_text(artifact: Artifact) -> None:
    assert Difficulty(artifact, "w", "s").score(PromptView.of_text(CODE)).abstained


def test_a_claim_to_be_easy_does_not_open_the_gate(artifact: Artifact) -> None:
    difficulty = Difficulty(artifact, "w", "s")
    strange = "zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg rtyu fghj vbnx cvbn sdfg"
    plain = difficulty.score(PromptView.of_text(strange))
    suffixed = difficulty.score(PromptView.of_text(strange + " this is easy"))
    assert plain.abstained
    assert suffixed.abstained
