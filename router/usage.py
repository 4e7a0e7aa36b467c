"""Tokens of an answer, read from what the upstream says; an estimate is always marked as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import orjson

from classifiers.view import IMAGE_TYPES, MEDIA_TYPES
from router.frozen import frozen, maker

_BYTES_PER_TOKEN = 4
MEDIUM: Final = 4096
"""Bytes that a picture, a recording or a file counts for at most: as text in base64 it would be
hundreds of thousands of tokens, and a server makes about a thousand of it."""
_MEDIA: Final = IMAGE_TYPES | MEDIA_TYPES
_MOST = 1 << 32  # no call has more: the log, which holds numbers below 2^53, must take its outcome


@frozen
class Usage:
    """Tokens of one call.

    `input` includes `cached_input` (read from a prompt cache) and `cache_write`; `output`
    includes reasoning. `estimated` is true where no upstream said it.
    """

    input: int
    output: int
    cached_input: int = 0
    cache_write: int = 0
    estimated: bool = False

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output


_usage = maker(Usage)


def _count(holder: Mapping[str, object], *names: str) -> int | None:
    """The first of these members that is a count; `True`, negatives and absurd ones are none."""
    for name in names:
        value = holder.get(name)
        if type(value) is int and 0 <= value <= _MOST:
            return value
    return None


def _details(holder: Mapping[str, object], *names: str) -> Mapping[str, object]:
    for name in names:
        value = holder.get(name)
        if type(value) is dict or (value is not None and isinstance(value, Mapping)):
            return value
    return {}


def read(usage: object) -> Usage | None:
    """Usage from a `usage` object of OpenAI (all surfaces) or Anthropic; `None` if it is not one.

    Anthropic counts cached tokens beside `input_tokens`, OpenAI inside: the sum here is the same.
    What is in `total_tokens` alone counts too, as output: some leave reasoning out of that.
    """
    if usage is None or (type(usage) is not dict and not isinstance(usage, Mapping)):
        return None
    taken, given = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(taken) is type(given) is int and 0 <= taken <= _MOST and 0 <= given <= _MOST:
        # As nearly all engines tell it. No prompt has no tokens: some that don't count write 0.
        if not (taken or given):
            return None
        if usage.get("total_tokens") in (None, taken + given):
            return _usage(taken, given, _cached(usage))
    taken = _count(usage, "prompt_tokens", "input_tokens")
    given = _count(usage, "completion_tokens", "output_tokens")
    if taken is None and given is None:
        return None
    if usage.get("prompt_tokens") is None:
        hit = _count(usage, "cache_read_input_tokens")
        write = _count(usage, "cache_creation_input_tokens")
        if hit is not None or write is not None:
            hit, write = hit or 0, write or 0
            return Usage((taken or 0) + hit + write, given or 0, hit, write)
    taken, given = taken or 0, given or 0
    beside = max(0, (_count(usage, "total_tokens") or 0) - taken - given)
    if usage.get("cache_read_input_tokens") or usage.get("cache_creation_input_tokens"):
        return Usage(taken + beside, given, _cached(usage))  # Anthropic's counts, half translated
    return Usage(taken, given + beside, _cached(usage))


def _cached(usage: Mapping[str, object]) -> int:
    """What of the prompt was read from a cache, where it is counted inside."""
    if not (usage.get("prompt_tokens_details") or usage.get("input_tokens_details")):
        return 0  # as most tell nothing of it
    inside = _details(usage, "prompt_tokens_details", "input_tokens_details")
    return (_count(inside, "cached_tokens") or 0) if inside else 0


def read_bedrock(usage: object) -> Usage | None:
    """Usage from Bedrock's `TokenUsage`: cached tokens stand beside `inputTokens`."""
    if not isinstance(usage, Mapping):
        return None
    taken, given = _count(usage, "inputTokens"), _count(usage, "outputTokens")
    if taken is None or given is None:
        return None
    hit = _count(usage, "cacheReadInputTokens") or 0
    write = _count(usage, "cacheWriteInputTokens") or 0
    return Usage(taken + hit + write, given, hit, write)


def in_answer(answer: object) -> Usage | None:
    """Usage of a parsed answer or event: at the top, or under `response` or `message`."""
    if not isinstance(answer, Mapping):
        return None
    for holder in (answer, answer.get("response"), answer.get("message")):
        if isinstance(holder, Mapping) and (found := read(holder.get("usage"))) is not None:
            return found
    return None


def prompt_bytes(raw: bytes, body: Mapping[str, object]) -> int:
    """Bytes of a request, of which each medium in it counts for `MEDIUM` at most."""
    if len(raw) <= MEDIUM or b"data" not in raw:
        return len(raw)
    return len(raw) - sum(max(0, size - MEDIUM) for size in _media(body))


def _media(body: Mapping[str, object]) -> Iterator[int]:
    """The size of each part of a dialogue that holds no text."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") in _MEDIA:
                yield _texts(part)


def _texts(holder: Mapping[str, object]) -> int:
    """Characters of the texts in an object and in those right within it."""
    size = 0
    for value in holder.values():
        inside = value.values() if isinstance(value, dict) else (value,)
        size += sum([len(one) for one in inside if isinstance(one, str)])
    return size


def streamed_bytes(first: bytes, sent: int, events: int) -> int:
    """Bytes of text in a stream whose events are like the `first` with content in it.

    Most of an event is what holds the text. Each counts for one token at least, and for no more
    where none had text.
    """
    if not first:
        return events * _BYTES_PER_TOKEN
    try:
        chunk: object = orjson.loads(first.partition(b"data:")[2])
    except orjson.JSONDecodeError:
        return sent
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    delta = choices[0].get("delta") if isinstance(choices, list) and choices else None
    if not isinstance(delta, dict):
        return sent
    text = sum([len(one.encode()) for one in delta.values() if isinstance(one, str)])
    return max(sent - events * (len(first) - text), events * _BYTES_PER_TOKEN)


def estimate(input_bytes: int, output_bytes: int) -> Usage:
    """Usage guessed from UTF-8 bytes of text at four bytes a token, rounded up, and marked."""
    return Usage(
        -(-input_bytes // _BYTES_PER_TOKEN), -(-output_bytes // _BYTES_PER_TOKEN), estimated=True
    )
