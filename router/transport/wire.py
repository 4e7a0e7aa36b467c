"""The bytes of a request head, and proof that they are one head and nothing else."""

from __future__ import annotations

import re

from router.transport.messages import OutboundRequest, UnsafeRequest

_TOKENS = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TARGET = re.compile(r"/[\x21-\x7e]*")
_METHOD = re.compile(r"[A-Z]+")
# These say where a message ends or whom it is for: they are the transport's alone.
_OWN = frozenset((b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"te"))
_BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))


def encode_head(request: OutboundRequest) -> bytes:
    """The request line and headers. Raises UnsafeRequest if anything could break out of them."""
    if not _METHOD.fullmatch(request.method) or not _TARGET.fullmatch(request.target):
        raise UnsafeRequest("method or target holds a character that is not allowed there")
    authority = request.origin.authority.encode("ascii")
    lines = [f"{request.method} {request.target} HTTP/1.1\r\nhost: ".encode("ascii"), authority]
    for name, value in request.headers:
        if name.lower() == b"host":
            _same_host(value, authority)
        else:
            lines += (b"\r\n", name, b": ", value)
    if request.body or request.method not in _BODILESS:
        lines.append(b"\r\ncontent-length: %d" % len(request.body))
    lines.append(b"\r\n\r\n")
    head = b"".join(lines)
    _check(request, head)
    return head


def _same_host(value: bytes, authority: bytes) -> None:
    if value != authority:
        raise UnsafeRequest("the host header differs from the endpoint's host")


def _check(request: OutboundRequest, head: bytes) -> None:
    """Counting line ends finds an injected one without looking at each value."""
    names = [name for name, _ in request.headers]
    if not all(names) or (names and not _TOKENS.fullmatch(b"".join(names))):
        raise UnsafeRequest("a header name holds a character that is not allowed there")
    if not _OWN.isdisjoint(name.lower() for name in names):
        raise UnsafeRequest("framing headers are set by the transport")
    hosts = sum(1 for name in names if name.lower() == b"host")
    sized = 1 if request.body or request.method not in _BODILESS else 0
    ends = len(names) - hosts + sized + 3
    if head.count(b"\n") != ends or head.count(b"\r") != ends or b"\0" in head:
        raise UnsafeRequest("a header value holds a line end or a null byte")
