"""Converse's answers in OpenAI's words."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.providers.base import Ask, Kind
from router.providers.converse import JSON_TOOL, Converse
from router.providers.converse_answer import EventAnswer, WholeAnswer, not_a_stream, openai_usage
from router.usage import Usage

Events = list[tuple[str, dict[str, Any]]]
Frame = Callable[..., bytes]

USAGE = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}
END: Events = [
    ("messageStop", {"stopReason": "end_turn"}),
    ("metadata", {"usage": USAGE, "metrics": {"latencyMs": 7}, "p": "abcd"}),
]


@pytest.fixture(scope="module")
def converse() -> Converse:
    return Converse()


def text(words: str, block: int = 0) -> tuple[str, dict[str, Any]]:
    return ("contentBlockDelta", {"contentBlockIndex": block, "delta": {"text": words}, "p": "ab"})


def tool(block: int, name: str, *arguments: str, stop: bool = True) -> Events:
    start = {"toolUse": {"toolUseId": f"id-{block}", "name": name}}
    events: Events = [("contentBlockStart", {"contentBlockIndex": block, "start": start})]
    for part in arguments:
        delta = {"toolUse": {"input": part}}
        events.append(("contentBlockDelta", {"contentBlockIndex": block, "delta": delta}))
    if stop:
        events.append(("contentBlockStop", {"contentBlockIndex": block}))
    return events


START: Events = [("messageStart", {"role": "assistant", "p": "abcdefgh"})]


def encoded(frame: Frame, events: Events) -> bytes:
    return b"".join(frame(name, payload) for name, payload in events)


def chunks(out: bytes) -> list[dict[str, Any]]:
    events = [event for event in out.split(b"\n\n") if event]
    assert all(event.startswith(b"data: ") for event in events)
    return [orjson.loads(e[6:]) for e in events if e != b"data: [DONE]"]


def calls(out: bytes) -> dict[int, dict[str, str]]:
    """Tool calls as a client puts them together."""
    made: dict[int, dict[str, str]] = {}
    for chunk in chunks(out):
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                known = made.setdefault(call["index"], {"arguments": ""})
                if "id" in call:
                    known.update(id=call["id"], name=call["function"]["name"])
                known["arguments"] += call["function"]["arguments"]
    return made


def test_a_plain_stream(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    events = [
        *START,
        text("hi "),
        text("日本"),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        *END,
    ]
    out = through(decoder, encoded(frame, events))
    made = chunks(out)
    assert [c["choices"][0]["delta"] for c in made] == [
        {"role": "assistant", "content": ""},
        {"content": "hi "},
        {"content": "日本"},
        {},
    ]
    assert [c["choices"][0]["finish_reason"] for c in made] == [None, None, None, "stop"]
    assert {(c["id"], c["model"], c["object"], c["created"]) for c in made} == {
        ("chatcmpl-req-1", "assistant", "chat.completion.chunk", 1_795_000_000)
    }
    assert out.endswith(b"data: [DONE]\n\n")
    assert (decoder.usage, decoder.failure) == (Usage(3, 2), None)
    assert b'"usage"' not in out


def test_usage_if_asked_for(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    asked = ask(stream=True, stream_options={"include_usage": True})
    out = through(EventAnswer(asked, converse, False), encoded(frame, [*START, text("x"), *END]))
    last = chunks(out)[-1]
    assert last["choices"] == []
    assert last["usage"] == openai_usage(Usage(3, 2), {})
    assert last["usage"]["total_tokens"] == 5


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # tools-01: text first, then two tools; tools-03: no text at all; tools-05: three.
        ([text("let me see"), *tool(1, "f", '{"a"', ":1}"), *tool(2, "g", "{}")],
         [("id-1", "f", '{"a":1}'), ("id-2", "g", "{}")]),
        (tool(0, "f", '{"a":1}'), [("id-0", "f", '{"a":1}')]),
        ([*tool(1, "f", "{}"), *tool(2, "f", "{}"), *tool(3, "g", "{}")],
         [("id-1", "f", "{}"), ("id-2", "f", "{}"), ("id-3", "g", "{}")]),
        # No arguments at all are an empty object.
        (tool(4, "f"), [("id-4", "f", "{}")]),
        # tools-04: blocks whose parts alternate.
        ([*tool(1, "f", '{"a"', stop=False), *tool(2, "g", '{"b"', stop=False),
          ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": ":1}"}}}),
          ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": ":2}"}}}),
          ("contentBlockStop", {"contentBlockIndex": 1}),
          ("contentBlockStop", {"contentBlockIndex": 2})],
         [("id-1", "f", '{"a":1}'), ("id-2", "g", '{"b":2}')]),
    ],
)  # fmt: skip
def test_tool_calls_count_from_zero(
    converse: Converse,
    ask: Callable[..., Ask],
    frame: Frame,
    through: Callable[..., bytes],
    events: Events,
    expected: list[tuple[str, str, str]],
) -> None:
    stop: Events = [("messageStop", {"stopReason": "tool_use"}), END[1]]
    decoder = EventAnswer(ask(stream=True), converse, False)
    out = through(decoder, encoded(frame, [*START, *events, *stop]))
    made = calls(out)
    assert sorted(made) == list(range(len(expected)))
    found = [(made[i]["id"], made[i]["name"], made[i]["arguments"]) for i in range(len(made))]
    assert found == expected
    assert all(orjson.loads(arguments) is not None for _, _, arguments in found)
    assert chunks(out)[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_reasoning_stays_reasoning(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    def part(content: dict[str, str]) -> tuple[str, dict[str, Any]]:
        return (
            "contentBlockDelta",
            {"contentBlockIndex": 0, "delta": {"reasoningContent": content}},
        )

    events = [*START, part({"text": "hm"}), part({"signature": "sig"}), text("so", 1), *END]
    made = chunks(through(EventAnswer(ask(stream=True), converse, False), encoded(frame, events)))
    deltas = [c["choices"][0]["delta"] for c in made]
    assert deltas[1]["reasoning_content"] == "hm"
    assert deltas[2]["thinking_blocks"][0]["signature"] == "sig"
    assert deltas[3] == {"content": "so"}


def test_a_schema_by_tool_is_content(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    stop: Events = [("messageStop", {"stopReason": "tool_use"}), END[1]]
    events = [*START, *tool(0, JSON_TOOL, '{"a"', ":1}"), *stop]
    out = through(EventAnswer(ask(stream=True), converse, True), encoded(frame, events))
    content = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks(out))
    assert orjson.loads(content) == {"a": 1}
    assert calls(out) == {}
    assert chunks(out)[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("before", [START, [*START, text("some")]])
@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("!throttlingException", Kind.LOAD, "ThrottlingException"),
        ("!modelStreamErrorException", Kind.ILL, "ModelStreamErrorException"),
        ("!validationException", Kind.CLIENT, "ValidationException"),
    ],
)
def test_an_exception_in_the_stream(
    converse: Converse,
    ask: Callable[..., Ask],
    frame: Frame,
    canary: str,
    before: Events,
    name: str,
    kind: Kind,
    code: str,
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    events = [*before, (name, {"message": canary}), text("never"), *END]
    out = decoder.feed(encoded(frame, events)) + decoder.finish()
    assert decoder.failure is not None
    assert (decoder.failure.kind, decoder.failure.provider_code) == (kind, code)
    assert b"never" not in out
    assert b"[DONE]" not in out
    assert (b"some" in out) == (len(before) == 2)
    assert canary not in out.decode() + repr(decoder.failure)


def test_a_stream_that_stops_early_has_no_good_end(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    out = through(decoder, encoded(frame, [*START, text("x")]))
    assert b"[DONE]" not in out
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


def test_an_end_without_usage_is_an_end(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    out = through(decoder, encoded(frame, [*START, text("x"), END[0]]))
    assert out.endswith(b"data: [DONE]\n\n")
    assert (decoder.usage, decoder.failure) == (None, None)


@pytest.mark.parametrize("broken", [b'{"message":"denied"}', b"\x00" * 64])
def test_other_bytes_are_a_bad_answer(
    converse: Converse, ask: Callable[..., Ask], broken: bytes
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    assert decoder.feed(broken) + decoder.finish() == b""
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


@pytest.mark.parametrize(
    "event",
    [
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": "canary"}),
        ("contentBlockDelta", {"contentBlockIndex": "x", "delta": {}}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": {}}}),
    ],
)
def test_a_broken_event_is_a_bad_answer(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, event: tuple[str, dict[str, Any]]
) -> None:
    decoder = EventAnswer(ask(stream=True), converse, False)
    decoder.feed(encoded(frame, [*START, event]))
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


@given(st.lists(st.integers(0, 2000), max_size=12))
def test_any_split_gives_the_same_bytes(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, cuts: list[int]
) -> None:
    events = [*START, text("日本 👩‍🚀"), *tool(1, "f", '{"a"', ":1}"), *END]
    stream = encoded(frame, events)
    whole = EventAnswer(ask(stream=True), converse, False)
    expected = whole.feed(stream) + whole.finish()
    cut = EventAnswer(ask(stream=True), converse, False)
    edges = [0, *sorted(c % len(stream) for c in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    assert b"".join(cut.feed(p) for p in pieces) + cut.finish() == expected


def whole(content: list[dict[str, Any]], stop: str = "end_turn", **more: Any) -> bytes:
    message = {"role": "assistant", "content": content}
    answer = {"output": {"message": message}, "stopReason": stop, "usage": USAGE, **more}
    return orjson.dumps(answer)


def test_a_whole_answer(
    converse: Converse, ask: Callable[..., Ask], through: Callable[..., bytes], canary: str
) -> None:
    decoder = WholeAnswer(ask(), converse, False)
    body = whole([{"text": "hello"}], trace={"guardrail": {"modelOutput": [canary]}})
    made = orjson.loads(through(decoder, body[:5], body[5:]))
    assert made == {
        "id": "chatcmpl-req-1",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": "assistant",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hello", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": openai_usage(Usage(3, 2), {}),
    }
    assert (decoder.usage, decoder.failure) == (Usage(3, 2), None)


THOUGHT = {"usage": {"output_tokens_details": {"thinking_tokens": 1}}}


def test_what_was_reasoning_is_told(
    converse: Converse, ask: Callable[..., Ask], frame: Frame, through: Callable[..., bytes]
) -> None:
    """Bedrock is asked for it. See aws-samples/bedrock-access-gateway#223."""
    body = whole([{"text": "hello"}], additionalModelResponseFields=THOUGHT)
    made = orjson.loads(through(WholeAnswer(ask(), converse, False), body))
    stop = ("messageStop", {"stopReason": "end_turn", "additionalModelResponseFields": THOUGHT})
    asked = ask(stream=True, stream_options={"include_usage": True})
    events = encoded(frame, [*START, text("x"), stop, END[1]])
    *_, last = chunks(through(EventAnswer(asked, converse, False), events))
    for told in (made, last):
        assert told["usage"]["completion_tokens_details"] == {"reasoning_tokens": 1}


