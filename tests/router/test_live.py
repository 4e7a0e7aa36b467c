"""What runs and how it is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

from regions.health import Sign
from router.exposition import rendered
from router.live import Whole
from router.metrics import ALL
from tests.router.scripted import answer, refused, scripted


async def test_time_never_goes_back_behind_the_log(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        await world.ask()
        newest = live.log.newest_time()
        assert newest > 0
        live.wall_time = lambda: newest - 1000.0
        assert live.stamp() == newest
        assert live.now() >= newest
        live.wall_time = lambda: newest + 5.0
        assert live.stamp() == newest + 5.0


async def test_what_is_degraded_is_said_in_words(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: refused()) as world:
        live = world.router.live
        live.notes["heartbeat"] = "OSError"
        for _ in range(5):
            live.health.observe("fra1", Sign.DEAD, live.loop_time())
        live.log._failure = "disk full"
        told, ended = live.degraded(), live.ended()
        live.whole = Whole(True, 2)
        assert live.ended() == "", "its supervisor starts the next process"
        live.whole, live.log._failure = None, ""
        assert live.ended() == ""
        assert "heartbeat: OSError" in told
        assert f"log: {ended}" in told
        assert ended.startswith("disk full; mend that and restart")
        assert "marked: fra1" in told


async def test_who_asks_without_a_key_is_told_in_a_word(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        live.notes = {"discover:fra": "`llm.fra1` can't be resolved", "discover:par": "the same"}
        live.health.observe("fra1", Sign.DEAD, live.loop_time(), None, "tls_failed")
        live.log._failure = "disk full"
        assert any("fra1 (tls_failed)" in one for one in live.degraded())
        assert live.outwardly() == ["discover", f"log: {live.ended()}", "marked"]
        live.log._failure = ""


async def test_gauges_are_brought_up_to_date_before_they_are_shown(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live = world.router.live
        held = live.inflight.enter("fra1", 500)
        live.refresh_gauges()
        shown = rendered(live.metrics.read(), ALL).decode()
        assert 'domicile_inflight_tokens{endpoint="fra1"} 500.0' in shown
        assert 'domicile_inflight_tokens{endpoint="par1"} 0.0' in shown
        assert "domicile_open_requests 0.0" in shown
        assert live.metrics.value("domicile_tasks") == len(asyncio.all_tasks()) >= 1
        held.close()
