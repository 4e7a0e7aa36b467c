"""Tokens of an answer, read from what the upstream says; an estimate is always marked as one."""

from __future__ import annotations

from collections.abc import Mapping

from router.frozen import frozen, maker

_BYTES_PER_TOKEN = 4
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
    """
    if usage is None or (type(usage) is not dict and not isinstance(usage, Mapping)):
        return None
    taken, given = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(taken) is type(given) is int and 0 <= taken <= _MOST and 0 <= given <= _MOST:
        return _usage(taken, given, _cached(usage))  # as nearly all engines tell it
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
    return Usage(taken or 0, given or 0, _cached(usage))


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


def estimate(input_bytes: int, output_bytes: int) -> Usage:
    """Usage guessed from UTF-8 bytes of text at four bytes a token, rounded up, and marked."""
    return Usage(
        -(-input_bytes // _BYTES_PER_TOKEN), -(-output_bytes // _BYTES_PER_TOKEN), estimated=True
    )
