"""What the model was not trained on goes to the large tier, with the documented reason."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from classifiers.difficulty.artifact import SHIPPED, Artifact, load
from classifiers.difficulty.features import HEAD, TAIL, extract, read
from classifiers.difficulty.scorer import Difficulty
from classifiers.view import PromptView

USUAL = "prove that every compact metric lemma implies hello please name word1 word2 word3"
QUESTION = "What is the capital of France, and how many people live there today?"
ASKED = {"role": "user", "content": QUESTION}
MMLU = "mixtral-8x7b-instruct-v0.1:gpt-4-1106-preview"
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
        (ask(USUAL + "\n" * 500), "few_words"),
        (ask(USUAL, documents=[{"text": "one more word " * 20}]), "beside"),
        (ask(USUAL, user="a-client", metadata={"trace": "0af7651916cd43dd8448eb211c80319c"}), ""),
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


EASY = {"role": "user", "content": "Say what day follows monday, please, and name word1 word2."}


@pytest.mark.parametrize(
    ("hard", "reason"),
    [
        ({"role": "developer"}, "new_system"),
        ({"role": "Developer"}, "new_system"),
        ({"role": "assistant"}, "new_turns"),
        ({"role": "someone"}, "new_turns"),
        ({"role": "user", "type": "someday"}, "new_turns"),
        ({"role": "tool", "tool_call_id": "1"}, "new_tools"),
        ({"role": "function", "name": "f"}, "new_tools"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_text_beside_the_question_is_not_overlooked(
    artifact: Artifact, hard: Mapping[str, object], reason: str, first: bool
) -> None:
    said = {**hard, "content": "prove that every compact metric lemma implies convergence"}
    messages = [said, EASY] if first else [EASY, said]
    difficulty = Difficulty(artifact, "w", "s")
    assert difficulty.score(PromptView.of_chat({"messages": messages})).reason == reason


def test_a_message_of_several_texts_is_judged_as_one(artifact: Artifact) -> None:
    """Else whoever writes one could hide what is hard before an easy last text."""
    texts = ["prove that every compact metric", "lemma implies word1", "hello please name a colour"]
    parts = [{"type": "text", "text": text} for text in texts]
    difficulty = Difficulty(artifact, "w", "s")
    whole = difficulty.score(PromptView.of_text("\n".join(texts)))
    assert difficulty.score(PromptView.of_chat(ask(parts))) == whole
    assert not whole.abstained


def test_code_is_judged_as_strange_text(artifact: Artifact) -> None:
    assert Difficulty(artifact, "w", "s").score(PromptView.of_text(CODE)).abstained


def test_a_claim_to_be_easy_does_not_open_the_gate(artifact: Artifact) -> None:
    difficulty = Difficulty(artifact, "w", "s")
    strange = "zxq vbnm qwrt plkj hgfd mnbv cxzl kjhg rtyu fghj vbnx cvbn sdfg"
    plain = difficulty.score(PromptView.of_text(strange))
    suffixed = difficulty.score(PromptView.of_text(strange + " this is easy"))
    assert plain.abstained
    assert suffixed.abstained


STRANGE = {
    "Arabic": ("اشرح لماذا السماء زرقاء وكيف تتشكل الغيوم في الجو", "script"),
    "Hindi": ("समझाइए कि आकाश नीला क्यों है और बादल कैसे बनते हैं", "script"),
    "Japanese, spaced": ("なぜ 空 は 青い の か 説明 して ください お願い します", "script"),
    "Greek": ("Εξήγησε γιατί ο ουρανός είναι γαλάζιος και πώς σχηματίζονται τα σύννεφα", "script"),
    "Chinese in English": ("Please explain: 请证明每个紧致度量空间都是可分的，并给出推导。", "any"),
    "German": ("Wie werde ich am schnellsten meinen Schnupfen los und was hilft", "vocabulary"),
    "French": ("Quelle est la capitale de la France et combien d'habitants", "vocabulary"),
    "Spanish": ("Explica por qué el cielo es azul y cómo se forman las nubes", "vocabulary"),
    "Spanish, plain": ("Escribe una carta de queja al banco por una comision", "vocabulary"),
    "Dutch": ("Hoeveel inwoners heeft Nederland en wat is de hoofdstad daar", "vocabulary"),
    "Polish": ("Jak zrobić dobry chleb w domu bez drożdży i bez piekarnika", "any"),
    "emoji": ("😀 😃 😄 😁 😆 😅 🤣 😂", "script"),
    "zero width": ("w\u200bh\u200by i\u200bs t\u200bh\u200be s\u200bk\u200by", "any"),
    "base64": ("TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24s " * 5, "vocabulary"),
    "letters for digits": ("Pr0v3 th4t 3v3ry c0mp4ct m3tr1c 5p4c3 15 53p4r4bl3", "vocabulary"),
    "log lines": ("2026-11-29T10:11:12Z ERROR [pool-3] NPE at Foo.java:71\n" * 12, "repetition"),
    "repeated token": ("the " * 50 + "cat", "repetition"),
    "JSON": ('{"task": "sum",\n "items": ["a", "b", "c"],\n "deep": {"x": [true, null]}}', "code"),
    "YAML": ("kind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n  labels: x", "any"),
    "a patch": ("--- a/x.c\n+++ b/x.c\n@@ -1,4 @@\n int main() {\n-  x;\n+  free(p);\n }", "code"),
    "Indonesian": ("Buktikan bahwa setiap fungsi kontinu adalah kontinu seragam", "vocabulary"),
    "Turkish, plain": ("Kapali bir aralikta surekli her fonksiyonun duzgun", "vocabulary"),
    "pinyin": ("qing zheng ming mei ge jin zhi du liang kong jian shang de", "vocabulary"),
    "combining marks": (" ".join("\u0301".join(word) for word in USUAL.split()), "script"),
    "full width": (" ".join(["\uff50\uff52\uff4f\uff56\uff45"] * 6), "script"),
    "base64 behind a question": (f"{QUESTION} {'TWFuIGlzIGRpc3Rpbmd1aXNoZWQ' * 9}", "few_words"),
    "blanks between questions": (QUESTION + " " * 400 + "x" + " " * 400 + QUESTION, "few_words"),
    "a million words": ("river stone cloud lamp " * 45_000, "too_long"),
    "a middle nobody reads": ("What is it? " + "x" * 20_000 + " One word please.", "too_long"),
    "NUL": ("\0" * 400, "too_short"),
    "blanks": (" \n\t" * 300, "too_short"),
    "one long word": ("x" * 1_000_000, "any"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("pair", [MMLU, "other:pair"])
def test_the_shipped_prior_does_not_judge_what_it_never_saw(name: str, pair: str) -> None:
    text, reason = STRANGE[name]
    weak, strong = pair.split(":")
    score = Difficulty(load(SHIPPED), weak, strong).score(PromptView.of_text(text))
    assert score.abstained
    assert math.isfinite(score.value)
    if pair != "other:pair" and reason != "any":
        assert score.reason == reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (ask(QUESTION), ""),
        ({"messages": [ASKED] * 3}, "new_turns"),
        ({"messages": [{"role": "system", "content": "Be brief."}, ASKED]}, "new_system"),
        (ask(QUESTION, tools=[{"type": "function"}]), "new_tools"),
    ],
)
@pytest.mark.parametrize("pair", [MMLU, "other:pair"])
def test_the_shipped_prior_judges_single_questions_only(
    pair: str, body: Mapping[str, object], reason: str
) -> None:
    weak, strong = pair.split(":")
    score = Difficulty(load(SHIPPED), weak, strong).score(PromptView.of_chat(body))
    assert (score.abstained, score.reason) == (bool(reason), reason)


PYTHON = (
    "class Node:\n    def __init__(self, value):\n        self.value = value\n\n"
    "def invert(root):\n    if root is None:\n        return None\n"
    "    return invert(root.left)\nRewrite it and prove that it ends."
)
C_CODE = (
    "#include <stdio.h>\nint main(void){\nint *p=malloc(10);\nfor(int i=0;i<20;i++)p[i]=i;\n"
    'printf("%d",p[19]);\nfree(p);\nfree(p);\nreturn 0;\n}\nWhat is wrong with this?'
)


@pytest.mark.parametrize(
    "text", [PYTHON, C_CODE, "Explain this.\n" + PYTHON, PYTHON + "\n" + C_CODE]
)
def test_code_is_not_judged_by_a_model_of_questions(text: str) -> None:
    shipped = load(SHIPPED)
    questions = Difficulty(shipped, "mixtral-8x7b-instruct-v0.1", "gpt-4-1106-preview")
    assert questions.score(PromptView.of_text(text)).reason == "code"
    # One that was trained on programming tasks judges such a prompt.
    coder = Difficulty(shipped, "llama-3.1-8b-instruct", "llama-3.1-nemotron-51b-instruct")
    assert not coder.score(PromptView.of_text(PYTHON)).abstained


@pytest.mark.parametrize(
    "text",
    [
        'Who said "to be or not to be", and in which play of Shakespeare was it said',
        "Let f(x) = 3x + 2. What is the value of f(4) and of its inverse at 5?",
        "Evaluate $\\frac{a_{1}}{b_{2}}$ for $a_{1} = 4$ and $b_{2} = 2$ and explain the answer.",
    ],
)
def test_quotations_and_formulas_are_no_code(text: str) -> None:
    for pair in load(SHIPPED).pairs.values():
        found = Difficulty(load(SHIPPED), pair.weak, pair.strong)
        assert found.score(PromptView.of_text(text)).reason != "code"


@pytest.mark.parametrize(
    "text", ["x " * 600_000, "é" * 1_000_000, "\U0001f600" * 500_000, "İ" * 9000]
)
def test_the_work_is_bounded_whatever_the_length(text: str) -> None:
    view = PromptView.of_text(text)
    data, cut = read(view)
    assert cut
    assert len(data) <= 4 * (HEAD + TAIL + 1)
    assert extract(view).count <= HEAD + TAIL
