"""Endpoints judged for calls alike; that a memory equals a fresh look is in `test_remembered`."""

from __future__ import annotations

from pathlib import Path

from tests.router.house import Plan
from tests.router.scripted import Reply, answer, scripted


def good(host: str, number: int) -> Reply:
    return answer()


async def test_a_body_that_names_a_place_is_looked_at_every_time(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        for _ in range(2):
            assert (await world.ask()).code == "ok"
            done = await world.ask(kv_transfer_params={"remote_host": "10.0.0.1"})
            assert (done.status, done.code) == (400, "parameter_changes_place")


async def test_a_long_prompt_is_another_kind_of_call(tmp_path: Path) -> None:
    async with scripted(tmp_path, good, Plan(context=100)) as world:
        for _ in range(2):
            assert (await world.ask()).code == "ok"
            done = await world.ask(messages=[{"role": "user", "content": "word " * 1000}])
            assert done.code == "capability_not_available"


async def test_parameters_that_nobody_knows_fill_no_memory(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        await world.ask()
        field = world.router.filtering._field
        assert field is not None
        before = len(field._verdicts)
        for n in range(20):
            exchange = world.exchange("eu", (), **{f"parameter_{n}": n})
            assert (await world.run(exchange)).code == "ok"
        assert len(field._verdicts) == before == 1
