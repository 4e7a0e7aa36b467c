"""Error and disconnect reports of `reports.yaml`, through the whole router."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from regions.health import HealthSettings, Standing
from router.providers.waits import RETRY_CEILING
from router.simulator import bedrock_frames as frames
from router.simulator.faults import Fault, Kind
from tests.cases.built import BASELINE, BEDROCK, Files, built, outcomes, until
from tests.router.house import House, house
from tests.router.scripted import DONE, Reply, answer, event, failure, stream
from tests.router.wire import Wire, request

TRANSIENT = (408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530)
EVENTS = ((b"content-type", b"application/vnd.amazon.eventstream"),)


@pytest.mark.parametrize("status", [529, 503, 429])
@pytest.mark.parametrize("streaming", [False, True])
async def test_errors_01_overload_goes_to_the_next(
    tmp_path: Path, status: int, streaming: bool
) -> None:
    def script(host: str, number: int) -> Reply:
        if host == "fra1" and number < 2:
            return failure(status)
        return stream(event(content="x"), DONE) if streaming else answer()

    async with built(tmp_path, script) as world:
        for _ in range(3):
            assert (await world.ask("eu", stream=streaming)).status == 200
        assert world.transport.at("iad1") == 0
    first = outcomes(tmp_path)[0]["attempts"]
    assert [(one["endpoint"], one.get("status")) for one in first] == [  # type: ignore[attr-defined]
        ("fra", status),
        ("par", None),
    ]


async def test_errors_01_when_everybody_is_overloaded_it_is_503_with_a_time(
    tmp_path: Path,
) -> None:
    async with built(tmp_path, lambda host, number: failure(529)) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (503, "upstream_unavailable")
        assert int(done.sent["retry-after"]) >= 1
        assert done.sent["x-should-retry"] == "true"


@pytest.mark.parametrize("status", TRANSIENT)
@pytest.mark.parametrize("model", ["assistant", "openai", "sonnet"])
async def test_errors_04_transient_for_every_provider(
    tmp_path: Path, status: int, model: str
) -> None:
    """The first host fails so; wherever the request may go next, it goes."""
    baseline = BASELINE.replace(
        "project_residency: eu,", 'project_residency: eu, retry_unknown: "true",'
    )

    def script(host: str, number: int) -> Reply:
        return failure(status) if host in ("fra1", "eu.api.openai.com") else answer()

    if model == "sonnet":
        async with built(tmp_path, lambda host, number: failure(status)) as world:
            done = await world.ask("eu", model=model)
            assert 500 <= done.status < 600  # never the client's fault
        return
    files = Files(baseline=baseline) if "retry_unknown" in _settings() else None
    async with built(tmp_path, script, files) as world:
        done = await world.ask("world", model=model)
        assert done.status == 200 or (model == "openai" and done.status in (502, 503, 504))


def _settings() -> frozenset[str]:
    from policies.endpoints import COMMON

    return frozenset(COMMON)


HOSTILE = ["-1", "-99999999", "NaN", "nan", "inf", "1e308", "99999999999999999999", "soon", "",
           "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "0x10", "٣", "1,5",
           "Fri, 99 Foo 2020 99:99:99 GMT", "3600"]  # fmt: skip


@pytest.mark.parametrize("told", HOSTILE)
@pytest.mark.parametrize("name", ["retry-after", "retry-after-ms"])
async def test_errors_05_a_hostile_time_is_bounded(tmp_path: Path, told: str, name: str) -> None:
    def script(host: str, number: int) -> Reply:
        return Reply(429, ((name.encode(), told.encode()),), [b"{}"])

    async with built(tmp_path, script) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (503, "upstream_unavailable")
        assert 1 <= int(done.sent["retry-after"]) <= RETRY_CEILING
        live = world.router.live
        for replica in ("fra", "par"):
            at = live.loop_time() + RETRY_CEILING + 1
            assert live.health.standing(replica, at) is not Standing.MARKED
            longest = HealthSettings().load_max  # however long the client is told to wait
            assert live.health.retry_in(replica, live.loop_time()) <= longest == 60


# --- errors-06 --------------------------------------------------------------------------------

BEGIN = frames.event("messageStart", {"role": "assistant"})
BLOCK = frames.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "hello"}})
EXCEPTIONS = {
    "throttlingException": "ThrottlingException",
    "modelStreamErrorException": "ModelStreamErrorException",
    "internalServerException": "InternalServerException",
    "serviceUnavailableException": "ServiceUnavailableException",
}
PAIR = BASELINE.replace(
    "  sonnet-global:",
    "  sonnet-two: {kind: bedrock, source: eu-west-3, model: eu.anthropic.claude-sonnet-4-6,\n"
    '               credentials: "file:aws.json", retention_mode: none}\n  sonnet-global:',
).replace("[sonnet-eu, sonnet-global]", "[sonnet-eu, sonnet-two, sonnet-global]")


@pytest.mark.parametrize("name", EXCEPTIONS)
async def test_errors_06_an_exception_before_content(tmp_path: Path, name: str) -> None:
    wrong = frames.exception(name, {"message": "x"})
    whole = [BEGIN, BLOCK, frames.event("messageStop", {"stopReason": "end_turn"})]

    def script(host: str, number: int) -> Reply:
        return Reply(200, EVENTS, [BEGIN, wrong] if host == BEDROCK else whole)

    async with built(tmp_path, script, Files(baseline=PAIR)) as world:
        done = await world.ask("eu", model="sonnet", stream=True)
        hosts = [one.origin.host for one in world.transport.sent]
        assert set(hosts) <= {BEDROCK, BEDROCK.replace("central-1", "west-3")}
        if name in ("throttlingException", "serviceUnavailableException"):
            assert done.sent["x-domicile-endpoint"] == "sonnet-two"
            assert b"hello" in done.written
        else:
            # Its fate is unknown at a managed endpoint: it is told, never run twice unasked.
            assert 500 <= done.status < 600 or done.sent["x-domicile-endpoint"] == "sonnet-two"
    (outcome,) = outcomes(tmp_path)
    assert outcome["attempts"][0]["provider_code"] == EXCEPTIONS[name]  # type: ignore[index]


@pytest.mark.parametrize("name", EXCEPTIONS)
async def test_errors_06_an_exception_after_content(tmp_path: Path, name: str) -> None:
    wrong = frames.exception(name, {"message": "x"})
    pieces = [BEGIN, BLOCK, wrong]
    async with built(
        tmp_path, lambda host, number: Reply(200, EVENTS, list(pieces)), Files(baseline=PAIR)
    ) as world:
        done = await world.ask("eu", model="sonnet", stream=True)
        assert len(world.transport.sent) == 1
        assert done.status == 200
        assert b"hello" in done.written
        assert b'"code":"incomplete"' in done.written
        assert DONE not in done.written
    (outcome,) = outcomes(tmp_path)
    assert outcome["status"] == "incomplete"
    assert EXCEPTIONS[name] in json.dumps(outcome)


# --- disconnects ------------------------------------------------------------------------------


async def settled(found: House, within: float) -> None:
    """Wait until nothing is open; fail when it takes longer."""
    live = found.router.live
    await until(lambda: not (live.concurrency.total or live.inflight.keys), within)


SILENT: dict[str, Callable[[], Fault]] = {
    "no head": lambda: Fault(Kind.HANG),
    "no first frame": lambda: Fault(Kind.SLOW_START, seconds=60),
    "slow head": lambda: Fault(Kind.SLOW_HEAD, seconds=60),
    "after a frame": lambda: Fault(Kind.STALL_AFTER, after=3),
}


@pytest.mark.parametrize("name", SILENT)
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("reset", [True, False])
async def test_disconnect_02_the_endpoint_is_cut_off_at_once(
    tmp_path: Path, name: str, streaming: bool, reset: bool
) -> None:
    async with house(tmp_path) as found:
        for replica in found.fleet:
            replica.fail(SILENT[name]())
        body = {"model": "assistant", "messages": [{"role": "user", "content": "x"}],
                "stream": streaming}  # fmt: skip
        wire = await Wire.to(found)
        await wire.send(request(json.dumps(body).encode()))
        await until(lambda: found.hits("self:fra1"))
        if reset:
            wire.writer.transport.abort()
        else:
            await wire.close()
        await settled(found, 2)
        await asyncio.sleep(0.3)
        assert found.hits("self:fra1") == 1
        assert found.hits("self:par1") == 0
        assert found.hits("self:iad1") == 0


async def test_disconnect_04_through_every_layer(tmp_path: Path) -> None:
    """The real server, its parser, metrics and limits are all in front, as when serving."""
    async with house(tmp_path) as found:
        for replica in found.fleet:
            replica.fail(Fault(Kind.HANG))
        wires = [await Wire.to(found) for _ in range(20)]
        for wire in wires:
            await wire.send(request())
        await until(lambda: found.hits("self:fra1") + found.hits("self:par1") == 20)
        for wire in wires:
            await wire.close()
        await settled(found, 2)
        # Each was asked once, of whom it was with; nobody else was asked afterwards.
        assert found.hits("self:fra1") + found.hits("self:par1") == 20
        assert found.hits("self:iad1") == 0
        metrics = found.router.live.metrics
        assert metrics.value("domicile_requests_total", ("chat.completions", "gone")) == 20


def test_disconnect_04_nothing_stands_between_the_server_and_the_route() -> None:
    """No framework is imported by the inference path: there is no layer to hide a disconnect."""
    import ast

    import router.app
    import router.inbound.exchange
    import router.steps

    for module in (router.app, router.inbound.exchange, router.steps):
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text())
        names = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        assert not [one for one in names if one.startswith(("fastapi", "starlette"))]
