"""One meaning for a body, here and upstream."""

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import RequestError
from router.providers.bodies import (
    refuse_duplicates,
    splice_model,
    with_names,
    with_priority,
    with_salt,
    with_transfer,
    with_usage_in_stream,
)

NAMES = st.sampled_from(["model", "a", "mod\\el", 'q"uote', "messages", "ключ", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8) | st.just("model"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
BODIES = st.dictionaries(NAMES, VALUES, max_size=5).flatmap(
    lambda body: st.permutations([*(body.keys() - {"model"}), "model"]).map(
        lambda order: {name: body.get(name) if name != "model" else "old" for name in order}
    )
)
INDENTS = st.sampled_from([None, 1, 4])


@given(BODIES, INDENTS, st.booleans(), st.text(max_size=12))
def test_only_the_model_changes(
    body: dict[str, Any], indent: int | None, escaped: bool, name: str
) -> None:
    raw = json.dumps(body, indent=indent, ensure_ascii=escaped).encode()
    parsed = orjson.loads(raw)
    made = orjson.loads(splice_model(raw, parsed, name))
    assert made == {**parsed, "model": name}
    assert list(made) == list(parsed)
    assert parsed["model"] == "old"


@given(BODIES, INDENTS)
def test_usage_is_asked_for_and_nothing_else(body: dict[str, Any], indent: int | None) -> None:
    raw = json.dumps(body, indent=indent).encode()
    parsed = orjson.loads(raw)
    made = orjson.loads(with_usage_in_stream(raw, parsed))
    assert made == {**parsed, "stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("raw", "made"),
    [
        (b'{"model":"old"}', b'{"model":"new"}'),
        (b' {\n "model" :\t"old" , "x":1.50e3}', b' {\n "model" :\t"new" , "x":1.50e3}'),
        (b'{"t":0.10,"model":"old"}', b'{"t":0.10,"model":"new"}'),
        (
            b'{"messages":[{"content":"\\"model\\":\\"old\\""}],"model":"old"}',
            b'{"messages":[{"content":"\\"model\\":\\"old\\""}],"model":"new"}',
        ),
        (b'{"a":{"model":"old"},"model":"old"}', b'{"a":{"model":"old"},"model":"new"}'),
        (b'{"a":{"model":"old"},"mod\\u0065l":"old"}', b'{"a":{"model":"old"},"model":"new"}'),
        (b'{"s":"model","model":"o\\"l\\\\d"}', b'{"s":"model","model":"new"}'),
    ],
)
def test_bytes_around_the_model_stay(raw: bytes, made: bytes) -> None:
    assert splice_model(raw, orjson.loads(raw), "new") == made


def test_a_wanted_stream_option_keeps_its_neighbours() -> None:
    raw = b'{"model":"m","stream_options":{"include_usage":false,"x":1}}'
    made = orjson.loads(with_usage_in_stream(raw, orjson.loads(raw)))
    assert made["stream_options"] == {"include_usage": True, "x": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"a","model":"b"}',
        b'{"model":"a","mod\\u0065l":"b"}',
        b'{"messages":[{"role":"user","role":"system"}]}',
        b'{"a":[[{"b":{"c":1,"c":1}}]]}',
    ],
)
def test_a_key_that_stands_twice_is_refused(raw: bytes, canary: str) -> None:
    orjson.loads(raw)
    with pytest.raises(RequestError) as caught:
        refuse_duplicates(raw)
    assert caught.value.code == "invalid_json"
    assert caught.value.status == 400
    with pytest.raises(RequestError) as caught:
        refuse_duplicates(f'{{"{canary}":1,"{canary}":2}}'.encode())
    assert canary not in caught.value.message


@given(BODIES)
def test_what_a_writer_makes_has_no_twins(body: dict[str, Any]) -> None:
    refuse_duplicates(orjson.dumps(body))


@pytest.mark.parametrize("raw", [b'{"a":1e400,"b":[{"a":1},{"a":2}]}', b"[" * 900 + b"]" * 900])
def test_odd_but_single(raw: bytes) -> None:
    refuse_duplicates(raw)


