"""Canaries at an engine that may be computing a long prompt."""

from __future__ import annotations

import asyncio
from pathlib import Path

from router.attempts.silence import Patience
from router.watch.probe import LEASE, Prober
from tests.router.scripted import Scripted, answer, scripted, silent
from tests.router.watch.test_probe import Probed, ended, prober, quiet, well


async def sent_a_long_prompt(world: Scripted, one: Prober) -> bool:
    """Let a canary meet a prompt of 100,000 tokens that just began; whether that was ended."""
    silence = world.router.live.silence
    with Patience(silence, "fra1", False, one.live.loop_time(), 100_000):
        one._asked.clear()
        await one.listen()
        await ended(one)
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0


async def test_a_long_prompt_clears_nobody_who_was_found_silent(tmp_path: Path) -> None:
    """Else each one that comes to a frozen engine would bring it back, for all others, too."""
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, silent)
        one = prober(world, transport)
        await quiet(one, transport)
        await asyncio.sleep(0.5)
        before = transport.asked("/v1/chat/completions")
        assert not await sent_a_long_prompt(world, one)
        assert transport.asked("/v1/chat/completions") > before
        assert "fra1" in live.health.marked(live.loop_time() + LEASE - 0.3)
        assert live.notes["probe:fra1"] == "canary says down"


async def test_a_long_prompt_explains_the_silence_of_who_was_well(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        live, transport = world.router.live, Probed(well, silent)
        one = prober(world, transport)
        one._born = live.loop_time() - 100
        assert not await sent_a_long_prompt(world, one)
        assert "fra1" not in live.health.marked(live.loop_time())
        assert "par1" in live.health.marked(live.loop_time())
