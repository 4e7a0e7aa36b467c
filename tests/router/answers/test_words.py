"""Words that mean a limit, and those that only look like them."""

from __future__ import annotations

import pytest

from router.answers.frames import StreamError
from router.answers.words import WORDED, begins_with_limit, tells_limit, worded
from router.providers.base import Kind
from router.providers.bedrock_failures import bedrock_failure
from router.providers.failures import openai_failure

LIMITS = (
    "The request queue is full.",
    "queue full",
    "server busy, please try again",
    "server busy. maximum pending requests exceeded",
    "All workers are busy",
    "The model is overloaded. Try later.",
    "Too many connections, please wait before trying again.",
    "Too many tokens, please wait before trying again.",
    "Rate limit reached for gpt",
    "rate_limit exceeded",
    "Model is at capacity",
    "Request dropped due to backpressure (max_queued=1)",
)
ILL = (
    "CUDA error: all CUDA-capable devices are busy or unavailable",
    "CUDA busy or unavailable",
    "[Errno 16] Device or resource busy",
    "open /dev/nvidia0: resource busy",
    "The service is unavailable",
    "the busybox image is gone",
    "",
)


@pytest.mark.parametrize("said", LIMITS)
def test_a_limit_is_one_in_every_provider_s_words_and_under_every_status(said: str) -> None:
    """There were three lists of them, and what one knew the others took for illness."""
    assert begins_with_limit(said)
    body = b'{"error": {"message": "%b"}}' % said.encode()
    for status in (500, 503):
        assert openai_failure(status, (), body, 0.0).kind is Kind.LOAD
    assert bedrock_failure(503, (), b'{"message": "%b"}' % said.encode(), 0.0).kind is Kind.LOAD
    assert StreamError.read({"message": said}).status == 429


@pytest.mark.parametrize("said", ILL)
def test_what_is_broken_is_no_limit(said: str) -> None:
    assert not begins_with_limit(said)
    assert not tells_limit(said)
    body = b'{"error": {"message": "%b"}}' % said.encode()
    assert openai_failure(503, (), body, 0.0).kind is Kind.ILL


def test_later_words_may_be_a_prompt_s() -> None:
    said = "the request could not be read by us: I am too busy to talk"
    assert not begins_with_limit(said)
    assert tells_limit(said)
    assert StreamError.read({"message": said}).status == 500


@pytest.mark.parametrize("name", WORDED)
def test_words_are_found_wherever_a_server_puts_them(name: str) -> None:
    assert worded({name: "busy"}) == "busy"
    assert worded({name: "", "detail": "busy"}) == "busy"
    assert StreamError.read({name: "server busy"}).status == 429
    assert worded({name: 5}) == worded({name: {"a": "b"}}) == ""
