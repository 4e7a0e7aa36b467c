"""`domicile quarantine` against a running router."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from router.server import Serving
from tests.router.cli.conftest import Domicile, Ran
from tests.router.folders import sound
from tests.router.house import listening
from tests.router.reloading import BOSS, CLINIC, World, watched


@asynccontextmanager
async def served(root: Path) -> AsyncIterator[tuple[World, str]]:
    """A router behind sockets, and its admin URL."""
    async with watched(sound(root)) as world:
        public, private = listening(), listening()
        serving = Serving(world.router, public, private)
        await serving.start()
        yield world, f"http://127.0.0.1:{private.getsockname()[1]}"
        await serving.stop(0.5)


async def run(domicile: Domicile, *words: str | Path) -> Ran:
    return await asyncio.to_thread(domicile, "quarantine", *words)


async def test_with_this_machine_s_token(tmp_path: Path, domicile: Domicile) -> None:
    async with served(tmp_path) as (world, admin):
        config = tmp_path / "domicile.yaml"
        words = ("endpoint", "fra-large", "--reason", "flood", "--config", config, "--admin", admin)
        ran = await run(domicile, *words)
        assert (ran.code, ran.out) == (0, "endpoint `fra-large` is quarantined\n")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"
        [one] = world.watches.quarantine.imposed
        assert (one.reason, one.by) == ("flood", "local")
        again = await run(domicile, *words, "--lift", "--json")
        assert again.json == {"quarantined": []}


async def test_with_an_operator_s_key(tmp_path: Path, domicile: Domicile) -> None:
    async with served(tmp_path) as (world, admin):
        key = tmp_path / "key"
        key.write_text(BOSS + "\n")
        words = ("endpoint", "fra-large", "--reason", "x", "--admin", admin, "--key-file", key)
        assert (await run(domicile, *words)).code == 0
        assert world.watches.quarantine.imposed[0].by == "boss"
        key.write_text(CLINIC)
        refused = await run(domicile, *words)
        assert refused.code == 1
        assert "has not the role `operator`" in refused.err


async def test_refusals_are_told(tmp_path: Path, domicile: Domicile) -> None:
    async with served(tmp_path) as (_, admin):
        config = tmp_path / "domicile.yaml"
        where = ("--config", config, "--admin", admin)
        ran = await run(domicile, "endpoint", "nobody", "--reason", "x", *where)
        assert (ran.code, "there is no endpoint `nobody`" in ran.err) == (1, True)
        ran = await run(domicile, "endpoint", "fra-large", *where)
        assert ran.code == 2
    gone = await run(domicile, "place", "EU", "--reason", "x", *where)
    assert (gone.code, "does not answer" in gone.err) == (1, True)


async def test_without_a_router_there_is_no_token(tmp_path: Path, domicile: Domicile) -> None:
    box = sound(tmp_path)
    ran = await run(domicile, "place", "EU", "--reason", "x", "--config", box.config)
    assert (ran.code, "can't read" in ran.err) == (1, True)
