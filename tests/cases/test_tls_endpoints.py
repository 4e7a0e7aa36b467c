"""TLS from a running router to endpoints: own authorities, their change, one wrong certificate."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from regions.health import Standing
from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver
from router.transport.messages import Tls
from router.watch.discover import Discoverer
from tests.cases.built import Files, built, outcomes, until
from tests.certificates import Paper
from tests.rawserver import Line, RawServer
from tests.router.folders import TWO_CONTINENTS, Box, sound
from tests.router.reloading import World, watched
from tests.router.scripted import Scripted, answer
from tests.router.test_server import OWN as OWN_FLEETS

[GOOD] = answer()._chunks
assert isinstance(GOOD, bytes)
BODY: bytes = GOOD
OWN = Paper.authority("own")
NEXT = Paper.authority("next")
NAME = "fra.internal"
FRA = 'url: "http://fra1", model: tiny'
# No name that would be looked up.
LOCAL = OWN_FLEETS.replace("http://par1", "http://127.0.0.1:1")
LOCAL = LOCAL.replace("http://iad1", "http://127.0.0.1:2")
LARGE = 'url: "http://127.0.0.1:2"'


async def serve(line: Line) -> None:
    """A model server."""
    while asked := await line.request():
        await line.json(BODY if asked.startswith(b"POST") else b"{}")


async def test_replicas_found_by_name_are_spoken_to_over_tls(tmp_path: Path) -> None:
    """Their certificates prove the fleet's name, which is not what they are found as."""
    (tmp_path / "ca.pem").write_text(OWN.pem)
    transport = HttpTransport()
    async with RawServer(serve, OWN.signed("x", (NAME,)).server(tmp_path)) as server:
        found = f'replicas: {{dns: "127.0.0.1:{server.port}", tls: {NAME}}}, ca: "file:ca.pem"'
        files = Files(baseline=LOCAL.replace(FRA, f"{found}, model: tiny"))
        async with built(tmp_path, lambda host, n: answer(), files, transport) as world:
            assert world.router.watches is not None
            live, swap = world.router.live, world.router.watches.swap
            await Discoverer(live, swap, transport, {}, tmp_path).look()
            [target] = live.snapshot.targets["fra"].values()
            assert target.url == f"https://127.0.0.1:{server.port}"
            assert (await world.ask("de")).status == 200
            # Another authority counts for what was found before, too.
            base = replace(swap.base, trust={"fra": Tls(NEXT.pem, NAME)})
            await swap.reload(base)
            [target] = live.snapshot.targets["fra"].values()
            assert target.tls == Tls(NEXT.pem, NAME)
            assert (await world.ask("de")).status == 503
    await transport.close()


@asynccontextmanager
async def fleet(
    folder: Path, *papers: Paper, more: str = ""
) -> AsyncIterator[tuple[Scripted, list[str]]]:
    """A router whose `fra` is found in a file, by address, and shows these; its replicas' keys."""
    (folder / "ca.pem").write_text(OWN.pem)
    async with AsyncExitStack() as stack:
        servers = [
            await stack.enter_async_context(RawServer(serve, paper.server(folder)))
            for paper in papers
        ]
        urls = [f"https://127.0.0.1:{one.port}" for one in servers]
        (folder / "fleet.txt").write_text("\n".join(urls))
        where = f'replicas: {{file: fleet.txt, tls: {NAME}}}, ca: "file:ca.pem", model: tiny{more}'
        files = Files(baseline=LOCAL.replace(FRA, where))
        transport = HttpTransport()
        stack.push_async_callback(transport.close)
        made = built(folder, lambda host, number: answer(), files, transport)
        world = await stack.enter_async_context(made)
        keys = [f"fra/127.0.0.1:{one.port}" for one in servers]
        assert world.router.watches is not None
        swap = world.router.watches.swap
        await Discoverer(world.router.live, swap, transport, {}, folder).look()
        assert set(world.router.live.snapshot.targets["fra"]) == set(keys)
        yield world, keys


@pytest.mark.parametrize(
    ("wrong", "detail"),
    [
        (OWN.signed("x", ("other.internal",)), "wrong_name"),
        (OWN.signed("x", (NAME,), (-9, -1)), "expired"),
        (OWN.signed("x", (NAME,), (1, 9)), "not_yet_valid"),
        (NEXT.signed("x", (NAME,)), "unknown_authority"),
    ],
)
async def test_of_a_fleet_the_one_with_a_wrong_certificate_is_left_out_and_told(
    tmp_path: Path, wrong: Paper, detail: str
) -> None:
    good = [OWN.signed("x", (NAME,)) for _ in range(2)]
    async with fleet(tmp_path, *good, wrong) as (world, keys):
        live, told = world.router.live, f"tls_failed:{detail}"
        for _ in range(30):
            done = await world.ask("de")
            assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "fra")
        note = f"probe:{keys[2]}"
        await until(lambda: live.notes.get(note) == f"health says {told}")
        assert live.health.standing(keys[2], live.loop_time()) is Standing.MARKED
        assert [live.health.standing(key, live.loop_time()) for key in keys[:2]] == [0, 0]
        assert f"{note}: health says {told}" in live.degraded()
        assert live.metrics.value("domicile_probes_total", ("fra", "health", told)) > 1
    results = [
        (one["result"], one.get("provider_code", ""))
        for ended in outcomes(tmp_path)
        if isinstance(attempts := ended["attempts"], list)
        for one in attempts
    ]
    assert set(results) <= {("ok", ""), ("tls_failed", detail)}
    assert results.count(("ok", "")) == 30


