"""What every provider must keep, over its folder of transcripts `transcripts/<kind>/*.json`.

A transcript holds the endpoint, the ask as text, the request that must be sent, the answer as it
comes, and what the client gets of it, or the failure it means. A new provider needs a line in
`PROVIDERS` and a folder; nothing here.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.model import Endpoint
from router.answers.framing import framed
from router.providers.base import Ask, AwsKeys, Bearer, EqualEvents, Failure, Target
from router.providers.registry import PROVIDERS, load
from router.transport.messages import Headers
from router.usage import Usage
from router.usage import read as read_usage

FOLDER = Path(__file__).parent / "transcripts"
FILES = sorted(FOLDER.glob("*/*.json"))
CANARY = "canary-7f3a91-do-not-repeat"
NOW = 1_795_002_800.0
KEYS = AwsKeys("AKIDEXAMPLE", "secret-example", "token-example")

provider = cache(load)


def cases(wanted: str) -> pytest.MarkDecorator:
    """The transcripts that hold `wanted`, by name."""
    found = [f for f in FILES if wanted in json.loads(f.read_text())]
    assert found
    names = [f"{f.parent.name}/{f.stem}" for f in found]
    return pytest.mark.parametrize(
        ("kind", "told"), [(f.parent.name, json.loads(f.read_text())) for f in found], ids=names
    )


def the_endpoint(kind: str, told: Mapping[str, Any]) -> Endpoint:
    given_ = dict(told["endpoint"])
    given_["features"] = frozenset(given_.get("features", ()))
    return Endpoint(name="e", kind=kind, provider="aws" if kind == "bedrock" else "self", **given_)


def the_ask(told: Mapping[str, Any]) -> Ask:
    asked = told["ask"]
    raw = asked["body"].encode()
    surface = asked.get("surface", "chat.completions")
    body = orjson.loads(raw)
    return Ask(
        surface, body, raw, asked.get("stream", False), "assistant", "req-1", "eu-1/7",
        1_795_000_000,
    )  # fmt: skip


def the_target(told: Mapping[str, Any]) -> Target:
    target = told["target"]
    if target.get("aws"):
        return Target("", KEYS)
    bearer = target.get("bearer")
    return Target(target["url"], Bearer(bearer) if bearer else None)


def the_headers(told: Mapping[str, Any]) -> Headers:
    return tuple((k.encode(), v.encode()) for k, v in told["answer"]["headers"].items())


def the_bytes(told: Mapping[str, Any], frame: Callable[..., bytes]) -> bytes:
    answer = told["answer"]
    if "events" in answer:
        return b"".join(frame(name, payload) for name, payload in answer["events"])
    text: str = answer["text"]
    return text.encode()


class Got(NamedTuple):
    """What a client gets of an answer, and what the router learns of it."""

    data: bytes
    usage: Usage | None
    failure: Failure | None


def through(kind: str, told: Mapping[str, Any], *pieces: bytes) -> Got:
    """An answer that comes in pieces, read as the router reads it."""
    asked, headers = the_ask(told), the_headers(told)
    decoder = provider(kind).decoder(asked, the_endpoint(kind, told), headers)
    assert not isinstance(decoder, Failure)
    if not isinstance(decoder, EqualEvents):
        media_type = "text/event-stream" if asked.stream else "application/json"
        assert decoder.content_type == media_type
        if not asked.stream:
            out = b"".join([decoder.feed(piece) for piece in pieces]) + decoder.finish()
            return Got(out, decoder.usage, decoder.failure)
    reader = framed(decoder, asked.surface, headers)
    frames = [frame for piece in pieces for frame in reader.feed(piece)] + reader.finish()
    counts = [read_usage(frame.usage) for frame in frames if frame.usage]
    data = b"".join(frame.data for frame in frames)
    return Got(data, counts[-1] if counts else None, reader.failure)


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
def test_every_provider_has_its_transcripts(kind: str) -> None:
    told = [json.loads(f.read_text()) for f in FILES if f.parent.name == kind]
    assert any("sent" in t and not t["ask"].get("stream") for t in told), "no whole answer"
    assert any("client" in t and t["ask"].get("stream") for t in told), "no stream"
    assert any("failure" in t for t in told), "no failure"


def test_no_transcript_without_a_provider() -> None:
    assert {f.parent.name for f in FILES} <= PROVIDERS.keys()


@cases("sent")
def test_the_request(kind: str, told: dict[str, Any]) -> None:
    asked, there = the_ask(told), the_endpoint(kind, told)
    provider(kind).check(there)
    assert provider(kind).refusal(asked, there) is None
    request = provider(kind).encode(asked, there, the_target(told), NOW)
    assert orjson.dumps(asked.body) == orjson.dumps(orjson.loads(asked.raw))
    sent = told["sent"]
    assert (str(request.origin), request.method, request.target) == (
        sent["origin"], "POST", sent["target"],
    )  # fmt: skip
    if "text" in sent:
        assert request.body.decode() == sent["text"]
    else:
        assert orjson.loads(request.body) == sent["json"]
    headers = {k.decode(): v.decode() for k, v in request.headers}
    if "aws" in told["target"]:
        assert "/eu-central-1/bedrock/aws4_request, " in headers.pop("authorization")
    assert headers == sent["headers"]
    assert request.replay_safe == there.self_operated


@cases("client")
def test_the_answer(kind: str, told: dict[str, Any], frame: Callable[..., bytes]) -> None:
    out, usage, failure = through(kind, told, the_bytes(told, frame))
    if "text" in told["client"]:
        assert out.decode() == told["client"]["text"]
    else:
        assert orjson.loads(out) == told["client"]["json"]
    assert (None if usage is None else [usage.input, usage.output]) == told.get("usage")
    assert (failure is not None) == ("failure" in told)
    if "call_id" in told:
        assert provider(kind).call_id(the_headers(told)) == told["call_id"]


@cases("client")
def test_every_split_in_two(kind: str, told: dict[str, Any], frame: Callable[..., bytes]) -> None:
    data = the_bytes(told, frame)
    expected = through(kind, told, data)
    step = 1 if the_ask(told).stream else 37
    for at in range(0, len(data) + 1, step):
        assert through(kind, told, data[:at], data[at:]) == expected, at


@cases("client")
@given(cuts=st.lists(st.integers(0, 5000), max_size=25))
def test_any_split(
    kind: str, told: dict[str, Any], frame: Callable[..., bytes], cuts: list[int]
) -> None:
    data = the_bytes(told, frame)
    edges = [0, *sorted(c % (len(data) + 1) for c in cuts), len(data)]
    pieces = [data[a:b] for a, b in pairwise(edges)]
    assert through(kind, told, *pieces) == through(kind, told, data)


@cases("client")
def test_a_cut_answer_has_no_good_end(
    kind: str, told: dict[str, Any], frame: Callable[..., bytes]
) -> None:
    data = the_bytes(told, frame)
    expected = through(kind, told, data).data
    for at in range(0, len(data) - 4, 11):
        out, _, failure = through(kind, told, data[:at])
        if not the_ask(told).stream:
            assert out == b""
            assert failure is not None
        elif expected.endswith(b"[DONE]\n\n") and kind != "bedrock":
            assert b"[DONE]" not in out


@cases("failure")
def test_the_failure(kind: str, told: dict[str, Any], frame: Callable[..., bytes]) -> None:
    status, body = told["answer"]["status"], the_bytes(told, frame)
    if status == 200:
        found_failure = through(kind, told, body).failure
        assert found_failure is not None
        failure = found_failure
    else:
        failure = provider(kind).failure(status, the_headers(told), body, NOW)
        assert failure.status == status
    found = {
        "kind": failure.kind.value,
        "provider_code": failure.provider_code,
        "message": failure.message,
        "retry_after": failure.retry_after,
    }
    assert found == {"retry_after": None, **told["failure"]}
    for word in (CANARY, "http", "sk-"):
        assert word not in repr(failure)


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
@given(
    status=st.integers(300, 599),
    names=st.lists(
        st.sampled_from(
            ["content-type", "retry-after", "x-amzn-errortype", "x-request-id", "location"]
        ),
        unique=True,
    ),
    body=st.binary(max_size=60) | st.just(json.dumps({"error": {"message": CANARY}}).encode()),
)
def test_a_failure_never_speaks_in_others_words(
    kind: str, status: int, names: list[str], body: bytes
) -> None:
    headers = tuple((n.encode(), CANARY.encode()) for n in names)
    failure = provider(kind).failure(status, headers, body + CANARY.encode(), NOW)
    assert CANARY not in repr(failure)
    assert failure.message
    assert failure.message[0].islower()
    assert len(repr(failure)) < 600


@pytest.mark.parametrize("kind", sorted(PROVIDERS))
def test_place_parameters_are_refused_and_not_repeated(kind: str) -> None:
    told = json.loads((FOLDER / kind / "whole.json").read_text())
    there, one = the_endpoint(kind, told), provider(kind)
    for name in sorted(one.place_parameters):
        asked = the_ask(told)
        body = {**asked.body, name: CANARY}
        moved = Ask(
            asked.surface, body, orjson.dumps(body), asked.stream, asked.model, asked.request_id
        )
        refusal = one.refusal(moved, there)
        assert refusal is not None, name
        assert refusal.code == "parameter_changes_place"
        assert CANARY not in f"{refusal!r} {refusal.message}"
