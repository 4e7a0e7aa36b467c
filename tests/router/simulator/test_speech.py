from __future__ import annotations

import json

import pytest

from router.simulator.speech import blocked, speak
from router.simulator.vllm_api import ApiError, Call, Tool


def call(last: str = "hi", *, tools: tuple[str, ...] = (), limit: int | None = None) -> Call:
    offered = tuple(Tool(name, {"properties": {"n": {"type": "integer"}}}) for name in tools)
    return Call("m", last, last, True, False, True, limit, False, offered, ())


def test_blocks_follow_each_other_and_every_fragment_is_a_token() -> None:
    said = speak(call("call a and b", tools=("a", "b")), 1, 1000, reasoning=True)
    assert [fragment.block for fragment in said.fragments] == sorted(
        fragment.block for fragment in said.fragments
    )
    kinds = {fragment.block: fragment.kind for fragment in said.fragments}
    assert kinds == {0: "signature", 1: "text", 2: "tool", 3: "tool"}
    assert said.tokens == len(said.fragments)
    assert said.stop_reason == "tool_use"
    for block, tool in zip((2, 3), said.tools, strict=True):
        opening, *rest = [fragment for fragment in said.fragments if fragment.block == block]
        assert (opening.text, opening.id, opening.name) == ("", tool.id, tool.name)
        assert isinstance(json.loads("".join(fragment.text for fragment in rest))["n"], int)


def test_plain_text_is_seeded_and_limited() -> None:
    one, same, other = (speak(call(), seed, 1000) for seed in (1, 1, 2))
    assert one == same != other
    assert {fragment.kind for fragment in one.fragments} == {"text"}
    cut = speak(call(limit=2), 1, 1000)
    assert (cut.stop_reason, cut.tokens) == ("max_tokens", 2)
    with pytest.raises(ApiError, match="maximum context length"):
        speak(call("word " * 50), 1, 40)


def test_a_guardrail_answers_with_its_own_words() -> None:
    said = blocked(call(), "no")
    assert (said.pieces, said.stop_reason, said.tokens) == (("no",), "guardrail_intervened", 1)