async def test_what_is_told_of_a_failure_of_tls(tmp_path: Path) -> None:
    """The log, the status and metrics say why; a client hears that it was TLS, and no name."""
    async with fleet(tmp_path, OWN.signed("x", ("secret.internal",)), more=', probe: "off"') as (
        world,
        [key],
    ):
        done = await world.ask("de")
        live = world.router.live
        assert f"marked: {key} (tls_failed:wrong_name)" in live.degraded()
        count = live.metrics.value("domicile_attempts_total", ("fra", "tls_failed:wrong_name"))
        assert count == 1
    error = json.loads(done.written)["error"]
    assert (done.status, error["code"]) == (503, "upstream_unavailable")
    reasons = error["reasons"]
    assert {"endpoint": "fra", "result": "tls_failed", "status": None} in reasons
    for word in ("internal", "127.0.0.1", "certificate", "wrong"):
        assert word not in json.dumps(reasons)
    [ended] = outcomes(tmp_path)
    attempts = ended["attempts"]
    assert isinstance(attempts, list)
    [attempt] = attempts
    assert (attempt["result"], attempt["provider_code"]) == ("tls_failed", "wrong_name")


def trusting(folder: Path, port: int, ca: str) -> Box:
    """A folder whose `fra-large` speaks TLS and trusts this."""
    box = sound(folder)
    (folder / "ca.pem").write_text(ca)
    assert LARGE in TWO_CONTINENTS
    baseline = folder / "baseline" / "main.yaml"
    text = baseline.read_text().replace(
        LARGE, f'url: "https://127.0.0.1:{port}", ca: "file:ca.pem", probe: "off"'
    )
    baseline.write_text(text)
    return box


async def asked(world: World) -> tuple[int, str]:
    """One request, and the last attempt's result at `fra-large`."""
    done = await world.ask()
    world.router.live.health.forget(frozenset())
    return done.status, done.sent.get("x-domicile-endpoint", "")


async def test_authorities_are_renewed_under_a_running_router(tmp_path: Path) -> None:
    """Each step as an operator does it; no request fails on the way, and once the old authority is
    out, what it signed is not spoken to, over connections that are open neither."""
    address = ("127.0.0.1",)
    first, second = OWN.signed("x", address), NEXT.signed("x", address)
    tls = first.server(tmp_path)
    transport = HttpTransport(SystemResolver(), keep_alive=60)
    async with RawServer(serve, tls) as server:
        box = trusting(tmp_path, server.port, OWN.pem)
        async with watched(box, real=transport) as world:
            good = (200, "fra-large")
            assert [await asked(world) for _ in range(2)] == [good, good]
            opened = len(server.lines)

            (tmp_path / "ca.pem").write_text(OWN.pem + NEXT.pem)
            assert await asked(world) == good
            assert len(server.lines) == opened  # nothing is made anew before it is taken up
            await world.settle()
            assert await asked(world) == good
            assert len(server.lines) == opened + 1

            (tmp_path / "second.pem").write_text(second.secret + second.pem)
            tls.load_cert_chain(tmp_path / "second.pem")
            assert await asked(world) == good  # over what is open

            (tmp_path / "ca.pem").write_text(NEXT.pem)
            await world.settle()
            assert await asked(world) == good
            assert len(server.lines) == opened + 2

            (tmp_path / "ca.pem").write_text(OWN.pem)  # which no longer signs it
            await world.settle()
            status, _ = await asked(world)
            assert status == 503
            assert transport.counts.idle == 0
    await transport.close()


@pytest.mark.parametrize("shown", [True, False])
async def test_an_endpoint_that_asks_for_a_certificate_gets_ours(
    tmp_path: Path, shown: bool
) -> None:
    ours = OWN.signed("router")
    (tmp_path / "own.pem").write_text(ours.pem)
    (tmp_path / "own.key").write_text(ours.secret)
    tls = OWN.signed("x", ("127.0.0.1",)).server(tmp_path, asks=OWN.pem)
    transport = HttpTransport()
    async with RawServer(serve, tls) as server:
        box = trusting(tmp_path, server.port, OWN.pem)
        baseline = tmp_path / "baseline" / "main.yaml"
        more = ', client_cert: "file:own.pem", client_key: "file:own.key"' if shown else ""
        baseline.write_text(
            baseline.read_text().replace('ca: "file:ca.pem"', f'ca: "file:ca.pem"{more}')
        )
        async with watched(box, real=transport) as world:
            status, endpoint = await asked(world)
    [ended] = world.entries("outcome")
    assert (status, endpoint) == ((200, "fra-large") if shown else (502, ""))
    if not shown:
        assert '"connection_lost"' in json.dumps(ended.body)
    await transport.close()
