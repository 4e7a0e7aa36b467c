from __future__ import annotations

import binascii
import struct

import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer

from router.simulator.bedrock_frames import event, exception, message


def decode(data: bytes) -> list[tuple[dict[str, str], bytes]]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return [(found.headers, found.payload) for found in buffer]


def test_botocore_decodes_what_is_encoded() -> None:
    data = event("contentBlockDelta", {"delta": {"text": "東京"}}) + exception(
        "throttlingException", {"message": "slow"}
    )
    assert decode(data) == [
        (
            {":event-type": "contentBlockDelta", ":content-type": "application/json",
             ":message-type": "event"},
            '{"delta": {"text": "東京"}}'.encode(),
        ),
        (
            {":exception-type": "throttlingException", ":content-type": "application/json",
             ":message-type": "exception"},
            b'{"message": "slow"}',
        ),
    ]  # fmt: skip


def test_the_frame_is_as_the_specification_says() -> None:
    data = message({"a": "b"}, b"xyz")
    total, headers = struct.unpack("!II", data[:8])
    assert (total, headers) == (len(data), 6)
    assert struct.unpack("!I", data[8:12]) == (binascii.crc32(data[:8]),)
    assert data[12:18] == b"\x01a\x07\x00\x01b"
    assert struct.unpack("!I", data[-4:]) == (binascii.crc32(data[:-4]),)


@pytest.mark.parametrize("at", [0, 9, 13, 20])
def test_a_flipped_byte_is_noticed(at: int) -> None:
    data = bytearray(message({"a": "b"}, b"xyz"))
    data[at] ^= 1
    with pytest.raises(ChecksumMismatch):
        decode(bytes(data) + b"\x00" * 16)
