"""Whatever a client or Bedrock sends: an answer, a refusal by name or a failure, never a crash."""

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import Ask, AwsKeys, Decoder, EqualEvents, Failure, Provider, Target
from router.providers.bedrock import Bedrock
from router.transport.messages import OutboundRequest

NOW = 1_795_000_000.0
CANARY = "canary-7f3a91-do-not-repeat"
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 2**53) | st.floats(allow_nan=False, width=32)
    | st.just(CANARY) | st.sampled_from(["", "user", "auto", "required", "none", "text", "low"])
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "role", "content", "type", "text", "name", "id", "function", "arguments", "parameters",
        "image_url", "url", "tool_calls", "tool_call_id", "json_schema", "schema", "strict",
        "cache_control", "thinking_blocks", "properties", "$ref", "$defs", "description", CANARY,
    ]
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
TEXT = st.text(max_size=10) | st.just(CANARY)
CALL = st.fixed_dictionaries(
    {"id": TEXT, "type": st.just("function")},
    optional={
        "function": st.fixed_dictionaries(
            {
                "name": st.sampled_from(["f", "g-1", "9", ""]) | TEXT,
                "arguments": st.sampled_from(["{}", "{", "", '{"a":1}', "[]"]),
            }
        )
    },
)
PART = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}),
    st.fixed_dictionaries(
        {
            "type": st.just("image_url"),
            "image_url": st.fixed_dictionaries(
                {
                    "url": st.sampled_from(
                        ["data:image/png;base64,AAAA", "https://evil.example/a.png", "s3://a/b",
                         "data:image/png;base64,A,A", "http://evil.example/base64,x"]
                    )
                }
            ),
        }
    ),
    ANYTHING,
)  # fmt: skip
GOOD = st.fixed_dictionaries({"role": st.just("user"), "content": TEXT})
MESSAGE = st.one_of(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant", "developer"]),
                           "content": TEXT | st.lists(PART, max_size=3)}),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": st.none() | TEXT,
                           "tool_calls": st.lists(CALL, max_size=3)}),
    st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": TEXT, "content": TEXT}),
    ANYTHING,
)  # fmt: skip
TOOL = st.fixed_dictionaries(
    {
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {"name": st.sampled_from(["f", "g-1"])},
            optional={"parameters": ANYTHING, "description": ANYTHING, "strict": ANYTHING},
        ),
    }
)
SCHEMA = st.fixed_dictionaries(
    {"schema": st.just({"type": "object"}) | ANYTHING},
    optional={"name": TEXT, "strict": st.booleans()},
)
FUNCTION = st.just({"type": "function", "function": {"name": "f"}})
BODY = st.fixed_dictionaries(
    {
        "model": st.just("assistant"),
        "messages": st.lists(GOOD, min_size=1, max_size=3) | st.lists(MESSAGE, max_size=4),
    },
    optional={
        "tools": st.lists(TOOL, max_size=2) | st.lists(TOOL | ANYTHING, max_size=3),
        "tool_choice": FUNCTION | st.sampled_from(["auto", "required"]) | ANYTHING,
        "parallel_tool_calls": st.booleans() | ANYTHING,
        "response_format": ANYTHING
        | st.fixed_dictionaries({"type": st.just("json_schema"), "json_schema": SCHEMA}),
        "max_tokens": st.integers(1, 4096) | SCALARS,
        "temperature": st.floats(0, 1) | SCALARS,
        "top_k": st.integers(1, 9) | SCALARS,
        "stop": TEXT | ANYTHING,
        "reasoning_effort": st.sampled_from(["low", "high", "none"]) | SCALARS,
        "stream_options": st.just({"include_usage": True}) | ANYTHING,
        "n": st.just(1) | ANYTHING,
    },
)
MODELS = st.sampled_from(
    ["eu.anthropic.claude-sonnet-4-6", "eu.amazon.nova-lite-v1:0",
     "arn:aws:bedrock:eu-central-1:123456789012:application-inference-profile/abc",
     "openai.gpt-oss-120b-1:0", "anthropic.claude-3-5-sonnet-20240620-v1:0"]
)  # fmt: skip


def encoded(
    provider: Provider, asked: Ask, there: Endpoint, keys: AwsKeys
) -> OutboundRequest | RequestError:
    try:
        return provider.encode(asked, there, Target("", keys), NOW)
    except RequestError as error:
        return error


