"""Listening, signals, draining: a real process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from router import app, server
from router.audit.verify import verify
from router.config import ConfigError
from router.server import bind
from router.simulator.faults import Fault, Kind
from tests.cases.built import BASELINE, MAIN, Files, until
from tests.router.house import KEYS, house
from tests.router.wire import Wire, request

SERVE = """
import asyncio, os, pathlib, sys
from router.server import serve
asyncio.run(serve(pathlib.Path(sys.argv[1]), os.environ))
"""
HELD = """
import importlib.abc, pathlib, sys, time
class Held(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        while name == "fastapi" and not pathlib.Path(sys.argv[2]).exists():
            time.sleep(0.01)
sys.meta_path.insert(0, Held())
"""
MANAGED = ("  openai:", "  sonnet:", "  claude:")
OWN = BASELINE[: BASELINE.index("  openai-eu:")] + BASELINE[BASELINE.index("attributes:") :]
OWN = "".join(line for line in OWN.splitlines(True) if not line.startswith(MANAGED))


def test_an_address_in_use_says_what_to_change() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match=r"can't listen on .*router\.listen"):
            bind(("127.0.0.1", taken.getsockname()[1]), "listen")


def test_the_sixth_version_of_the_protocol() -> None:
    try:
        found = bind(("::1", 0), "admin")
    except ConfigError:
        pytest.skip("this machine has no IPv6 loopback")
    with found:
        assert found.family is socket.AF_INET6


async def test_a_stop_lets_open_requests_end_and_refuses_new_ones(tmp_path: Path) -> None:
    async with house(tmp_path) as found:
        found.fleet["fra1"].fail(Fault(Kind.SLOW_HEAD, seconds=0.7))
        wire, late = await Wire.to(found), await Wire.to(found)
        await wire.send(request())
        await until(lambda: found.router.live.concurrency.total)
        closing = asyncio.create_task(found.router.close(5))
        await asyncio.sleep(0.1)
        await late.send(request())
        refused = await asyncio.wait_for(late.answer(), 5)
        assert (refused.status, refused.code) == (503, "shutting_down")
        assert (await asyncio.wait_for(wire.answer(), 5)).status == 200
        await closing
        await wire.close()
        await late.close()
    assert verify(tmp_path / "log").ok


async def test_the_admin_listener_is_another_one(tmp_path: Path) -> None:
    async with house(tmp_path) as found, httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(found.admin + "/metrics")).status_code == 200
        assert (await client.get(found.url + "/metrics")).status_code == 404
        key = {"authorization": f"Bearer {KEYS['eu']}"}
        path = "/v1/chat/completions"
        assert (await client.post(found.admin + path, headers=key)).status_code == 404


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_process_serves_until_it_is_told_to_stop(
    tmp_path: Path, free_port: Callable[[], int], how: signal.Signals
) -> None:
    port, admin = free_port(), free_port()
    main = MAIN.replace(
        "  region: self:fra1\n",
        f"  region: self:fra1\n  listen: 127.0.0.1:{port}\n  admin: 127.0.0.1:{admin}\n",
    )
    path = Files(main=main, baseline=OWN).write(tmp_path)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, str(path), env=dict(os.environ), stderr=asyncio.subprocess.PIPE
    )
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            ready = None
            for _ in range(300):
                try:
                    ready = await client.get(f"http://127.0.0.1:{port}/readyz")
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.1)
            assert ready is not None
            assert ready.json()["ready"] is True
        process.send_signal(how)
        _, errors = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
    assert (process.returncode, errors.decode()) == (0, "")
    assert verify(tmp_path / "log").ok


async def test_errors_of_the_public_listener_are_json_everywhere(tmp_path: Path) -> None:
    async with house(tmp_path) as found, httpx.AsyncClient(trust_env=False) as client:
        for path in ("/", "/v1", "/favicon.ico", "/openapi.yaml"):
            told = json.loads((await client.get(found.url + path)).content)
            assert told["error"]["code"] == "not_found"


@asynccontextmanager
async def held(folder: Path, port: int, admin: int) -> AsyncIterator[tuple[Process, Path]]:
    """A process that answers requests for inference, and can't build the rest until a file is
    there."""
    main = MAIN.replace(
        "  region: self:fra1\n",
        f"  region: self:fra1\n  listen: 127.0.0.1:{port}\n  admin: 127.0.0.1:{admin}\n",
    )
    path, there = Files(main=main, baseline=OWN).write(folder), folder / "there"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HELD + SERVE, str(path), str(there), env=dict(os.environ)
    )
    try:
        for _ in range(300):
            if await asked(port):
                break
            await asyncio.sleep(0.1)
        assert await asked(port) == "missing_api_key"
        yield process, there
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def asked(port: int) -> str:
    """The code that a request without a key is refused with; empty where nobody listens."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        try:
            refused = await client.post(f"http://127.0.0.1:{port}/v1/chat/completions", json={})
        except httpx.TransportError:
            return ""
    return str(refused.json()["error"]["code"])


async def test_inference_does_not_wait_for_what_only_other_routes_need(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    port, admin = free_port(), free_port()
    public, shown = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{admin}"
    async with (
        held(tmp_path, port, admin) as (process, there),
        httpx.AsyncClient(trust_env=False, timeout=30) as client,
    ):
        others = [
            asyncio.create_task(client.get(url))
            for url in (shown + "/healthz", shown + "/metrics", public + "/readyz")
        ]
        again = await client.post(public + "/v1/chat/completions", json={})
        assert again.status_code == 401
        assert not any(one.done() for one in others)
        there.touch()
        answers = await asyncio.wait_for(asyncio.gather(*others), 30)
        assert [one.status_code for one in answers] == [200, 200, 200]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0


async def test_a_stop_does_not_wait_for_what_is_still_being_built(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    port = free_port()
    async with held(tmp_path, port, free_port()) as (process, there):
        process.send_signal(signal.SIGTERM)
        for _ in range(100):
            if await asked(port) != "missing_api_key":
                break
            await asyncio.sleep(0.1)
        assert await asked(port) in ("", "shutting_down")
        there.touch()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    assert verify(tmp_path / "log").ok


async def test_two_threads_never_build_with_fastapi_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hides its own warnings while it builds, for the whole process: one that ended first
    showed the other's."""
    inside, together = list[int](), list[int]()

    def built(*_: object) -> None:
        inside.append(1)
        together.append(len(inside))
        time.sleep(0.1)
        inside.pop()

    async with house(tmp_path) as found:
        monkeypatch.setattr("router.admin.build", built)
        monkeypatch.setattr("router.public.build", built)
        router = found.router
        await asyncio.gather(
            asyncio.to_thread(server._admin, router), asyncio.to_thread(app._others, router.live)
        )
    assert together == [1, 1]
