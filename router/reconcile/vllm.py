"""Logs of one's own model servers → calls. Our request id travels as `x-request-id`.

1. vLLM's request log (`--enable-log-requests`): `Received request chatcmpl-<x-request-id>`.
2. A proxy's access log in JSON lines, with the request id under one of the usual names.
3. uvicorn's access log, which has neither an id nor a time; read only in files without 1.

A line that is about no inference is left out; lines of 1 hold prompts, of which nothing is kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from router.assess.records import mapping, text
from router.reconcile.model import UNKNOWN_TIME, Call, Source, Where
from router.reconcile.reading import Fault, Line, Object, lines
from router.reconcile.times import instant

PROBE: Final = "probe"
"""What the router's own canaries are called; they hold no text of anybody's."""

_RECEIVED: Final = re.compile(rb"Received request ([A-Za-z0-9_.-]{1,200}):?[ .]")
_ACCESS: Final = re.compile(rb'"POST (/[^ "?]*)(?:\?[^ "]*)? HTTP/[0-9.]+" ([0-9]{3})')
_STAMP: Final = re.compile(rb"\b(\d\d)-(\d\d) (\d\d:\d\d:\d\d)\b")
_OURS: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|(?<![0-9a-z])[0-9a-v]{9}[159dhlpt][o-v][0-9a-v][13579bdfhjlnprtv][0-9a-f][0-9a-v]{11}"
    r"[048cgkos](?![0-9a-z])"
)
"""A UUID, or one of version 7 in the 26 letters of base 32 that `router.ids.Ids` writes."""
_PATHS: Final = (
    "/completions", "/responses", "/messages", "/embeddings", "/generate", "/invocations",
    "/pooling", "/classify", "/score", "/rerank", "/transcriptions", "/translations",
)  # fmt: skip
"""How the paths end that take a prompt, as vLLM serves them."""
_IDS: Final = ("x_request_id", "x-request-id", "http_x_request_id", "request_id", "requestId")
_TIMES: Final = ("time", "timestamp", "@timestamp", "time_iso8601", "start_time", "ts", "wall")
_TARGETS: Final = ("path", "uri", "request_uri", "url", "request")
_STATUSES: Final = ("status", "response_code", "status_code")
_NESTED: Final = ("request", "req", "http")


def calls(path: Path, endpoint: str, near: int) -> Iterator[Call | Fault]:
    """The calls in one file.

    Args:
        endpoint: whose log it is, where that is known.
        near: vLLM's own lines name no year: the one that brings them nearest to this time is taken.
    """
    told = any(isinstance(one, Line) and _RECEIVED.search(one.text) for one in lines(path))
    for line in lines(path):
        if isinstance(line, Fault):
            yield line
            continue
        found = _json(line, endpoint) or _received(line, endpoint, near)
        if found is None and not told:
            found = _access(line, endpoint)
        if found is not None:
            yield found


def ours(name: str) -> str:
    """The request id of ours in an engine's name of a request, as `chatcmpl-<id>-0`."""
    found = _OURS.search(name)
    if found is not None:
        return found[0]
    return PROBE if PROBE in name.split("-") else ""


def _received(line: Line, endpoint: str, near: int) -> Call | None:
    found = _RECEIVED.search(line.text)
    if found is None:
        return None
    name = found[1].decode("ascii")
    return _call(name, ours(name), _stamp(line.text, near), endpoint, line.where)


def _access(line: Line, endpoint: str) -> Call | None:
    found = _ACCESS.search(line.text)
    if found is None or not unquote(found[1].decode("latin-1")).endswith(_PATHS):
        return None
    return _call("", "", UNKNOWN_TIME, endpoint, line.where, found[2] < b"400")


def _json(line: Line, endpoint: str) -> Call | None:
    if not line.text.lstrip().startswith(b"{"):
        return None
    try:
        value = mapping(json.loads(line.text))
    except (ValueError, RecursionError):
        return None
    target = text(_first(value, _TARGETS))
    words = target.split(" ")
    path = unquote((words[1] if len(words) > 1 else target).partition("?")[0]).rstrip("/")
    if not path.endswith(_PATHS):
        return None
    name = text(_first(value, _IDS))
    try:
        ran = int(str(_first(value, _STATUSES) or 200)) < 400
    except ValueError:
        ran = True
    when = instant(_first(value, _TIMES))
    return _call(name, ours(name), when, endpoint, line.where, ran)


def _first(value: Object, names: tuple[str, ...]) -> object:
    for holder in (value, *(mapping(value.get(name)) for name in _NESTED)):
        for name in names:
            if isinstance(found := holder.get(name), str | int | float):
                return found
    return None


def _call(
    name: str, request: str, when: int, endpoint: str, where: Where, ran: bool = True
) -> Call:
    source = Source.VLLM
    return Call(source, "", name, "", request, when, "", "", "", ran, "", where, endpoint)


def _stamp(line: bytes, near: int) -> int:
    """`11-29 20:04:20`, in UTC, of the year that brings it nearest."""
    found = _STAMP.search(line)
    if found is None:
        return UNKNOWN_TIME
    month, day, clock = (part.decode("ascii") for part in found.groups())
    middle = 1970 + near // 31_556_952_000_000
    stamps = (instant(f"{year:04d}-{month}-{day}T{clock}") for year in _around(middle))
    known = [one for one in stamps if one != UNKNOWN_TIME]
    return min(known, key=lambda one: abs(one - near), default=UNKNOWN_TIME)


def _around(year: int) -> tuple[int, int, int]:
    return year - 1, year, year + 1
