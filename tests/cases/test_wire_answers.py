"""Answers that are odd or cut on real sockets: another endpoint is asked, or the break is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from router.transport.client import HttpTransport
from tests.cases.built import BASELINE, Files, built, outcomes
from tests.rawserver import Line, RawServer
from tests.router.scripted import FakeExchange, answer

[GOOD] = answer()._chunks
assert isinstance(GOOD, bytes)
BODY: bytes = GOOD
JSON = b"content-type: application/json\r\n"
SIZED = JSON + b"content-length: %d\r\n\r\n" % len(BODY)
OK = b"HTTP/1.1 200 OK\r\n"
AWAY = b"location: http://127.0.0.1:%d/v1/chat/completions\r\ncontent-length: 0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(delta: bytes, finish: bytes = b"null") -> bytes:
    return (
        b'data: {"id":"x","model":"tiny","choices":[{"index":0,"delta":{%b},"finish_reason":%b}]}'
        b"\n\n" % (delta, finish)
    )


# What `fra` says, and how its attempt ends.
ODD = {
    "301": (b"HTTP/1.1 301 Moved\r\n" + AWAY, "bad_answer"),
    "302": (b"HTTP/1.1 302 Found\r\n" + AWAY, "bad_answer"),
    "307": (b"HTTP/1.1 307 Temporary\r\n" + AWAY, "bad_answer"),
    "308": (b"HTTP/1.1 308 Permanent\r\n" + AWAY, "bad_answer"),
    "204 with a body": (b"HTTP/1.1 204 Nothing\r\n" + SIZED + BODY, "bad_answer"),
    "304 with a body": (b"HTTP/1.1 304 Same\r\n" + SIZED + BODY, "bad_answer"),
    "600": (b"HTTP/1.1 600 More\r\n" + SIZED + BODY, "ill"),
    "000": (b"HTTP/1.1 000 None\r\n" + SIZED + BODY, "garbled"),
    "199": (b"HTTP/1.1 199 Interim\r\n" + SIZED + BODY, "garbled"),
    "two lengths": (OK + b"content-length: 1\r\n" + SIZED + BODY, "garbled"),
    "length and chunks": (OK + b"transfer-encoding: chunked\r\n" + SIZED + chunk(BODY), "garbled"),
    "folded": (OK + b"x: a\r\n b\r\n" + SIZED + BODY, "garbled"),
    "line feeds": ((OK + SIZED).replace(b"\r\n", b"\n") + BODY, "garbled"),
    "null": (OK + b"x: \0\r\n" + SIZED + BODY, "garbled"),
    "interim for ever": (b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 4000, "too_large"),
    "compressed": (OK + b"content-encoding: gzip\r\n" + SIZED + BODY, "bad_answer"),
    "no length, cut": (OK + JSON + b"\r\n" + BODY[:-1], "bad_answer"),
    "length, cut": (OK + SIZED + BODY[:-1], "connection_lost"),
    "chunks, cut": (
        OK + JSON + b"transfer-encoding: chunked\r\n\r\n" + chunk(BODY),
        "connection_lost",
    ),
    "closed at once": (b"", "connection_lost"),
}


STREAM = OK + b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FIRST = STREAM + chunk(event(b'"content":"Frankfurt"'))
ENDED = FIRST + chunk(event(b"", b'"stop"'))
DONE = chunk(b"data: [DONE]\n\n")
# Where a stream of `fra` is cut, and whose answer the client then has.
CUTS = {
    "in the head": (STREAM[:40], "par"),
    "in a chunk's size": (STREAM + b"5", "par"),
    "in the first event": (FIRST[:-20], "par"),
    "before its blank line": (FIRST[:-3], "par"),
    "after the first content": (FIRST, "broken"),
    "between chunks, in a size": (FIRST + b"4", "broken"),
    "in the last content": (ENDED[:-9], "broken"),
    "before the last event": (ENDED, "broken"),
    "before the last chunk": (ENDED + DONE, "fra"),
}


async def good(line: Line) -> None:
    """The other endpoint."""
    while b"HTTP/1.1" in (asked := await line.request()):
        if b'"stream"' not in asked:
            await line.json(BODY)
            continue
        await line.stream_head()
        for part in (event(b'"content":"Paris"'), event(b"", b'"stop"'), b"data: [DONE]\n\n", b""):
            await line.part(part)


async def told(folder: Path, said: bytes, reset: bool = False, **body: object) -> FakeExchange:
    """What a client gets where the server in Germany says this once, and one in France is well."""

    async def script(line: Line) -> None:
        if not (await line.request()).startswith(b"POST"):
            return  # what the router looks at by itself
        await line.say(said.replace(b":%d/", b":%d/" % par.port))
        if reset:
            await asyncio.sleep(0.02)  # what was said is to come first
            line.reset()

    transport = HttpTransport()
    async with RawServer(good) as par, RawServer(script) as fra:
        baseline = BASELINE
        for name, server in (("fra", fra), ("par", par)):
            url = f"http://127.0.0.1:{server.port}"
            old = f'"http://{name}1", model: tiny'
            baseline = baseline.replace(old, f'"{url}", probe: "off", model: tiny')
        async with built(
            folder, lambda h, n: answer(), Files(baseline=baseline), transport
        ) as world:
            done = await world.ask("eu", (), **body)
        await transport.close()
    return done


def results(folder: Path) -> list[tuple[str, str]]:
    [ended] = outcomes(folder)
    attempts = ended["attempts"]
    assert isinstance(attempts, list)
    return [(one["endpoint"], one["result"]) for one in attempts]


@pytest.mark.parametrize("name", ODD)
async def test_what_is_no_answer_is_another_endpoints_to_give(tmp_path: Path, name: str) -> None:
    said, result = ODD[name]
    done = await told(tmp_path, said)
    assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par")
    assert results(tmp_path) == [("fra", result), ("par", "ok")]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("name", CUTS)
async def test_a_stream_that_is_cut(tmp_path: Path, name: str, reset: bool) -> None:
    said, whose = CUTS[name]
    done = await told(tmp_path, said, reset, stream=True)
    text = done.written.decode()
    assert ("Frankfurt" in text, "Paris" in text) == (whose != "par", whose == "par")
    assert ("upstream_incomplete" in text, "[DONE]" in text) == (
        whose == "broken",
        whose != "broken",
    )
    assert outcomes(tmp_path)[0]["status"] == ("incomplete" if whose == "broken" else "ok")
    assert [where for where, _ in results(tmp_path)] == (
        ["fra", "par"] if whose == "par" else ["fra"]
    )
