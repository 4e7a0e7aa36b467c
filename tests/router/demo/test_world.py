"""The demo's world starts on free ports and leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

from regions.catalog import DAY, Catalog, epoch
from router.demo.play import Client
from router.demo.world import demo_clock, running


def test_the_clock_starts_a_day_after_the_facts() -> None:
    assert 0 <= demo_clock()() - epoch(Catalog.load({}).date) - DAY < 5


async def test_it_answers_and_stops(tmp_path: Path) -> None:
    async with running(tmp_path, demo_clock()) as world:
        client = Client(world)
        heard = await client.ask("clinic", "eu-1")
        assert (heard.status, heard.place) == (200, "self:fra1")
        assert (await client.ask("bank-us", "us-1")).place == "self:iad1"
        assert (await client.ask("bank-us", "eu-1")).status == 421
        await client.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert [task for task in others if not task.done()] == []
