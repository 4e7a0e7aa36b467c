"""What events mean, surface by surface, and the name of the model in them."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.answers.frames import Frame
from router.answers.readings import (
    ModelName,
    Reader,
    Reading,
    SseDecoder,
    WholeReading,
    read_chat,
    read_messages,
    read_responses,
)

NOTHING = Reading()


def chat(**delta: object) -> dict[str, object]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def ending(reason: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x"},
        {"reasoning_content": "x"},
        {"reasoning": "x"},
        {"refusal": "no"},
        {"tool_calls": [{"index": 0}]},
        {"function_call": {"name": "f"}},
        {"some_new_kind": "x"},
    ],
)
def test_content_of_chat(delta: dict[str, object]) -> None:
    assert read_chat(chat(**delta)) == Reading(content=True)


@pytest.mark.parametrize(
    "document",
    [
        chat(role="assistant", content=""),
        chat(role="assistant", content=None, refusal=None, tool_calls=[]),
        {"choices": []},
        {"choices": None},
        {"choices": [None, 3, "x"]},
        {"choices": [{"delta": None}]},
        {"choices": {"delta": {"content": "x"}}},
        {"usage": "x"},
        {},
    ],
)
def test_no_content_of_chat(document: dict[str, object]) -> None:
    """streaming-08: odd chunks say nothing and break nothing."""
    assert read_chat(document) == NOTHING


def test_ends_of_chat() -> None:
    assert read_chat(ending("stop")) == Reading(finish=True)
    assert read_chat(ending({"type": "length"})) == Reading(finish=True)
    usage = {"prompt_tokens": 1}
    assert read_chat({"choices": [], "usage": usage}) == Reading(usage=usage)
    assert read_chat({"choices": [{"text": "x"}]}) == Reading(content=True)
    whole = {"choices": [{"message": {"role": "assistant", "content": "x"}}]}
    assert read_chat(whole) == Reading(content=True)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"message": "m", "type": "rate_limit_error", "code": None}, 429, "rate_limit_error"),
        ({"message": "m", "type": "BadRequestError", "code": 400}, 400, "BadRequestError"),
        ({"message": "m", "code": "429"}, 429, "429"),
        ({"message": "m", "type": "overloaded_error"}, 529, "overloaded_error"),
        ({"message": "m", "type": "x", "code": 200}, 500, "x"),
        ({"message": "m", "type": "a b\r\nc" + "d" * 100}, 500, "a_b_c" + "d" * 59),
        ("m", 500, "error"),
        (["m"], 500, "error"),
    ],
)
def test_errors_of_chat(error: object, status: int, kind: str) -> None:
    found = read_chat({"error": error}).error
    assert found is not None
    assert (found.status, found.kind) == (status, kind)
    assert "m" in found.message


def test_other_errors_of_chat() -> None:
    old = {"object": "error", "message": "m", "type": "NotFoundError", "code": 404}
    failed = {"type": "response.failed", "response": {"status": "failed", "error": {"code": "x"}}}
    inner = {"type": "response.failed", "response": {"status": "failed"}}
    ended = (ending("abort"), ending("error"), ending({"type": "abort"}))
    for document in (old, failed, inner, *ended):
        found = read_chat(document)
        assert found.error is not None
        assert not found.finish


MESSAGES = [
    ({"type": "ping"}, NOTHING),
    ({"type": "message_start", "message": {"usage": {"input_tokens": 1}}}, "usage"),
    ({"type": "content_block_start", "content_block": {"type": "text", "text": ""}}, NOTHING),
    ({"type": "content_block_start", "content_block": {"type": "tool_use"}}, "content"),
    ({"type": "content_block_delta", "delta": {"text": "x"}}, "content"),
    ({"type": "content_block_stop"}, NOTHING),
    ({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, "finish"),
    ({"type": "message_stop"}, "done"),
    ({"type": "error", "error": {"type": "overloaded_error"}}, "error"),
    ({"type": "message", "content": [{"type": "text", "text": "x"}]}, "content"),
    ({"type": "something_new"}, NOTHING),
]
RESPONSES = [
    ({"type": "response.created", "response": {"status": "in_progress"}}, NOTHING),
    ({"type": "response.in_progress"}, NOTHING),
    ({"type": "response.output_item.added"}, NOTHING),
    ({"type": "response.output_text.delta", "delta": "x"}, "content"),
    ({"type": "response.reasoning_summary_text.delta", "delta": "x"}, "content"),
    ({"type": "response.function_call_arguments.delta", "delta": "x"}, "content"),
    ({"type": "response.completed", "response": {"status": "completed"}}, "finish"),
    ({"type": "response.incomplete", "response": {"status": "incomplete"}}, "finish"),
    ({"type": "response.failed", "response": {"status": "failed"}}, "error"),
    ({"type": "error", "code": "server_error", "message": "m"}, "error"),
    ({"object": "response", "status": "completed", "output": [{}]}, "content"),
    ({"object": "response", "status": "failed", "error": {"code": "x"}}, "error"),
    ({"error": {"message": "m"}}, "error"),
    ({}, NOTHING),
]


@pytest.mark.parametrize(
    ("reader", "document", "expected"),
    [(read_messages, *case) for case in MESSAGES] + [(read_responses, *case) for case in RESPONSES],
)
def test_other_surfaces(reader: Reader, document: dict[str, object], expected: object) -> None:
    """streaming-02: a failed event is a failure, not an end."""
    found = reader(document)
    if isinstance(expected, str):
        assert getattr(found, expected)
    else:
        assert found == expected
    assert not (found.error and (found.finish or found.content))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "message",
                    "content",
                    "usage",
                    "error",
                    "type",
                    "response",
                    "finish_reason",
                    "status",
                    "object",
                    "code",
                    "content_block",
                    "stop_reason",
                    "model",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_json_breaks_a_reader(document: object) -> None:
    """streaming-08: accounting is never on the way of a failure."""
    for reader in (read_chat, read_messages, read_responses):
        decoder = SseDecoder(reader, ModelName("asked"))
        decoder.feed(b"data: " + json.dumps(document).encode() + b"\n\n")


def frames(stream: bytes, model: str | None = "asked") -> list[Frame]:
    decoder = SseDecoder(read_chat, ModelName(model) if model else None)
    return decoder.feed(stream) + decoder.finish()


def test_one_broken_line_is_left_out_and_counted() -> None:
    """streaming-06: a single bad event in an otherwise whole stream."""
    good = b"data: " + orjson.dumps(chat(content="x")) + b"\n\n"
    decoder = SseDecoder(read_chat)
    bad = [b'data: {"choices":[{"del\n\n', b"data: null\n\n", b"data: [1]\n\n", b"data: \xff\n\n"]
    found = decoder.feed(good + bad[0] + good + b"".join(bad[1:]) + b"data: [DONE]\n\n")
    assert [frame.data for frame in found] == [good, good, b"data: [DONE]\n\n"]
    assert decoder.malformed == 4
    assert found[-1].done


SPELLINGS = [
    '{"id":"1","model":"served","choices":[]}',
    '{"id": "1", "model": "served", "choices": []}',
    '{"model":"served"}',
    '{"id":"1","model" : "served"}',
    '{"id":"1","m\\u006fdel":"served"}',
    '{"id":"1","model":"s\\u0065rved"}',
    '{"model":"served","choices":[{"delta":{"content":"\\"model\\":\\"served\\""}}]}',
    '{"x":{"model":"served"},"model":"served"}',
    '{"model":"served","model":"served"}',
    '{"type":"response.created","response":{"id":"1","model":"served"}}',
    '{"type":"message_start","message":{"id":"1","model":"served"}}',
]


@pytest.mark.parametrize("text", SPELLINGS)
@pytest.mark.parametrize("asked", ["asked", 'a"b\\c', "你好"])
def test_the_name_asked_for_takes_the_place_of_the_served_one(text: str, asked: str) -> None:
    before = orjson.loads(text)
    (frame,) = frames(f"event: e\ndata: {text}\n\n".encode(), asked)
    assert frame.data.startswith(b"event: e\ndata: {")
    after = orjson.loads(frame.data.split(b"data: ", 1)[1])
    holder = after.get("response") or after.get("message") or after
    assert holder["model"] == asked
    holder["model"] = "served"
    assert after == before


def test_bytes_stay_as_they_are_but_for_the_name() -> None:
    text = b'data: {"id":1.50,"model": "served",  "odd":"\\u00e9"}\n\n'
    (frame,) = frames(text)
    assert frame.data == text.replace(b"served", b"asked")
    assert frames(text, None)[0].data == text
    assert frames(text, "served")[0].data == text


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_any_names_and_any_content(served: str, asked: str, content: str, compact: bool) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    told = {"id": content, "model": served, "choices": [{"delta": {"content": content}}]}
    text = json.dumps(told, separators=separators, ensure_ascii=compact).encode()
    (frame,) = frames(b"data: " + text + b"\n\n", asked or "x")
    assert orjson.loads(frame.data[6:]) == {**told, "model": asked or "x"}


@pytest.mark.parametrize("own", ['"model":"served"', '"model": "served"', '"model" :\t"served"'])
@pytest.mark.parametrize("inner", ['"model":"served"', '"model": "served"', '"model" : "served"'])
@pytest.mark.parametrize("first", [True, False])
def test_only_the_event_s_own_model_is_renamed(own: str, inner: str, first: bool) -> None:
    """However either is written: the extension's value is the provider's to tell."""
    nested = '"extension":{' + inner + "}"
    text = "{" + ",".join([own, nested] if first else [nested, own]) + "}"
    model = ModelName("asked")
    document = json.loads(text)
    told = json.loads(model.splice(text.encode(), document) or model.renamed(document))
    assert told == {"model": "asked", "extension": {"model": "served"}}


def test_the_served_name_may_change_within_a_stream() -> None:
    stream = b'data: {"model":"a"}\n\ndata: {"model":"b"}\n\ndata: {"model":"a"}\n\n'
    found = [orjson.loads(frame.data[6:])["model"] for frame in frames(stream)]
    assert found == ["asked"] * 3


def test_a_whole_answer() -> None:
    read = WholeReading(read_chat, ModelName("asked"))
    body = b'{"model":"served","choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}'
    frame = read(body)
    assert frame.data == body.replace(b"served", b"asked")
    assert (frame.content, frame.finish) == (True, True)
    for bad in (b"", b"<html>", b"[]", b"{", b'"x"'):
        with pytest.raises(ValueError):
            read(bad)


@pytest.mark.parametrize("reason", [{"type": "stop"}, {"type": {}}, ["stop"], [{}], 5])
def test_an_end_that_is_told_in_no_word_is_one_also_where_nothing_was_said(reason: object) -> None:
    body = orjson.dumps({"model": "served", **ending(reason)})
    whole = WholeReading(read_chat, ModelName("asked"))(body)
    (streamed,) = frames(b"data: " + body + b"\n\n")
    for found in (whole, streamed):
        assert found.error is None
        assert not found.content
        assert bool(found.finish) == (reason != {"type": {}})


def test_a_promise_of_calls_is_one_in_an_engine_s_own_shape_too() -> None:
    (found,) = frames(b"data: " + orjson.dumps(ending({"type": "tool_calls"})) + b"\n\n")
    assert found.error is not None
    assert found.error.kind == "no_calls"


@pytest.mark.parametrize("served", [b'"served","model":"served"', b"[" * 300 + b"]" * 300])
def test_what_is_nested_too_deeply_to_be_written_anew_is_no_answer(served: bytes) -> None:
    """Its reader goes deeper than its writer: that must not be an error of the router's own."""
    body = b'{"model":%b,"x":%b}' % (served, b"[" * 300 + b"]" * 300)
    orjson.loads(body)
    with pytest.raises(ValueError, match="deep"):
        WholeReading(read_chat, ModelName("asked"))(body)
    with pytest.raises(ValueError, match="deep"):
        frames(b"data: " + body + b"\n\n")
