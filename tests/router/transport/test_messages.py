"""Types of the seam, and reading a whole body."""

from __future__ import annotations

import pytest

from router.transport.messages import (
    AnswerTooLarge,
    Origin,
    header,
    read_body,
)
from tests.rawserver import (
    ask,
    now,
    saying,
    served,
    settled,
    within,
)


async def test_a_large_body_is_refused_before_and_while_it_comes() -> None:
    async with served(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")) as (
        server,
        transport,
    ):
        response = await transport.send(ask(server), within(5))
        with pytest.raises(AnswerTooLarge):
            await read_body(response, 100, now() + 5)
    async with served(saying(b"HTTP/1.1 200 OK\r\n\r\n" + b"z" * 9999)) as (server, transport):
        response = await transport.send(ask(server), within(5))
        with pytest.raises(AnswerTooLarge):
            await read_body(response, 100, now() + 5)
        await settled(transport, 0)


@pytest.mark.parametrize(
    ("url", "authority", "port"),
    [
        ("http://fra1.internal:8000/v1", "fra1.internal:8000", 8000),
        ("https://API.example.com", "api.example.com", 443),
        ("http://10.0.0.1", "10.0.0.1", 80),
        ("http://[::1]:8000/", "[::1]:8000", 8000),
    ],
)
def test_an_origin_is_read_from_a_url(url: str, authority: str, port: int) -> None:
    origin = Origin.parse(url)
    assert (origin.authority, origin.port) == (authority, port)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "http://",
        "http://user:pass@x",
        "http://x:0",
        "http://x:99999",
        "http://a b/",
        "http://x\r\ny/",
        "x",
        "unix:///run/x",
        "http://bücher.example",
        "http://x/v1/ü",
    ],
)
def test_urls_that_name_no_origin(url: str) -> None:
    with pytest.raises(ValueError):
        Origin.parse(url)


def test_headers_are_found_by_name() -> None:
    headers = ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    assert (header(headers, b"a"), header(headers, b"c")) == (b"1", None)