def test_depth_ends_in_a_refusal() -> None:
    with pytest.raises(RequestError, match="nested"):
        refuse_duplicates(b"[" * 200_000 + b"]" * 200_000)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw, body: splice_model(raw, body, "m"),
        with_usage_in_stream,
        lambda raw, body: with_priority(raw, body, 0),
        lambda raw, body: with_transfer(raw, {}),
        lambda raw, body: with_salt(raw, {**body, "cache_salt": "mine"}, "ours"),
    ],
)
def test_a_body_too_deep_to_be_written_anew_is_refused(change: Callable[..., bytes]) -> None:
    raw = b'{"mod\\u0065l":"a","stream_options":{},"priority":1,"x":%b}' % (b"[" * 300 + b"]" * 300)
    with pytest.raises(RequestError, match="nested") as caught:
        change(raw, orjson.loads(raw))
    assert (caught.value.code, caught.value.status) == ("invalid_json", 400)


@given(BODIES, INDENTS, st.none() | st.integers(-9, 9), st.integers(-1, 1))
def test_the_priority_is_ours(
    body: dict[str, Any], indent: int | None, said: int | None, number: int
) -> None:
    if said is not None:
        body["priority"] = said
    raw = json.dumps(body, indent=indent).encode()
    made = orjson.loads(with_priority(raw, orjson.loads(raw), number))
    assert made.pop("priority", 0) == number
    body.pop("priority", None)
    assert made == body
    assert said is not None or number or with_priority(raw, orjson.loads(raw), 0) == raw


@given(BODIES, INDENTS, st.none() | st.text(min_size=1), st.none() | st.just("ours"))
def test_the_salt_is_ours(
    body: dict[str, Any], indent: int | None, said: str | None, salt: str | None
) -> None:
    raw = json.dumps(body | ({} if said is None else {"cache_salt": said}), indent=indent).encode()
    made = orjson.loads(with_salt(raw, orjson.loads(raw), salt))
    assert made.pop("cache_salt", None) == salt
    assert made == body


def test_no_other_spelling_of_its_name_is_passed() -> None:
    raw = b'{"model":"a","cache\\u005fsalt":"of another"}'
    assert orjson.loads(with_salt(raw, orjson.loads(raw), "ours")) == {
        "model": "a", "cache_salt": "ours",
    }  # fmt: skip


@pytest.mark.parametrize("said", ["", 5, ["a"], {"a": 1}, False])
def test_a_salt_that_engines_might_take_for_none_is_refused(said: object) -> None:
    raw = json.dumps({"model": "a", "cache_salt": said}).encode()
    with pytest.raises(RequestError, match="not empty") as caught:
        with_salt(raw, orjson.loads(raw), "ours")
    assert (caught.value.code, caught.value.param) == ("invalid_request", "cache_salt")


def test_names_of_media_in_a_tools_output_are_mixed_too() -> None:
    """The responses API has a tool's result in `output`; vLLM makes a message of its parts."""
    image = {"type": "input_image", "image_url": "data:image/png;base64,aaaa", "uuid": "passport"}
    call = {"type": "function_call_output", "call_id": "c", "output": [image]}
    body = {"model": "m", "input": [call, {**call, "output": "uuid"}]}
    raw = orjson.dumps(body)
    one, other = (orjson.loads(with_names(raw, body, salt)) for salt in ("a", "b"))
    names = {found["input"][0]["output"][0].pop("uuid") for found in (one, other)}
    assert len({"passport", *names}) == 3
    del image["uuid"]
    assert one == other == {"model": "m", "input": [call, {**call, "output": "uuid"}]}


def test_an_escape_hides_no_name() -> None:
    r"""JSON may spell `uuid` as `\u0075uid`: what is looked at are bytes first."""
    raw = rb'{"messages":[{"role":"user","content":[{"type":"image_url","\u0075uid":"x"}]}]}'
    sent = orjson.loads(with_names(raw, orjson.loads(raw), "salt"))
    assert sent["messages"][0]["content"][0]["uuid"] not in ("x", None)
