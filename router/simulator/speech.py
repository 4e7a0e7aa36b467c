"""What a simulated model says, in blocks: reasoning, text, tool calls; one token a fragment."""

from __future__ import annotations

from dataclasses import dataclass

from router.simulator import text
from router.simulator.vllm_api import Call, ToolCall, answer

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


@dataclass(frozen=True, slots=True)
class Fragment:
    """One token: its block number, kind (reasoning, signature, text, tool) and text.

    The first fragment of a tool block has no text, but the call's id and name.
    """

    block: int
    kind: str
    text: str
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Speech:
    """An answer in blocks. `stop_reason` in Anthropic's and Bedrock's words."""

    id: str
    reasoning: tuple[str, ...]
    pieces: tuple[str, ...]
    tools: tuple[ToolCall, ...]
    stop_reason: str
    prompt_tokens: int
    signature: str
    fragments: tuple[Fragment, ...]

    @property
    def tokens(self) -> int:
        """Number of tokens that come out."""
        return len(self.fragments)


def speak(call: Call, seed: int, context: int, *, reasoning: bool = False) -> Speech:
    """The seeded model's answer, with a few words before tool calls and reasoning if wanted.

    `vllm_api.ApiError` if it does not fit the context.
    """
    output = answer(call, seed, context)
    rng = text.generator(seed, "speech", call.model, call.prompt)
    pieces = output.pieces or tuple(text.words(rng, 5))
    thoughts = tuple(text.words(rng, 6)) if reasoning else ()
    signature = f"{rng.getrandbits(128):032x}"
    name = output.id.partition("-")[2]
    return Speech(
        name, thoughts, pieces, output.tools, _STOPS[output.finish], output.prompt_tokens,
        signature, _fragments(thoughts, signature, pieces, output.tools),
    )  # fmt: skip


def _fragments(
    thoughts: tuple[str, ...], signature: str, pieces: tuple[str, ...], tools: tuple[ToolCall, ...]
) -> tuple[Fragment, ...]:
    found = [Fragment(0, "reasoning", piece) for piece in thoughts]
    if thoughts:
        found.append(Fragment(0, "signature", signature))
    block = 1 if thoughts else 0
    found.extend(Fragment(block, "text", piece) for piece in pieces)
    for tool in tools:
        block += 1
        found.append(Fragment(block, "tool", "", tool.id, tool.name))
        found.extend(Fragment(block, "tool", piece) for piece in tool.pieces)
    return tuple(found)


def blocked(call: Call, words: str) -> Speech:
    """The fixed answer of a guardrail that intervened."""
    fragments = (Fragment(0, "text", words),)
    return Speech(
        "blocked", (), (words,), (), "guardrail_intervened", len(text.tokenize(call.prompt)), "",
        fragments,
    )  # fmt: skip
