"""What an engine's answer to a canary says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.router.scripted import Reply, answer, failure, scripted
from tests.router.watch.test_probe import Made, Probed, ended, prober, quiet, well


def page(status: int, kind: bytes, body: bytes, *more: tuple[bytes, bytes]) -> Made:
    return lambda: Reply(status, ((b"content-type", kind), *more), [body])


NO_ENGINE: dict[str, Made] = {
    "a page": page(200, b"text/html", b"<html>welcome</html>"),
    "a health check's answer": page(200, b"application/json", b'{"status":"ok"}'),
    "no choice": page(200, b"application/json", b'{"choices":[]}'),
    "cut json": page(200, b"application/json", b'{"choices":[{'),
    "nothing": page(200, b"application/json", b""),
    "nothing, and it says so": page(204, b"application/json", b""),
    "a log-in": page(302, b"text/html", b"", (b"location", b"/login")),
    "another address": page(307, b"text/html", b"", (b"location", b"http://elsewhere/")),
    "an error behind a 200": page(200, b"application/json", b'{"error":{"type":"server_error"}}'),
    "without an end": page(200, b"application/json", b"x" * (2 << 20)),
}


@pytest.mark.parametrize("name", NO_ENGINE)
async def test_what_no_client_could_use_is_no_working_engine(tmp_path: Path, name: str) -> None:
    """It said 200, or led elsewhere: every such canary ended the mark that clients' requests had
    given, and sent the next ones there again."""
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, NO_ENGINE[name])
        await quiet(prober(world, transport), transport)
        assert live.health.marked(live.loop_time()) == ("fra1", "iad1", "par1")


def told(status: int, error: bytes) -> Made:
    return page(status, b"application/json", b'{"error":%b}' % error)


NO_MODEL: dict[str, Made] = {
    "by its status": lambda: failure(404),
    "by its code": told(400, b'{"code":"model_not_found","message":"no"}'),
    "by its words": told(400, b'{"param":"model","message":"The model `m` does not exist."}'),
    "in an answer": told(200, b'{"type":"not_found_error","message":"no"}'),
}


@pytest.mark.parametrize("name", NO_MODEL)
async def test_a_model_that_is_not_there_is_told_and_is_no_mark(tmp_path: Path, name: str) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, NO_MODEL[name])
        one = prober(world, transport)
        await quiet(one, transport)
        assert live.health.marked(live.loop_time()) == ()
        assert "probe:fra1: canary finds no `tiny` there" in live.degraded()
        transport.made["/v1/chat/completions"] = answer
        one._asked.clear()
        await one.listen()
        await ended(one)
        assert not any("canary" in said for said in live.degraded())


WORKS: dict[str, Made] = {
    "a full queue": told(503, b'{"message":"The request queue is full.","type":"x"}'),
    "pending requests": told(503, b'{"message":"Too many pending requests","code":503}'),
    "overloaded": told(529, b'{"type":"overloaded_error"}'),
    "too much at once": told(429, b'{"type":"rate_limit_error"}'),
    "a limit of one token": told(500, b'{"message":"max_tokens","type":"BadRequestError"}'),
}


@pytest.mark.parametrize("name", WORKS)
async def test_an_engine_that_works_and_says_no_is_not_marked(tmp_path: Path, name: str) -> None:
    """The same words of a client's answer mark nobody; a canary's ended all that waited there."""
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, WORKS[name])
        await quiet(prober(world, transport), transport)
        assert live.health.marked(live.loop_time()) == ()


FAULTS: dict[str, Made] = {
    "a 503 that says nothing of load": lambda: failure(503),
    "a key that is refused under 400": told(400, b'{"code":"invalid_api_key","message":"no"}'),
    "a proxy that lost its engine": lambda: failure(499),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_what_is_the_endpoints_own_marks_as_a_requests_would(
    tmp_path: Path, name: str
) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, FAULTS[name])
        await quiet(prober(world, transport), transport)
        assert live.health.marked(live.loop_time()) == ("fra1", "iad1", "par1")
