from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from router.simulator.faults import Frame, Part
from router.simulator.fleet import SimulatedFleet
from router.simulator.vllm_api import ApiError, Call, answer, dumps, parse, stream
from tests.router.simulator.chatting import ask, chat, events

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
}


async def test_max_tokens_cuts_and_says_length(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    body = (await chat(http, fleet["fra1"], max_tokens=3)).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 3
    exact = (await chat(http, fleet["fra1"], max_tokens=70, ignore_eos=True)).json()
    assert exact["usage"]["completion_tokens"] == 70


async def test_tools_are_called_when_asked_for_in_streamed_fragments(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    silent = (await chat(http, fleet["fra1"], tools=[TOOL])).json()
    assert silent["choices"][0]["message"]["tool_calls"] == []
    body = (await chat(http, fleet["fra1"], text="please call get_weather", tools=[TOOL])).json()
    (call,) = body["choices"][0]["message"]["tool_calls"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    arguments = json.loads(call["function"]["arguments"])
    assert isinstance(arguments["days"], int)
    stream = await chat(
        http, fleet["fra1"], text="please call get_weather", tools=[TOOL], stream=True
    )
    deltas = [event["choices"][0]["delta"] for event in events(stream.text)]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["id"] == call["id"]
    assert len(calls) > 2
    assert "".join(c["function"]["arguments"] for c in calls) == call["function"]["arguments"]
    forced = await chat(http, fleet["fra1"], tools=[TOOL], tool_choice="required")
    assert forced.json()["choices"][0]["finish_reason"] == "tool_calls"


async def test_replicas_and_models_and_prompts_differ(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    bodies = [
        (await chat(http, fleet["fra1"])).json(),
        (await chat(http, fleet["iad1"])).json(),
        (await chat(http, fleet["fra1"], text="bye")).json(),
    ]
    assert len({body["choices"][0]["message"]["content"] for body in bodies}) == 3
    assert len({body["id"] for body in bodies}) == 3


def call(**more: Any) -> Call:
    given = {"stream": True, "usage_in_stream": False, "max_tokens": 4, **more}
    return Call("m", "p", "p", chat=True, exact=False, tools=(), forced=(), **given)


async def tokens(count: int) -> AsyncGenerator[int, None]:
    for number in range(1, count + 1):
        yield number


async def test_a_stream_is_role_words_finish_usage_end() -> None:
    asked = call(usage_in_stream=True)
    output = answer(asked, 1, 100)
    frames = [frame async for frame in stream(asked, output, 5, tokens(output.tokens))]
    assert all(isinstance(frame, Frame) for frame in frames)
    parts = [frame.part for frame in frames if isinstance(frame, Frame)]
    assert parts == [Part.START, *[Part.CONTENT] * 4, Part.FINISH, Part.USAGE, Part.END]
    first = json.loads(frames[0].data[6:]) if isinstance(frames[0], Frame) else {}
    assert first == {
        "id": output.id, "object": "chat.completion.chunk", "created": 5, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""},
                     "logprobs": None, "finish_reason": None}],
    }  # fmt: skip


def test_the_same_call_has_the_same_answer_and_no_word_of_its_prompt() -> None:
    said = answer(call(max_tokens=None), 1, 100)
    assert said == answer(call(max_tokens=None), 1, 100)
    assert said != answer(call(max_tokens=None), 2, 100)
    assert 8 <= said.tokens <= 48
    assert said.finish == "stop"


async def test_json_is_answered_where_it_is_asked_for(
    fleet: SimulatedFleet, http: httpx.AsyncClient
) -> None:
    """Plain and streamed; cut where its tokens end, as an engine's is."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"enum": ["x"]}}}
    shape = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    whole = (await chat(http, fleet["fra1"], response_format=shape)).json()["choices"][0]
    said = json.loads(whole["message"]["content"])
    assert type(said["n"]) is int
    assert (said["s"], whole["finish_reason"]) == ("x", "stop")
    streamed = await chat(http, fleet["fra1"], response_format=shape, stream=True)
    deltas = [each["choices"][0]["delta"] for each in events(streamed.text) if each["choices"]]
    assert json.loads("".join(delta.get("content") or "" for delta in deltas)) == said
    cut = await chat(http, fleet["fra1"], response_format=shape, max_tokens=1)
    assert cut.json()["choices"][0]["finish_reason"] == "length"
    loose = await chat(http, fleet["fra1"], response_format={"type": "json_object"})
    assert json.loads(loose.json()["choices"][0]["message"]["content"]) == {}
    assert (await chat(http, fleet["fra1"], response_format={"type": "text"})).status_code == 200
    for bad in ({"type": "json_schema"}, {"type": "yaml"}):
        assert (await chat(http, fleet["fra1"], response_format=bad)).status_code == 400


def test_what_does_not_fit_the_context_is_refused() -> None:
    long = replace(call(), prompt="word " * 40, max_tokens=80)
    with pytest.raises(ApiError, match="maximum context length is 100") as caught:
        answer(long, 1, 100)
    assert caught.value.status == 400
    assert answer(replace(long, max_tokens=None), 1, 100).tokens <= 60


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "tool_choice"),
        ({"messages": "hi"}, "messages"),
        ({"max_tokens": "9"}, "max_tokens"),
        ({"n": 3}, "n"),
    ],
)
def test_wrong_fields_are_named(body: dict[str, object], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(dumps({**ask(), **body}), chat=True, served=("tiny",))
    assert (caught.value.status, caught.value.param) == (400, param)
    assert json.loads(caught.value.body())["error"]["param"] == param


def test_only_an_unanswered_request_can_ask_for_a_tool() -> None:
    """After a tool's result the last message is not the user's, so no call follows a call."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "call get_weather"}]},
        {"role": "tool", "content": "sunny", "tool_call_id": "1"},
    ]
    body = {"model": "tiny", "messages": messages, "tools": [TOOL]}
    assert parse(dumps(body), chat=True, served=("tiny",)).called == ()
    body["messages"] = messages[:1]
    assert parse(dumps(body), chat=True, served=("tiny",)).called == ("get_weather",)
