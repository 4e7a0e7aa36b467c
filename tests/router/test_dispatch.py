"""Dispatch: who is asked next, when nobody is, and what the client hears."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from router import types
from router.attempts.running import Run
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.config import Limits
from router.errors import RequestError
from router.narrowing.vetoes import Vetoes
from router.transport.messages import AttemptFailed, Fate, GarbledAnswer
from tests.garbage import let_go
from tests.router.crowd import crowd
from tests.router.house import Plan
from tests.router.scripted import (
    DONE,
    JSON,
    Reply,
    Script,
    Scripted,
    answer,
    event,
    failure,
    lost,
    refused,
    scripted,
    silent,
    stream,
)


def first(made: Callable[[], Reply | Exception]) -> Script:
    """`fra1` answers so, everybody else well."""
    return lambda host, number: made() if host == "fra1" else answer()


def everybody(made: Callable[[], Reply | Exception]) -> Script:
    return lambda host, number: made()


class Hanging(Reply):
    """A status, and no byte of the body until the time for it is up."""

    async def chunk(self, until: float) -> bytes:
        await asyncio.sleep(max(0.0, until - asyncio.get_running_loop().time()))
        raise silent()


async def test_the_first_choice_answers(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(answer)) as world:
        done = await world.ask()
        assert (done.status, world.transport.at("par1")) == (200, 0)
        assert json.loads(done.written)["model"] == "assistant"
        sent = json.loads(world.transport.sent[0].body)
        assert sent["model"] == "tiny"


@pytest.mark.parametrize(
    "made",
    [
        refused,
        lost,
        silent,
        *(lambda s=s: failure(s) for s in (408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529)),
        lambda: failure(404),
        lambda: failure(401),
        lambda: Reply(200, ((b"content-type", b"text/html"),), [b"<html>"]),
        lambda: Reply(200, JSON, [b"{broken"]),
        lambda: Reply(200, JSON, [b'{"choices":[]}']),
        lambda: Reply(302, ((b"location", b"https://elsewhere.example"),)),
        lambda: Reply(200, JSON, [lost()]),
        lambda: GarbledAnswer("garbled", Fate.UNKNOWN),
    ],
)
async def test_another_endpoint_inside_is_asked(
    tmp_path: Path, made: Callable[[], Reply | Exception]
) -> None:
    async with scripted(tmp_path, first(made)) as world:
        done = await world.ask()
        assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par1")
        assert done.sent["x-domicile-attempts"] == "2"
        assert world.transport.at("iad1") == 0


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_a_clients_own_mistake_ends_it_and_harms_nobody(tmp_path: Path, status: int) -> None:
    async with scripted(tmp_path, everybody(lambda: failure(status))) as world:
        for _ in range(20):
            done = await world.ask()
            assert (done.status, done.code) == (status, "upstream_refused")
        assert len(world.transport.sent) == 20
        assert world.router.live.health.marked(0) == ()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: failure(503), (503, "upstream_unavailable")),
        (lambda: failure(429, retry_after="7"), (503, "upstream_unavailable")),
        (lambda: failure(529), (503, "upstream_unavailable")),
        (refused, (503, "upstream_unavailable")),
        (lambda: failure(500), (502, "bad_answer")),
        (lambda: Reply(200, JSON, [b"{"]), (502, "bad_answer")),
        (silent, (504, "upstream_timeout")),
    ],
)
async def test_when_nobody_answers(
    tmp_path: Path, made: Callable[[], Reply | Exception], expected: tuple[int, str]
) -> None:
    async with scripted(tmp_path, everybody(made)) as world:
        done = await world.ask()
        assert (done.status, done.code) == expected
        assert world.transport.at("iad1") == 0
        reasons = json.loads(done.written)["error"]["reasons"]
        assert [r["endpoint"] for r in reasons] == ["fra1", "par1", "iad1"]
        if done.status == 503:
            assert int(done.sent["retry-after"]) >= 1


@pytest.mark.parametrize(("deadline", "code"), [("300ms", "deadline"), ("15s", "upstream_timeout")])
async def test_a_hung_endpoint_is_no_deadline(tmp_path: Path, deadline: str, code: str) -> None:
    limits = Limits.model_validate({"answer": "9s", "deadline": deadline})
    async with scripted(
        tmp_path, everybody(lambda: Hanging(200, JSON)), Plan(limits=limits)
    ) as world:
        asked = asyncio.ensure_future(world.ask())
        while code == "upstream_timeout" and not asked.done():
            for replica in ("fra1", "par1", "iad1"):  # as a canary does that found it hanging
                world.router.live.silence.end(replica)
            await asyncio.sleep(0.02)
        done = await asked
        assert (done.status, done.code) == (504, code)


@pytest.mark.parametrize(
    ("told", "second", "expected"),
    [
        ("1800", None, "1800"),  # both say so: the truth, not a minute
        ("90000", None, "3600"),
        ("1800", "7", "7"),
        ("1800", "", "60"),  # the other said nothing, so it may be back sooner
    ],
)
async def test_a_long_retry_after_is_told_and_its_lease_is_short(
    tmp_path: Path, told: str, second: str | None, expected: str
) -> None:
    def script(host: str, number: int) -> Reply:
        return failure(429, retry_after=told if host == "fra1" or second is None else second)

    async with scripted(tmp_path, script) as world:
        done = await world.ask()
        assert (done.code, done.sent["retry-after"]) == ("upstream_unavailable", expected)
        live = world.router.live
        for replica in ("fra1", "par1"):
            assert 0 < live.health.retry_in(replica, live.loop_time()) <= 60


async def test_retry_after_is_told(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(lambda: failure(429, retry_after="7"))) as world:
        assert (await world.ask()).sent["retry-after"] == "7"


async def test_errors_before_content_are_retried_in_streams_too(tmp_path: Path) -> None:
    opening = event(role="assistant", content="")
    error = b'data: {"error":{"message":"x","type":"rate_limit_error","code":429}}\n\n'
    for pieces in ([opening, error], [opening, lost()], [opening], [DONE], [b": hi\n\n", lost()]):

        def script(host: str, number: int, pieces: list[bytes | Exception] = pieces) -> Reply:  # type: ignore[assignment]
            if host == "fra1":
                return stream(*pieces)
            return stream(event(content="hello"), DONE)

        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        async with scripted(folder, script) as world:
            done = await world.ask(stream=True)
            assert done.sent["x-domicile-endpoint"] == "par1"
            assert done.written.endswith(DONE)
            assert b"error" not in done.written


async def test_after_content_nothing_is_spliced(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(lambda: stream(event(content="uno"), lost()))) as world:
        done = await world.ask(stream=True)
        assert len(world.transport.sent) == 1
        assert done.written.count(b"uno") == 1
        assert b'"code":"incomplete"' in done.written
        assert DONE not in done.written


async def test_both_fail_before_text_the_client_gets_a_real_error(tmp_path: Path) -> None:
    async with scripted(
        tmp_path, everybody(lambda: stream(event(role="assistant", content=""), lost()))
    ) as world:
        done = await world.ask(stream=True)
        assert done.status in (502, 503)
        assert done.sent["content-type"] == "application/json"


async def test_attempts_are_bounded_and_their_entries_come_first(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(lambda: failure(503))) as world:
        await world.ask()
    kinds = [entry.kind for entry in entries(tmp_path)]
    assert [k for k in kinds if k in ("decision", "attempt", "outcome")] == [
        "decision",
        "attempt",
        "outcome",
    ]


@pytest.mark.parametrize(
    "made",
    [
        lambda: failure(503, x_request_id="req_1f2e3d4c"),
        lambda: Reply(200, (*JSON, (b"x-request-id", b"req_1f2e3d4c")), [b"{broken"]),
        lambda: Reply(200, (*JSON, (b"x-request-id", b"req_1f2e3d4c")), [lost()]),
    ],
)
async def test_a_failed_attempt_keeps_the_endpoint_s_own_id(
    tmp_path: Path, made: Callable[[], Reply | Exception]
) -> None:
    """So that it is found in the provider's own record, and nobody else's call passes for it."""
    async with scripted(tmp_path, first(made)) as world:
        await world.ask()
    (outcome,) = [entry for entry in entries(tmp_path) if entry.kind == "outcome"]
    attempts = outcome.body["attempts"]
    assert isinstance(attempts, list)
    told = [one.get("call") for one in attempts if isinstance(one, dict)]
    assert told[0] == "req_1f2e3d4c"


def entries(folder: Path) -> list[Shown]:
    return list(LogReader(Folder(folder / "log").log("eu-1")).entries())


async def test_a_veto_removes_an_endpoint_at_once(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(answer)) as world:
        world.router.live.vetoes.current = Vetoes(endpoints={"fra1": "drifted"})
        done = await world.ask()
        assert (done.sent["x-domicile-endpoint"], world.transport.at("fra1")) == ("par1", 0)


async def test_when_everything_is_vetoed_nothing_is_sent(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(answer)) as world:
        world.router.live.vetoes.current = Vetoes(places={"self:fra1": "x", "self:par1": "x"})
        done = await world.ask()
        assert (done.status, done.code) == (503, "no_endpoint_available")
        assert world.transport.sent == []


async def test_a_veto_between_attempts_counts(tmp_path: Path) -> None:
    boards: list[Scripted] = []

    def script(host: str, number: int) -> Reply:
        boards[0].router.live.vetoes.current = Vetoes(endpoints={"par1": "quarantine"})
        return failure(503)

    async with scripted(tmp_path, script) as world:
        boards.append(world)
        done = await world.ask()
        assert (done.status, world.transport.at("par1")) == (503, 0)


async def test_stateful_requests_of_unknown_fate_are_not_run_twice(tmp_path: Path) -> None:
    async with scripted(tmp_path, first(lost)) as world:
        done = await world.ask(store=True)
        assert done.status != 200
        assert len(world.transport.sent) == 1


async def test_the_client_leaves_while_waiting(tmp_path: Path) -> None:
    waiting = asyncio.Event()

    class Stuck(Reply):
        async def chunk(self, until: float) -> bytes:
            waiting.set()
            await asyncio.sleep(30)
            return b""

    async with scripted(tmp_path, everybody(lambda: Stuck(200, JSON))) as world:
        exchange = world.exchange()
        running = asyncio.create_task(world.run(exchange))
        await waiting.wait()
        exchange.leave()
        await asyncio.wait_for(running, 2)
        assert len(world.transport.sent) == 1
        assert world.transport.replies[0].aborted
        assert world.router.live.inflight.keys == ()
        assert world.router.live.concurrency.total == 0
    kinds = [entry.kind for entry in entries(tmp_path)]
    assert kinds.count("outcome") == 1


async def test_the_log_is_down_nothing_is_sent(tmp_path: Path) -> None:
    async with scripted(tmp_path, everybody(answer)) as world:
        world.router.live.log._failure = "disk full"
        done = await world.ask()
        assert (done.status, done.code) == (503, "log_unavailable")
        assert world.transport.sent == []
        world.router.live.log._failure = ""


async def test_a_place_that_is_gone_leaves_attempts_for_the_next(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply | Exception:
        return refused() if host.startswith("fra1") else answer()

    async with scripted(tmp_path, script) as world:
        crowd(world, "fra1", 6)
        done = await world.ask()
        assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "par1")
        assert [one.origin.host for one in world.transport.sent][:2] != ["par1", "par1"]
        assert len(world.transport.sent) == 3


BROKEN = event(content="a") + b"data: {\n\n"
TOLD = b'{"error":{"message":"no","type":"server_error","code":500}}'


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        refused,
        silent,
        lambda: failure(500),
        lambda: failure(400),
        lambda: Reply(200, JSON, [b"no json"]),
        lambda: Reply(200, JSON, [TOLD]),
        lambda: stream(b"data: " + TOLD + b"\n\n"),
        lambda: stream(BROKEN, lost()),
    ],
)
async def test_a_request_that_failed_is_kept_by_nothing(
    tmp_path: Path, made: Callable[[], Reply | Exception], streams: bool
) -> None:
    """An error holds the frames that it came through: what they keep of it would keep all that the
    request had, its body too, until the collector of cycles came by."""
    kinds = (RequestError, AttemptFailed, Run, types.Plan)
    async with scripted(tmp_path, everybody(made)) as world, let_go(*kinds):
        for _ in range(2):
            await world.ask(stream=streams)
        world.transport.replies.clear()
