"""What is sent to OpenAI-compatible servers, and what comes back from them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import Ask, Bearer, EqualEvents, Failure, Kind, Misconfigured, Target
from router.providers.openai_compatible import OpenAiCompatible, beside, path_of
from router.providers.streams import JsonDecoder

PROVIDER = OpenAiCompatible()
TARGET = Target("http://10.0.0.8:8000")
JSON = ((b"content-type", b"application/json; charset=utf-8"),)
EVENTS = ((b"content-type", b"text/event-stream"),)


def there(**more: Any) -> Endpoint:
    return Endpoint(name="e", kind="openai", provider="self", model="Qwen/Qwen3-8B", **more)


def test_only_our_headers_are_sent(ask: Callable[..., Ask]) -> None:
    request = PROVIDER.encode(
        ask(stream=True), there(), Target("https://api.example/v1/", Bearer("sk-1")), 0
    )
    assert dict(request.headers) == {
        b"content-type": b"application/json",
        b"accept": b"text/event-stream",
        b"accept-encoding": b"identity",
        b"x-request-id": b"req-1",
        b"authorization": b"Bearer sk-1",
    }
    assert (request.target, request.origin.host) == ("/v1/chat/completions", "api.example")


def test_a_strict_server_gets_what_the_client_sent(ask: Callable[..., Ask]) -> None:
    asked = ask(stream=True, temperature=0.5)
    sent = orjson.loads(PROVIDER.encode(asked, there(), TARGET, 0).body)
    assert sent == {**asked.body, "model": "Qwen/Qwen3-8B"}


def test_a_salt_is_sent_where_the_server_is_said_to_take_it(ask: Callable[..., Ask]) -> None:
    asked = replace(ask(), salt="ours")
    apart = there(settings={"cache": "tenant"}, self_operated=True)
    assert orjson.loads(PROVIDER.encode(asked, apart, TARGET, 0).body)["cache_salt"] == "ours"
    assert b"cache_salt" not in PROVIDER.encode(asked, there(), TARGET, 0).body
    own = replace(ask(cache_salt="of another"), salt="ours")
    assert orjson.loads(PROVIDER.encode(own, there(), TARGET, 0).body)["cache_salt"] == "ours"


@pytest.mark.parametrize("surface", ["chat.completions", "completions"])
def test_usage_is_asked_for_where_the_endpoint_allows(
    ask: Callable[..., Ask], surface: str
) -> None:
    allows = there(features=frozenset({"stream_usage"}))
    asked = ask(stream=True, surface=surface)
    sent = orjson.loads(PROVIDER.encode(asked, allows, TARGET, 0).body)
    assert sent["stream_options"] == {"include_usage": True}
    assert "stream_options" not in asked.body
    decoder = PROVIDER.decoder(asked, allows, EVENTS)
    assert decoder == EqualEvents("assistant", drops_usage=True)
    wanted = PROVIDER.decoder(
        ask(stream=True, stream_options={"include_usage": True}), allows, EVENTS
    )
    assert wanted == EqualEvents("assistant", drops_usage=False)


@pytest.mark.parametrize("surface", ["responses", "messages"])
def test_other_surfaces_tell_usage_anyway(ask: Callable[..., Ask], surface: str) -> None:
    allows = there(features=frozenset({"stream_usage"}))
    sent = PROVIDER.encode(ask(stream=True, surface=surface), allows, TARGET, 0).body
    assert b"stream_options" not in sent


@pytest.mark.parametrize(
    ("stream", "headers", "expected"),
    [
        (False, JSON, JsonDecoder),
        (True, EVENTS, EqualEvents),
        (True, JSON, Failure),
        (False, EVENTS, Failure),
        (False, ((b"content-type", b"text/html"),), Failure),
        (False, (), Failure),
    ],
)
def test_the_content_type_decides(
    ask: Callable[..., Ask],
    stream: bool,
    headers: tuple[tuple[bytes, bytes], ...],
    expected: type[object],
) -> None:
    assert isinstance(PROVIDER.decoder(ask(stream=stream), there(), headers), expected)


@pytest.mark.parametrize("name", ["api_base", "provider", "aws_region_name", "extra_headers"])
def test_place_parameters_are_refused(ask: Callable[..., Ask], name: str) -> None:
    asked = ask(**{name: "elsewhere"})
    refusal = PROVIDER.refusal(asked, there())
    assert refusal is not None
    assert (refusal.code, refusal.param) == ("parameter_changes_place", name)
    with pytest.raises(RequestError, match=name):
        PROVIDER.encode(asked, there(), TARGET, 0)
    assert PROVIDER.refusal(ask(), there()) is None


def test_twins_never_leave(ask: Callable[..., Ask]) -> None:
    raw = b'{"model":"assistant","messages":[],"model":"assistant"}'
    twins = Ask("chat.completions", orjson.loads(raw), raw, False, "assistant", "r")
    with pytest.raises(RequestError, match="twice"):
        PROVIDER.encode(twins, there(), TARGET, 0)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h:8000", "/v1/chat/completions"),
        ("http://h:8000/", "/v1/chat/completions"),
        ("https://h/openai/v1", "/openai/v1/chat/completions"),
    ],
)
def test_paths(url: str, path: str) -> None:
    assert path_of(url, "chat.completions") == path


def test_an_unknown_surface_is_refused() -> None:
    with pytest.raises(RequestError):
        path_of("http://h", "images")


def test_replay_only_where_no_one_else_runs_it(ask: Callable[..., Ask]) -> None:
    assert PROVIDER.encode(ask(), there(self_operated=True), TARGET, 0).replay_safe
    assert not PROVIDER.encode(ask(), there(), TARGET, 0).replay_safe


def test_urls_are_checked_before_traffic() -> None:
    PROVIDER.check(there(urls=("http://10.0.0.8:8000",)))
    with pytest.raises(Misconfigured, match="`e`"):
        PROVIDER.check(there(urls=("ftp://10.0.0.8",)))


def test_failures_and_call_ids() -> None:
    assert PROVIDER.failure(429, (), b"", 0).kind is Kind.LOAD
    assert PROVIDER.call_id(((b"x-request-id", b"req_1f2e3d4c"),)) == "req_1f2e3d4c"


def test_the_health_of_a_large_fleet_takes_nothing_from_requests(ask: Callable[..., Ask]) -> None:
    """Where a server is was worked out anew for each request, between two rounds of 2,000."""
    before = PROVIDER.encode(ask(), there(), TARGET, 0).origin
    for number in range(2_000):
        beside(Target(f"http://10.1.{number // 250}.{number % 250}:8000"), "/health")
    assert PROVIDER.encode(ask(), there(), TARGET, 0).origin is before
