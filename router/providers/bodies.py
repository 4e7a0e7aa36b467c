"""Request bodies as bytes: one meaning for us and the upstream, and only the model changed.

The policy judges the parsed body; a passthrough sends the raw one. Parsers differ on a key
that stands twice, so a body with one is refused before anything is decided on it.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

import orjson

from router.errors import RequestError
from router.salts import FIELD

# Members before `model`, as long as their values are scalars: quotes and braces are balanced by
# construction, so what is found is the top-level member.
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_HEAD = re.compile(
    rb'\s*+\{\s*+(?:(?!"model")' + _STRING + rb"\s*+:\s*+(?:" + _STRING + rb'|[^\s\[\]{}",:]++)'
    rb'\s*+,\s*+)*+"model"\s*+:\s*+(' + _STRING + rb")",
    re.DOTALL,
)
_ANYWHERE = re.compile(rb'"model"\s*+:\s*+(' + _STRING + rb")", re.DOTALL)
_OPEN = re.compile(rb"\s*+\{")


_NAME = "uuid"
_IDS = frozenset({"rid", "request_id"})
_PAIR = re.compile(rb'"[ \t\n\r]*+:')


class _Twice(ValueError):
    """A key stands twice in one object."""


def _once(pairs: list[tuple[str, object]]) -> None:
    if len(pairs) > 1 and len({key for key, _ in pairs}) != len(pairs):
        raise _Twice


def refuse_duplicates(raw: bytes, parsed: object = None) -> None:
    """Refuse a body in which some object, at any depth, has one key twice.

    `raw` has been parsed already, so it is JSON in UTF-8. With `parsed`, what it was parsed
    into, most bodies are let through without reading them a second time: every member has a
    quote and a colon of its own, so as many members as such pairs leave none for a repeated
    key. Texts may hold more pairs, and are then read in full.

    Raises:
        RequestError: `invalid_json`; the key itself is not repeated.
    """
    if parsed is not None and _holds_no_more(raw, parsed):
        return
    try:
        json.loads(raw, object_pairs_hook=_once, parse_int=str, parse_float=str)
    except _Twice:
        raise RequestError(
            "invalid_json",
            "an object in the body has the same key twice, which parsers read differently; "
            "send every key once",
        ) from None
    except RecursionError:
        raise RequestError("invalid_json", "the body is nested too deeply") from None


def _holds_no_more(raw: bytes, parsed: object) -> bool:
    """Whether bytes are known to hold every member once: written anew they are the same (which
    is so of most clients' bodies), or they hold as many pairs of quote and colon as members."""
    try:
        if orjson.dumps(parsed) == raw:
            return True
    except orjson.JSONEncodeError:
        pass  # nested too deeply to be written: counted
    return len(_PAIR.findall(raw)) == _members(parsed)


def _members(parsed: object) -> int:
    """How many members all objects of a document have together."""
    count = 0
    left = [parsed]
    while left:
        one = left.pop()
        inside: Iterable[object] = ()
        if isinstance(one, dict):
            count += len(one)
            inside = one.values()
        elif isinstance(one, list):
            inside = one
        left += [value for value in inside if type(value) is dict or type(value) is list]
    return count


def splice_model(raw: bytes, parsed: Mapping[str, object], model: str) -> bytes:
    """`raw` with the value of its top-level `model` replaced; every other byte stays.

    Where the place of the value can't be proven from the bytes (an escaped key, several
    candidates), the parsed body is written anew in its order, so that what is sent is what was
    judged. Raises RequestError as `anew` does, here and below.
    """
    said = parsed.get("model")
    if said == model:
        return raw
    if type(said) is str and raw.startswith(first := _beginning(said)):
        return _beginning(model) + raw[len(first) :]
    value = orjson.dumps(model)
    if (head := _HEAD.match(raw)) is not None:
        return raw[: head.start(1)] + value + raw[head.end(1) :]
    found = list(_ANYWHERE.finditer(raw))
    if len(found) == 1:
        spliced = raw[: found[0].start(1)] + value + raw[found[0].end(1) :]
        # One candidate: if the top-level value changed, it was the one.
        if orjson.loads(spliced).get("model") == model:
            return spliced
    return anew({**parsed, "model": model})


def anew(body: Mapping[str, object]) -> bytes:
    """A body's JSON.

    Raises:
        RequestError: `invalid_json`; it is nested deeper than can be written, though not deeper
            than can be read.
    """
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        raise RequestError("invalid_json", "the body is nested too deeply") from None


@lru_cache(256)
def _beginning(model: str) -> bytes:
    """How a body begins that most clients write: with its model."""
    return b'{"model":%b' % orjson.dumps(model)


def with_usage_in_stream(raw: bytes, parsed: Mapping[str, object]) -> bytes:
    """`raw` asking for usage in the stream; `parsed` is the same body."""
    if "stream_options" not in parsed and (brace := _OPEN.match(raw)) is not None:
        return raw[: brace.end()] + b'"stream_options":{"include_usage":true},' + raw[brace.end() :]
    given = parsed.get("stream_options")
    options = {**(given if isinstance(given, Mapping) else {}), "include_usage": True}
    return anew({**orjson.loads(raw), "stream_options": options})


def with_priority(raw: bytes, parsed: Mapping[str, object], number: int) -> bytes:
    """`raw` with vLLM's `priority` being this number, and without it for 0; `parsed` has the same
    `priority`.

    The client's own number never passes: it would get ahead of others in an engine that they share.
    """
    if "priority" not in parsed:
        brace = _OPEN.match(raw)
        if not number or brace is None:
            return raw
        return raw[: brace.end()] + b'"priority":%d,' % number + raw[brace.end() :]
    document = orjson.loads(raw)
    del document["priority"]
    return anew({"priority": number, **document} if number else document)


def with_salt(raw: bytes, parsed: Mapping[str, object], salt: str | None) -> bytes:
    """`raw` with `cache_salt` being this; `parsed` has the same `cache_salt`, which never passes.

    Raises:
        RequestError: `invalid_request`, the client's own is no text, or an empty one. What engines
            make of that differs, and one that took it for none would share its cache.
    """
    said = parsed.get(FIELD)
    if said is not None and (not isinstance(said, str) or not said):
        message = f"`{FIELD}` must be a text that is not empty, or left out"
        raise RequestError("invalid_request", message, param=FIELD)
    brace = _OPEN.match(raw)
    if FIELD not in parsed and brace is not None:
        if salt is None:
            return raw
        return raw[: brace.end()] + b'"cache_salt":%b,' % orjson.dumps(salt) + raw[brace.end() :]
    document = orjson.loads(raw)
    document.pop(FIELD, None)
    return anew(document if salt is None else {FIELD: salt, **document})


def with_names(raw: bytes, parsed: Mapping[str, object], salt: str | None) -> bytes:
    """`raw` with the name of each image, sound and film (`uuid`) mixed with this salt; `parsed` is
    the same body.

    vLLM caches what it made of a medium under its client's name alone, without looking at the
    medium, and answers from there. A name that two tenants use would give one the other's image.

    Raises:
        RequestError: `invalid_request`, a name is no text.
    """
    if b"uuid" not in raw and b"\\u" not in raw:  # as in most: an escape may spell it, too
        return raw
    if not any(part.get(_NAME) is not None for part in _parts(parsed)):
        return raw
    document = orjson.loads(raw)
    for part in _parts(document):
        said = part.get(_NAME)
        if isinstance(said, str):
            given = said.encode("utf-8", "surrogatepass")
            part[_NAME] = hmac.digest((salt or "").encode(), b"name\0" + given, "sha256").hex()
        elif said is not None:
            message = f"`{_NAME}` of a part of a message must be a text, or left out"
            raise RequestError("invalid_request", message, param="messages")
    return anew(document)


def _parts(body: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The parts of all messages, at any depth: a tool's result has parts, too."""
    left = [body.get("messages"), body.get("input")]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            yield one
            left += one.get("content"), one.get("output")


def without_ids(raw: bytes, parsed: Mapping[str, object]) -> bytes:
    """`raw` without what a client calls its request (`rid`, `request_id`); `parsed` is the same.

    SGLang and vLLM keep all running requests under these names and end them by them. Two equal ones
    crash or hang an engine, and SGLang ends all whose names begin with that of a client that left.
    """
    if _IDS.isdisjoint(parsed):
        return raw
    document = orjson.loads(raw)
    return anew({name: value for name, value in document.items() if name not in _IDS})


def with_transfer(raw: bytes, transfer: Mapping[str, object]) -> bytes:
    """`raw` with vLLM's `kv_transfer_params` being this, whatever a client left there (null)."""
    document = orjson.loads(raw)
    return anew({**document, "kv_transfer_params": dict(transfer)})
