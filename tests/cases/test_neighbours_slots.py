"""Neighbours of the reports on probes: servers that compute one request after the other and tell
nothing of their load, as those of llama.cpp, Ollama and LM Studio do.

A canary waits there behind whatever is computed. Its silence took every long answer from them, and
whoever waited behind one: see NVIDIA/Personal-AI-Router#57, BerriAI/litellm#5816.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from regions.fleet import Reading, parse_metrics
from regions.health import Standing
from router.config import Limits
from router.simulator.timing import EngineSpec
from tests.cases.built import until
from tests.router.house import KEYS, House, Plan, house

TIMES = {"connect": "10s", "first_token": "20s", "answer": "30s", "deadline": "60s"}
ONE_SLOT = Plan(
    regions=("self:fra1",),
    limits=Limits.model_validate(TIMES),
    engine=EngineSpec(max_num_seqs=1, step_floor=0.05),
    metrics=False,
)


async def ask(
    client: httpx.AsyncClient, tokens: int, *, stream: bool, shown: str = "hi"
) -> httpx.Response:
    messages = [{"role": "user", "content": shown}]
    body = {"model": "assistant", "messages": messages, "max_tokens": tokens, "stream": stream}
    return await client.post("/v1/chat/completions", json=body)


@asynccontextmanager
async def asking(found: House) -> AsyncIterator[httpx.AsyncClient]:
    """A client, once it is known what is usual: short answers."""
    key = {"authorization": f"Bearer {KEYS['eu']}"}
    async with httpx.AsyncClient(
        base_url=found.url, timeout=60, trust_env=False, headers=key
    ) as client:
        for turn in range(12):
            await ask(client, 1, stream=turn % 2 == 0)
        yield client


REGIONS = ("fra1", "par1")


@asynccontextmanager
async def two(folder: Path, plan: Plan) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
    plan = replace(plan, regions=tuple(f"self:{region}" for region in REGIONS))
    async with house(folder, plan) as found:
        key = {"authorization": f"Bearer {KEYS['eu']}"}
        async with httpx.AsyncClient(
            base_url=found.url, timeout=60, trust_env=False, headers=key
        ) as client:
            yield found, client


@pytest_asyncio.fixture
async def running(tmp_path: Path) -> AsyncIterator[tuple[House, httpx.AsyncClient]]:
    """One slot."""
    async with house(tmp_path, ONE_SLOT) as found, asking(found) as client:
        yield found, client


async def test_a_long_answer_is_waited_for(running: tuple[House, httpx.AsyncClient]) -> None:
    found, client = running
    live = found.router.live
    done = await ask(client, 70, stream=False)
    assert (done.status_code, done.headers["x-domicile-attempts"]) == (200, "1")
    await until(lambda: live.health.marked(live.loop_time()) == (), 10)


@pytest.mark.parametrize("first", [False, True])
async def test_so_is_what_waits_behind_one(
    running: tuple[House, httpx.AsyncClient], first: bool
) -> None:
    found, client = running
    live = found.router.live
    asking = [asyncio.create_task(ask(client, 50, stream=first))]
    await until(lambda: live.inflight.requests("fra1"))
    asking += [asyncio.create_task(ask(client, 2, stream=stream)) for stream in (True, False)]
    for done in await asyncio.gather(*asking):
        assert (done.status_code, done.headers["x-domicile-attempts"]) == (200, "1")
    await until(lambda: live.health.marked(live.loop_time()) == (), 10)


async def test_others_are_asked_before_one_that_says_nothing(tmp_path: Path) -> None:
    """It may stand still: nobody can tell, and so nothing goes there while others can be asked."""
    async with two(tmp_path, ONE_SLOT) as (found, client):
        for turn in range(24):
            await ask(client, 1, stream=turn % 2 == 0)
        live = found.router.live
        long = asyncio.create_task(ask(client, 150, stream=False))
        await until(lambda: sum(live.inflight.requests(key) for key in REGIONS))
        [busy] = [key for key in REGIONS if live.inflight.requests(key)]
        await until(lambda: busy in live.health.marked(live.loop_time()), 4)
        for _ in range(4):
            done = await ask(client, 1, stream=False)
            assert done.headers["x-domicile-region"] != f"self:{busy}"
        done = await long
        assert (done.status_code, done.headers["x-domicile-attempts"]) == (200, "1")


async def test_one_that_was_seen_to_compute_several_stands_still_when_it_says_nothing(
    tmp_path: Path,
) -> None:
    """It tells no counters either, but a short answer passed long ones: a canary would, too."""
    engine = EngineSpec(step_floor=0.02)
    async with two(tmp_path, replace(ONE_SLOT, engine=engine)) as (found, client):
        live = found.router.live
        for _ in range(6):
            rest = [asyncio.create_task(ask(client, 20, stream=False)) for _ in range(2)]
            await asyncio.sleep(0.15)
            await asyncio.gather(*rest, *(ask(client, 1, stream=True) for _ in range(4)))
        assert all(live.silence.several(key) for key in REGIONS)
        for key in REGIONS:
            found.fleet[key].freeze()
            asking = [asyncio.create_task(ask(client, 2, stream=True)) for _ in range(8)]
            began = live.loop_time()
            for done in await asyncio.gather(*asking):
                assert (done.status_code, done.text.count("[DONE]")) == (200, 1)
            assert live.loop_time() - began < 2 * live.silence.usual(key, True) + 4
            found.fleet[key].thaw()
            await until(lambda: live.health.marked(live.loop_time()) == (), 10)


async def test_one_that_has_nothing_to_do_and_says_nothing_is_marked(
    running: tuple[House, httpx.AsyncClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a client finds out."""
    found, _ = running
    live = found.router.live
    monkeypatch.setattr("router.watch.probe.QUIET", 0.5)
    found.fleet["fra1"].freeze()
    await until(lambda: "fra1" in live.health.marked(live.loop_time()), 10)
    found.fleet["fra1"].thaw()
    await until(lambda: live.health.standing("fra1", live.loop_time()) is Standing.GOOD, 10)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("metrics", [False, True])
async def test_a_long_prompt_is_computed_to_its_end(
    tmp_path: Path, stream: bool, metrics: bool
) -> None:
    """In steps of two seconds, between which nothing moves, by an engine whose answers to short
    ones are known: where all were of this kind, none was ever answered. See rllm-org/rllm#926,
    ikawrakow/ik_llama.cpp#1210."""
    engine = EngineSpec(prefill_rate=4000.0, batch_tokens=8192, kv_blocks=8192)
    plan = replace(ONE_SLOT, engine=engine, metrics=metrics)
    async with house(tmp_path, plan) as found, asking(found) as client:
        live = found.router.live
        long = asyncio.create_task(ask(client, 2, stream=stream, shown="word " * 20_000))
        await until(lambda: live.inflight.requests("fra1"))
        behind = await ask(client, 2, stream=stream)
        for done in (behind, await long):
            assert (done.status_code, done.headers["x-domicile-attempts"]) == (200, "1")
        assert live.health.marked(live.loop_time()) == ()


LLAMA = """\
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 12
llamacpp:n_decode_total 7
llamacpp:n_busy_slots_per_decode 1
llamacpp:requests_processing 1
llamacpp:requests_deferred 2
"""


def test_llama_cpp_tells_its_load_where_it_is_let() -> None:
    assert parse_metrics(LLAMA, 0) == Reading(0, running=1, waiting=2, progress=7)
