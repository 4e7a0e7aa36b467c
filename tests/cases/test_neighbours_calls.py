"""Neighbours of the reports on tools: calls from servers that speak OpenAI's API almost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.built import built, outcomes
from tests.cases.test_neighbours_named import LIGHT
from tests.router.scripted import DONE, JSON, Reply, answer, event, stream


def piece(arguments: str, name: str | None = None, **more: object) -> bytes:
    function = {"arguments": arguments, **({"name": name} if name else {})}
    return event(tool_calls=[{**more, "function": function}])


STREAMS: dict[str, list[bytes]] = {
    "no number": [piece("", "f", id="a"), piece("", "g", id="b"),
                  piece('{"x":', id="a"), piece("{}", id="b"), piece("1}", id="a")],
    "no number, one after the other": [piece('{"x":', "f", id="a"), piece("1}"),
                                       piece("{}", "g", id="b")],
    "counted from one": [piece('{"x":', "f", id="a", index=1), piece("1}", index=1),
                         piece("{}", "g", id="b", index=2)],
    "all with one number": [piece('{"x":1}', "f", id="a", index=0),
                            piece("{", "g", id="b", index=0), piece("}", index=0)],
    "less than nothing": [piece('{"x":1}', "f", id="a", index=-1),
                          piece("{}", "g", id="b", index=-1)],
    "as it should be": [piece("", "f", id="a", index=0), piece("", "g", id="b", index=1),
                        piece("{}", index=1), piece('{"x":1}', index=0)],
}  # fmt: skip


def put_together(written: bytes) -> list[tuple[str, str, str]]:
    """The calls as the official client does it: a list, by numbers."""
    made: list[dict[str, str]] = []
    for data in written.split(b"\n\n"):
        chunk: Any = json.loads(data[6:]) if data[6:7] == b"{" else {"choices": []}
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                if call["index"] == len(made):
                    made.append({"id": "", "name": "", "arguments": ""})
                known, function = made[call["index"]], call["function"]
                known["id"] = known["id"] or call.get("id", "")
                known["name"] += function.get("name", "")
                known["arguments"] += function["arguments"]
    return [(one["id"], one["name"], one["arguments"]) for one in made]


@pytest.mark.parametrize("name", STREAMS)
async def test_streamed_calls_can_be_put_together(tmp_path: Path, name: str) -> None:
    """See SamSaffron/term-llm#314, AstrBotDevs/AstrBot#9593, open-webui/open-webui#27190."""
    pieces = [*STREAMS[name], DONE]
    async with built(tmp_path, lambda h, n: stream(*pieces), LIGHT) as world:
        done = await world.ask("eu", stream=True)
    assert put_together(done.written) == [("a", "f", '{"x":1}'), ("b", "g", "{}")]
    if name == "as it should be":
        assert done.written == b"".join(pieces).replace(b'"tiny"', b'"assistant"')
    assert outcomes(tmp_path)[0]["status"] == "ok"


async def test_arguments_are_a_text(tmp_path: Path) -> None:
    """See LostRuins/koboldcpp#1656."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": "é"}}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    body = json.dumps({"model": "tiny", "choices": [choice]}).encode()
    async with built(tmp_path, lambda h, n: Reply(200, JSON, [body]), LIGHT) as world:
        done = await world.ask("eu")
    told = json.loads(done.written)
    assert told["model"] == "assistant"
    (made,) = told["choices"][0]["message"]["tool_calls"]
    assert made == {**call, "function": {"name": "f", "arguments": '{"x":"é"}'}}


async def test_an_answer_without_calls_passes_as_it_is(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer('"tool_calls"'), LIGHT) as world:
        done = await world.ask("eu")
    assert json.loads(done.written)["choices"][0]["message"]["content"] == '"tool_calls"'