@pytest.mark.parametrize("told", [None, {"usage": None}])
def test_a_whole_answer_without_usage_is_one(
    converse: Converse,
    ask: Callable[..., Ask],
    through: Callable[..., bytes],
    told: dict[str, Any] | None,
) -> None:
    """It is paid for, and nothing in it is missing."""
    body = orjson.loads(whole([{"text": "hello"}]))
    del body["usage"]
    decoder = WholeAnswer(ask(), converse, False)
    made = orjson.loads(through(decoder, orjson.dumps({**body, **(told or {})})))
    assert made["choices"][0]["message"]["content"] == "hello"
    assert "usage" not in made
    assert (decoder.usage, decoder.failure) == (None, None)


def test_tool_calls_of_a_whole_answer(
    converse: Converse, ask: Callable[..., Ask], through: Callable[..., bytes]
) -> None:
    uses = [{"toolUse": {"toolUseId": f"t{i}", "name": "f", "input": {"i": i}}} for i in range(2)]
    made = orjson.loads(through(WholeAnswer(ask(), converse, False), whole(uses, "tool_use")))
    choice = made["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    found = [(c["id"], c["type"], c["function"]["name"]) for c in choice["message"]["tool_calls"]]
    assert found == [("t0", "function", "f"), ("t1", "function", "f")]
    arguments = [orjson.loads(c["function"]["arguments"]) for c in choice["message"]["tool_calls"]]
    assert arguments == [{"i": 0}, {"i": 1}]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        ("max_tokens", "length"), ("stop_sequence", "stop"), ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"), ("model_context_window_exceeded", "length"),
        ("malformed_model_output", "malformed_model_output"),
        ("malformed_tool_use", "malformed_tool_use"),
    ],
)  # fmt: skip
def test_reasons_to_stop(
    converse: Converse,
    ask: Callable[..., Ask],
    through: Callable[..., bytes],
    frame: Frame,
    stop: str,
    reason: str,
) -> None:
    made = orjson.loads(through(WholeAnswer(ask(), converse, False), whole([{"text": "x"}], stop)))
    assert made["choices"][0]["finish_reason"] == reason
    events = [*START, text("x"), ("messageStop", {"stopReason": stop}), END[1]]
    out = through(EventAnswer(ask(stream=True), converse, False), encoded(frame, events))
    assert chunks(out)[-1]["choices"][0]["finish_reason"] == reason


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"output":{}}', b"<html>"])
def test_no_answer_is_a_bad_answer(
    converse: Converse, ask: Callable[..., Ask], through: Callable[..., bytes], body: bytes
) -> None:
    decoder = WholeAnswer(ask(), converse, False)
    assert through(decoder, body) == b""
    assert decoder.failure is not None
    assert decoder.failure.kind is Kind.BAD_ANSWER


def test_json_instead_of_a_stream() -> None:
    assert "json instead" in not_a_stream(b"application/json").message
    assert "no event stream" in not_a_stream(b"text/html").message
