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


NONE: list[dict[str, object]] = [{}, {"id": None, "type": None}, {"id": "", "type": ""}]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("without", NONE)
async def test_each_call_can_be_answered(
    tmp_path: Path, without: dict[str, object], streamed: bool
) -> None:
    """Without an id its result can't be told from others', and clients end. Nor can arguments that
    are nothing be read. See strands-agents/harness-sdk#1259, run-llama/llama_index#19789."""
    named: list[Any] = [{"name": name, "arguments": None} for name in "fg"]
    calls = [{**without, "function": dict(one)} for one in named]
    events = [event(tool_calls=[{"index": at, **one}]) for at, one in enumerate(calls)]
    body = promise("tool_calls", message={"role": "assistant", "tool_calls": calls})
    reply = stream(*events, DONE) if streamed else Reply(200, JSON, [body])
    async with built(tmp_path, lambda h, n: reply, LIGHT) as world:
        done = await world.ask("eu", stream=streamed)
    if streamed:
        made = put_together(done.written)
    else:
        message = json.loads(done.written)["choices"][0]["message"]
        made = [(one["id"], *one["function"].values()) for one in message["tool_calls"]]
        assert {one["type"] for one in message["tool_calls"]} == {"function"}
    assert [one[1:] for one in made] == [(name, "" if streamed else "{}") for name in "fg"]
    assert len({one[0] for one in made} - {""}) == 2


async def test_what_a_call_was_told_is_not_taken_back(tmp_path: Path) -> None:
    """Clients that take each member for news lose its name: anomalyco/opencode#43328, #37841."""
    first = event(tool_calls=[{"index": 0, "id": "a", "type": "function",
                               "function": {"name": "f", "arguments": "{"}}])  # fmt: skip
    more = [event(tool_calls=[{"index": 0, "id": none, "type": none,
                               "function": {"name": none, "arguments": said}}])
            for none, said in ((None, '"x":'), ("", "1}"))]  # fmt: skip
    async with built(tmp_path, lambda h, n: stream(first, *more, DONE), LIGHT) as world:
        done = await world.ask("eu", stream=True)
    assert put_together(done.written) == [("a", "f", '{"x":1}')]
    assert b'"type":null' not in done.written.replace(b" ", b"")
    assert (done.written.count(b'"id":"a"') + done.written.count(b'"id": "a"')) == 1
    assert done.written.count(b'"name"') == 1


@pytest.mark.parametrize("streamed", [True, False])
async def test_arguments_too_deep_to_be_written_are_no_answer(
    tmp_path: Path, streamed: bool
) -> None:
    """The next endpoint is asked, as after any answer that can't be read."""
    deep: dict[str, Any] = {}
    for _ in range(260):
        deep = {"x": deep}
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": deep}}
    choice = {"index": 0, "delta" if streamed else "message": {"tool_calls": [call]}}
    body = json.dumps({"model": "tiny", "choices": [choice]}).encode()
    reply, well = Reply(200, JSON, [body]), answer()
    if streamed:
        reply, well = stream(b"data: " + body + b"\n\n", DONE), stream(event(content="x"), DONE)
    async with built(tmp_path, lambda h, n: reply if h == "fra1" else well, LIGHT) as world:
        done = await world.ask("eu", stream=streamed)
    assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par")


async def test_an_answer_without_calls_passes_as_it_is(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer('"tool_calls"'), LIGHT) as world:
        done = await world.ask("eu")
    assert json.loads(done.written)["choices"][0]["message"]["content"] == '"tool_calls"'


def promise(reason: str, **message: object) -> bytes:
    choice = {"index": 0, "finish_reason": reason, **message}
    return json.dumps({"model": "tiny", "choices": [choice]}).encode()


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("reason", ["tool_calls", "function_call"])
async def test_a_promise_of_calls_without_any_is_no_answer(
    tmp_path: Path, reason: str, streamed: bool
) -> None:
    """Agents ask the same again, for ever. See Kilo-Org/kilocode#7773, mastra-ai/mastra#14187."""

    def script(host: str, number: int) -> Reply:
        if not streamed:
            message = {"role": "assistant", "content": "", "tool_calls": []}
            body = promise(reason, message=message)
            return Reply(200, JSON, [body]) if host == "fra1" else answer()
        end = b"data: %b\n\n" % promise(reason, delta={})
        if host == "fra1":
            return stream(event(role="assistant", content=""), end, DONE)
        return stream(event(content="b"), DONE)

    async with built(tmp_path, script, LIGHT) as world:
        for _ in range(5):  # and one client that brings it about blames nobody
            done = await world.ask("eu", stream=streamed)
            assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par")
        assert world.transport.at("fra1") == 5
        assert world.router.live.health.marked(world.router.live.loop_time()) == ()


@pytest.mark.parametrize("before", [True, False])
async def test_nor_is_a_malformed_one_or_blames_anybody(tmp_path: Path, before: bool) -> None:
    """As Gemini tells it: which call was malformed, the request brought about."""
    end = b"data: %b\n\n" % promise("malformed_function_call", delta={})
    said = [event(content="so")] if before else []

    def script(host: str, number: int) -> Reply:
        return stream(*said, end, DONE) if host == "fra1" else stream(event(content="b"), DONE)

    async with built(tmp_path, script, LIGHT) as world:
        for _ in range(5):
            done = await world.ask("eu", stream=True)
            assert done.sent["x-domicile-endpoint"] == ("fra" if before else "par")
            assert (b'"code":"incomplete"' in done.written) is before
        assert world.router.live.health.marked(world.router.live.loop_time()) == ()


async def test_with_words_before_it_is_one(tmp_path: Path) -> None:
    pieces = [event(content="so"), b"data: %b\n\n" % promise("tool_calls", delta={}), DONE]
    async with built(tmp_path, lambda h, n: stream(*pieces), LIGHT) as world:
        done = await world.ask("eu", stream=True)
    assert done.sent["x-domicile-endpoint"] == "fra"
    assert done.written.endswith(DONE)
    assert outcomes(tmp_path)[0]["status"] == "ok"
