"""No request can be anything on the wire but the one request it says."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.transport.messages import Origin, OutboundRequest, UnsafeRequest
from router.transport.wire import encode_head

ORIGIN = Origin("http", "eu.internal", 8000)


class Seen:
    """What a server's parser makes of bytes."""

    def __init__(self, data: bytes) -> None:
        self.begun = 0
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.begun += 1

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, data: bytes) -> None:
        self.body += data


def request(
    *headers: tuple[bytes, bytes], target: str = "/v1", body: bytes = b""
) -> OutboundRequest:
    return OutboundRequest(ORIGIN, "POST", target, headers, body)


def test_host_and_length_are_the_transport_s() -> None:
    sent = encode_head(request((b"a", b"b"), (b"Host", b"eu.internal:8000"), body=b"xy"))
    assert sent == (
        b"POST /v1 HTTP/1.1\r\nhost: eu.internal:8000\r\na: b\r\ncontent-length: 2\r\n\r\n"
    )


BAD = [
    (b"x", b"y\r\nz: injected"),
    (b"x", b"y\nz: injected"),
    (b"x", b"y\rz: injected"),
    (b"x", b"y\0"),
    (b"x\r\nz", b"y"),
    (b"x y", b"z"),
    (b"x:", b"z"),
    (b"", b"z"),
    (b"x\xff", b"z"),
    (b"Content-Length", b"0"),
    (b"transfer-encoding", b"chunked"),
    (b"Connection", b"close"),
    (b"host", b"evil.example"),
]


@pytest.mark.parametrize("pair", BAD)
def test_headers_that_mean_more_than_one_line(pair: tuple[bytes, bytes]) -> None:
    with pytest.raises(UnsafeRequest):
        encode_head(request((b"a", b"b"), pair))


@pytest.mark.parametrize("target", ["", "v1", "/a b", "/a\r\nx: y", "/é", "http://evil/", "/a\0"])
def test_targets_that_are_no_path(target: str) -> None:
    with pytest.raises(UnsafeRequest):
        encode_head(request(target=target))


def test_a_method_that_is_no_word() -> None:
    with pytest.raises(UnsafeRequest):
        encode_head(OutboundRequest(ORIGIN, "GET / HTTP/1.1\r\n", "/", ()))


@given(
    st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), max_size=4),
    st.text(max_size=12),
    st.binary(max_size=20),
)
def test_what_is_encoded_is_read_back_as_one_request(
    headers: list[tuple[bytes, bytes]], path: str, body: bytes
) -> None:
    asked = request(*headers, target="/" + path, body=body)
    try:
        sent = encode_head(asked) + body
    except UnsafeRequest:
        return
    try:
        seen = Seen(sent)
    except httptools.HttpParserError:
        return  # a control character: refused by the server, read as nothing else
    names = [name for name, _ in seen.headers]
    assert seen.begun == 1
    assert seen.url.decode() == asked.target
    assert names == [b"host", *(n for n, _ in headers if n.lower() != b"host"), b"content-length"]
    assert seen.body == body