@settings(max_examples=150)
@given(body=BODY, model=MODELS, stream=st.booleans())
def test_any_body_is_sent_or_refused(
    bedrock: Provider,
    endpoint: Callable[..., Endpoint],
    keys: AwsKeys,
    body: dict[str, Any],
    model: str,
    stream: bool,
) -> None:
    raw = orjson.dumps(body)
    parsed = orjson.loads(raw)
    asked = Ask("chat.completions", parsed, raw, stream, "assistant", "req-1", "eu-1/7")
    made = encoded(bedrock, asked, endpoint(model), keys)
    if isinstance(made, RequestError):
        event("refused")
        assert made.status == 400
        assert made.code in ("parameter_not_allowed", "parameter_changes_place")
        assert CANARY not in f"{made!r} {made.message} {made.param} {made.__cause__!r}"
    else:
        event("sent")
        assert made.origin.host == "bedrock-runtime.eu-central-1.amazonaws.com"
        assert b"evil.example" not in made.body
        assert bedrock.refusal(asked, endpoint(model)) is None
    assert orjson.dumps(parsed) == raw


EVENT = st.tuples(
    st.sampled_from(
        ["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop",
         "messageStop", "metadata", "somethingNew", "!throttlingException", "!new"]
    ),
    st.dictionaries(
        st.sampled_from(["role", "contentBlockIndex", "start", "delta", "stopReason", "usage"]),
        st.recursive(
            SCALARS,
            lambda inner: st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["text", "toolUse", "toolUseId", "name", "input", "reasoningContent",
                     "signature", "redactedContent", "inputTokens", "outputTokens"]
                ),
                inner,
                max_size=3,
            ),
            max_leaves=6,
        ),
        max_size=3,
    ),
)  # fmt: skip


def decoder_of(bedrock: Provider, there: Endpoint, asked: Ask, kind: bytes) -> Decoder:
    decoder = bedrock.decoder(asked, there, ((b"content-type", kind),))
    assert not isinstance(decoder, EqualEvents | Failure)
    return decoder


@settings(max_examples=150)
@given(events=st.lists(EVENT, max_size=6))
def test_any_events_are_chunks_or_a_failure(
    bedrock: Provider,
    endpoint: Callable[..., Endpoint],
    ask: Callable[..., Ask],
    frame: Callable[..., bytes],
    events: list[tuple[str, dict[str, Any]]],
) -> None:
    asked = ask(stream=True)
    decoder = decoder_of(bedrock, endpoint(), asked, b"application/vnd.amazon.eventstream")
    out = b"".join(decoder.feed(frame(name, payload)) for name, payload in events)
    out += decoder.finish()
    for chunk in out.split(b"\n\n"):
        if chunk and chunk != b"data: [DONE]":
            assert orjson.loads(chunk.removeprefix(b"data: "))["model"] == "assistant"
    assert (decoder.failure is None) == out.endswith(b"[DONE]\n\n")
    assert CANARY not in repr(decoder.failure)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_failure(
    bedrock: Provider,
    endpoint: Callable[..., Endpoint],
    ask: Callable[..., Ask],
    data: bytes,
) -> None:
    for asked, kind in (
        (ask(stream=True), b"application/vnd.amazon.eventstream"),
        (ask(), b"application/json"),
    ):
        decoder = decoder_of(bedrock, endpoint(), asked, kind)
        assert decoder.feed(data) + decoder.finish() == b""
        assert decoder.failure is not None


@settings(max_examples=100)
@given(content=st.lists(ANYTHING, max_size=3), stop=SCALARS, usage=ANYTHING, more=ANYTHING)
def test_any_answer_is_an_answer_or_a_failure(
    bedrock: Provider,
    endpoint: Callable[..., Endpoint],
    ask: Callable[..., Ask],
    content: list[Any],
    stop: object,
    usage: object,
    more: object,
) -> None:
    message = {"role": "assistant", "content": content}
    answer = {"output": {"message": message}, "stopReason": stop, "usage": usage, "trace": more}
    decoder = decoder_of(bedrock, endpoint(), ask(), b"application/json")
    out = decoder.feed(orjson.dumps(answer)) + decoder.finish()
    assert (out == b"") == (decoder.failure is not None)
    assert CANARY not in repr(decoder.failure)


@pytest.mark.parametrize("name", sorted(Bedrock.place_parameters))
def test_place_parameters_never_reach_a_translation(
    bedrock: Provider, endpoint: Callable[..., Endpoint], ask: Callable[..., Ask], name: str
) -> None:
    for value in ("us-east-1", {"a": 1}, ["x"], True, 0):
        assert bedrock.refusal(ask(**{name: value}), endpoint()) is not None
