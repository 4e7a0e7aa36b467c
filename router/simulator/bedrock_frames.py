"""Encodes `application/vnd.amazon.eventstream` messages, which botocore can only decode.

A message is: total length, headers length, CRC-32 of these eight bytes (all 4-byte big-endian);
headers (name length, name, type 7 = string, value length, value); payload; CRC-32 of everything
before it.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Mapping

_STRING = 7


def message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One encoded message with string headers."""
    block = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(block) + len(payload), len(block))
    prelude += struct.pack("!I", binascii.crc32(prelude))
    body = prelude + block + payload
    return body + struct.pack("!I", binascii.crc32(body))


def event(name: str, payload: Mapping[str, object]) -> bytes:
    """An event message, such as `contentBlockDelta`."""
    return _typed(":event-type", name, "event", payload)


def exception(name: str, payload: Mapping[str, object]) -> bytes:
    """An exception message, such as `throttlingException`, which ends a stream."""
    return _typed(":exception-type", name, "exception", payload)


def _typed(header: str, name: str, kind: str, payload: Mapping[str, object]) -> bytes:
    headers = {header: name, ":content-type": "application/json", ":message-type": kind}
    return message(headers, json.dumps(payload, ensure_ascii=False).encode())


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(text)) + text
