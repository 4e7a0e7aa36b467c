"""Scraping: the real page of a simulated engine, and what is not there is unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from regions.fleet import Reading
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from router.watch.scrape import Scraper, own_replicas
from tests.cases.built import built
from tests.router.crowd import crowd
from tests.router.house import Plan, house
from tests.router.scripted import Reply, ScriptedTransport, answer, refused, scripted


class Pages(ScriptedTransport):
    """Answers GETs with pages by host."""

    def __init__(self, pages: dict[str, bytes | Exception]) -> None:
        super().__init__(lambda host, number: answer())
        self.pages = pages

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        assert request.target == "/metrics"
        page = self.pages.get(request.origin.host)
        if isinstance(page, Exception):
            raise page
        return Reply(404) if page is None else Reply(200, (), [page])


async def test_a_real_page(tmp_path: Path) -> None:
    async with house(tmp_path, Plan(regions=("self:fra1",))) as running:
        live = running.router.live
        await Scraper(live, running.router.transport).look()
        found = live.readings.fresh("fra1", live.loop_time())
        assert found is not None
        assert (found.running, found.waiting, found.kv, found.progress) == (0, 0, 0, 0)


async def test_what_can_not_be_had_is_unknown_and_harms_nobody(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        pages = Pages({"fra1": b"vllm:num_requests_running 8\nvllm:num_requests_waiting 8\n",
                       "par1": refused()})  # fmt: skip
        await Scraper(live, pages).look()
        assert live.balance.condition("fra1").full
        assert not live.balance.condition("par1").full
        assert not live.balance.condition("iad1").full
        assert live.health.marked(live.loop_time()) == ()
        pages.pages["fra1"] = refused()
        await Scraper(live, pages).look()
        assert live.readings.fresh("fra1", live.loop_time()) is not None  # until it is stale


async def test_room_told_by_an_engine_is_handed_out(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        full = b"vllm:num_requests_running 8\nvllm:num_requests_waiting 8\n"
        pages = Pages({"fra1": full, "par1": full})
        scraper = Scraper(live, pages)
        await scraper.look()
        asking = asyncio.create_task(world.ask())
        await asyncio.sleep(0.05)
        assert not asking.done()
        pages.pages["par1"] = b"vllm:num_requests_running 8\nvllm:num_requests_waiting 0\n"
        await scraper.look()
        done = await asyncio.wait_for(asking, 0.2)
        assert done.sent["x-domicile-endpoint"] == "par1"


async def test_readings_of_replicas_that_are_gone_go(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        live.readings.report("old", Reading(live.loop_time(), 1))
        await Scraper(live, Pages({})).look()
        assert live.readings.fresh("old", live.loop_time()) is None


async def test_only_ones_own_are_asked(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        crowd(world, "fra", 2)
        keys = [replica.key for replica in own_replicas(world.router.live.snapshot)]
        assert sorted(keys) == ["fra/0", "fra/1", "iad", "par"]
