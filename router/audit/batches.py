"""Several events as one body or one stretch of a stream, for collectors. Pure.

HTTP: OTLP/JSON takes one request of many records; the other formats are lines. Syslog: RFC 5424
messages, each with its length before it (RFC 6587, octet counting), so that no line end inside
ends one. The message is the event in its format.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from router.audit.exporting import FORMATS, Event, otel_request

_AUDIT: Final = 13 * 8  # facility 13, log audit
_INFORMATIONAL: Final = 6
_WARNING: Final = 4
_TYPES: Final = {"ocsf": "application/x-ndjson", "otel": "application/json"}
_NAME: Final = 255


def http_body(format_: str, found: Sequence[Event]) -> tuple[str, bytes]:
    """The content type and body of one POST."""
    if format_ == "otel":
        return _TYPES[format_], otel_request(found)
    lines = b"".join(FORMATS[format_](event) + b"\n" for event in found)
    return _TYPES.get(format_, "text/plain; charset=utf-8"), lines


def syslog_frames(format_: str, found: Sequence[Event]) -> bytes:
    """The messages of these events, framed."""
    return b"".join(_framed(_message(FORMATS[format_](event), event)) for event in found)


def _framed(message: bytes) -> bytes:
    return b"%d %b" % (len(message), message)


def _message(text: bytes, event: Event) -> bytes:
    priority = _AUDIT + (_INFORMATIONAL if event.good else _WARNING)
    when = datetime.fromtimestamp(event.time / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    # A log's id is within what a host name may hold here: printable, no blank, at most 255.
    head = f"<{priority}>1 {when} {event.log[:_NAME]} domicile - {event.kind} - "
    return head.encode("ascii", "replace") + text
