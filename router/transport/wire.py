"""The bytes of a request head, and proof that they are one head and nothing else."""

from __future__ import annotations

import re
from functools import lru_cache

from router.transport.messages import Headers, Origin, OutboundRequest, UnsafeRequest

_TOKENS = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(r"/[\x21-\x7e]*")
_BREAKS = re.compile(rb"[\r\n\0]")
_METHOD = re.compile(r"[A-Z]+")
# These say where a message ends or whom it is for: they are the transport's alone.
_OWN = frozenset((b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"te"))
_BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))


def encode_head(request: OutboundRequest) -> bytes:
    """The request line and headers. Raises UnsafeRequest if anything could break out of them.

    The last headers are a request's own, as its id; what stands before them is mostly the same for
    every request to a target, and is checked and written once.
    """
    headers, own = request.headers, request.own
    sized = bool(request.body) or request.method not in _BODILESS
    head = _before_own(request.origin, request.method, request.target, headers[:-own])
    for name, value in headers[-own:]:
        head += _line(name, value, request.origin)
    return head + (b"\r\ncontent-length: %d\r\n\r\n" % len(request.body) if sized else b"\r\n\r\n")


@lru_cache(4096)  # of each replica three: a request, its health and its metrics
def _before_own(origin: Origin, method: str, target: str, headers: Headers) -> bytes:
    if not _METHOD.fullmatch(method) or not _TARGET.fullmatch(target):
        raise UnsafeRequest("method or target holds a character that is not allowed there")
    head = f"{method} {target} HTTP/1.1\r\nhost: {origin.authority}".encode("ascii")
    return head + b"".join([_line(name, value, origin) for name, value in headers])


def _line(name: bytes, value: bytes, origin: Origin) -> bytes:
    """One header; nothing for a host that is the endpoint's own."""
    if not _TOKENS.fullmatch(name):
        raise UnsafeRequest("a header name holds a character that is not allowed there")
    if _BREAKS.search(value):
        raise UnsafeRequest("a header value holds a line end or a null byte")
    lower = name.lower()
    if lower in _OWN:
        raise UnsafeRequest("framing headers are set by the transport")
    if lower == b"host":
        _same_host(value, origin.authority.encode("ascii"))
        return b""
    return b"\r\n%b: %b" % (name, value)


def _same_host(value: bytes, authority: bytes) -> None:
    if value != authority:
        raise UnsafeRequest("the host header differs from the endpoint's host")
