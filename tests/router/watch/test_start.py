"""What is started, and what a router waits for before it says that it is ready."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from router.providers.base import AwsKeys
from router.watch import roles
from router.watch.renewal import Fetched, NoRole
from tests.cases.built import BASELINE as OWN
from tests.cases.built import Files, built
from tests.router.folders import AT, ROUTER, Box, write
from tests.router.reloading import watched
from tests.router.scripted import Reply, ScriptedTransport, answer, failure

BASELINE = """\
version: 1
regions:
  self:fra1: {country: DE}
tenants:
  clinic: {grant: {process: EU, retain: EU}}
models:
  assistant: {tiers: {large: [sonnet-eu]}}
endpoints:
  sonnet-eu: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6,
              credentials: instance-role, retention_mode: none}
"""


def box(root: Path) -> Box:
    config = ROUTER.replace("self:iad1", "aws:us-east-1")
    return write(root, BASELINE, "version: 1\nrules: []\n", config)


def silent(host: str, number: int) -> Reply:
    return failure(503)


async def until_started(starting: set[str]) -> None:
    for _ in range(500):
        if not starting:
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never started")


async def test_the_role_s_keys_are_there_before_the_router_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = Fetched(AwsKeys("ASIAROLE", "secret", "session"), AT + 3600)
    monkeypatch.setattr(roles, "fetch", lambda environment: given)
    async with watched(box(tmp_path), silent, looked=False) as world:
        assert world.router.live.starting == {"role"}
        await until_started(world.router.live.starting)
        assert world.router.live.roles.keys(AT) is given.keys
        await world.ask()
        asked = [r for r in world.transport.sent if "converse" in r.target]
        assert b"Credential=ASIAROLE/" in dict(asked[0].headers)[b"authorization"]
        assert dict(asked[0].headers)[b"x-amz-security-token"] == b"session"


async def test_without_a_role_nothing_is_sent_and_it_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(environment: object) -> Fetched:
        raise NoRole("nobody there")

    monkeypatch.setattr(roles, "fetch", fetch)
    async with watched(box(tmp_path), silent) as world:
        await until_started(world.router.live.starting)
        assert "watch:role: NoRole" in world.router.live.degraded()
        done = await world.ask()
        assert done.status == 502
        assert b'"result":"misconfigured"' in done.written
        assert world.transport.sent == []


async def test_without_files_nothing_is_reloaded(tmp_path: Path) -> None:
    from tests.router.scripted import scripted

    async with scripted(tmp_path, silent) as world:
        assert world.router.watches is not None
        assert world.router.watches.reloader is None
        world.router.watches.look_at_files()
        assert isinstance(world.transport, ScriptedTransport)


@pytest.mark.parametrize("lines", ["http://10.1.0.1:80\n", None])
async def test_a_fleet_that_a_reload_brings_is_there_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str | None
) -> None:
    """Looked up only afterwards, it would answer nobody meanwhile."""
    monkeypatch.chdir(tmp_path)  # what is looked up is relative to where this router is
    found = [] if lines is None else ["fra/10.1.0.1:80"]
    async with built(tmp_path, lambda host, number: answer()) as world:
        assert world.router.watches is not None
        if lines is not None:
            Path("fra.txt").write_text(lines)
        text = OWN.replace('url: "http://fra1"', "replicas: {file: fra.txt}")
        await world.router.watches.swap.reload(Files(baseline=text).load(tmp_path))
        live = world.router.live
        assert list(live.snapshot.targets["fra"]) == found
        told = [one for one in live.degraded() if one.startswith("discover:fra")]
        assert told == ([] if found else ["discover:fra: `fra.txt` can't be read"])
        live.refresh_gauges()
        assert live.metrics.value("domicile_replicas", ("fra",)) == len(found)
        assert (await world.ask("de")).status == (200 if found else 503)
