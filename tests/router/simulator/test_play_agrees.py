"""Classes and split pools over a running router, and the same in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import fmean

import httpx
import pytest

from policies.model import Priority
from router.capacity.priority import PrioritiesSection
from router.config import Limits
from router.simulator.fleet import SimulatedFleet
from router.simulator.layout import Layout
from router.simulator.play import play
from router.simulator.replica import Replica, ReplicaSpec
from router.simulator.scenario import Scenario, grounds, round_trip
from router.simulator.timing import Engine, EngineSpec, JobTimes, Progress
from router.simulator.traces import Ask, Trace
from router.transport.client import HttpTransport
from tests.cases.built import Files, built
from tests.router.attempts.test_prefilling import ask, baseline, script
from tests.router.house import KEYS, house
from tests.router.house import Plan as Houses

SLOW = EngineSpec(step_floor=0.05, prefill_rate=400.0)
"""So slow that what the router and this machine take hardly counts."""
OUTPUT = 8
"""The simulated servers say so many tokens at least, and no more are asked for."""
LIMITS = Limits.model_validate(
    {"queue": "40s", "deadline": "60s", "first_token": "60s", "answer": "60s", "idle": "60s"}
)
HOME = "self:fra1"
CLASSES = tuple(Priority)


async def first_token(client: httpx.AsyncClient, number: int, priority: Priority) -> float:
    """Seconds to the first token of one streamed request."""
    body = {
        "model": "assistant", "stream": True, "max_tokens": OUTPUT,
        "messages": [{"role": "user", "content": f"{number:02} question " * 30}],
    }  # fmt: skip
    headers = {"x-domicile-priority": priority.label}
    loop = asyncio.get_running_loop()
    began, seconds = loop.time(), 0.0
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        assert answer.status_code == 200
        async for _ in answer.aiter_bytes():
            seconds = seconds or loop.time() - began
    return seconds


async def test_the_urgent_wait_less_over_a_running_router_and_in_virtual_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 requests at once, a third of each class, for two places: they wait as long in both."""
    prompts: set[int] = set()
    submit = Engine.submit

    def watched(engine: Engine, job: object, now: float) -> None:
        prompts.add(job.prompt_tokens)  # type: ignore[attr-defined]
        submit(engine, job, now)  # type: ignore[arg-type]

    settings, priorities = {"capacity_requests": "2"}, PrioritiesSection()
    plan = Houses(
        regions=(HOME,), limits=LIMITS, priorities=priorities, settings=settings, engine=SLOW
    )
    # The least urgent come first, or else no order would show.
    order = [CLASSES[2 - number % 3] for number in range(24)]
    with monkeypatch.context() as patch:
        patch.setattr(Engine, "submit", watched)
        async with house(tmp_path, plan) as real:
            headers = {"authorization": f"Bearer {KEYS['eu']}"}
            async with httpx.AsyncClient(base_url=real.url, headers=headers, timeout=90) as client:
                waits = await asyncio.gather(
                    *(first_token(client, number, one) for number, one in enumerate(order))
                )
    (prompt,) = prompts
    asks = [Ask(0.0, prompt, OUTPUT, (), HOME, "any", one) for one in order]
    scenario = Scenario(
        grounds([f"{HOME}=1"], SLOW), settings=settings, limits=LIMITS, classes=priorities
    )
    played = await asyncio.to_thread(play, scenario, Trace(tuple(asks)))
    assert played.result.answers == len(order)
    really = [fmean(w for w, o in zip(waits, order, strict=True) if o is one) for one in CLASSES]
    foretold = [played.tally.strands[f"class:{one.label}"].ttft.mean for one in CLASSES]
    for found in (really, foretold):
        assert found[0] < 0.7 * found[1] < 0.7 * found[2]
    for mine, true in zip(foretold, really, strict=True):
        assert 0.5 * true < mine < 1.5 * true


async def test_a_split_pool_takes_as_long_over_a_running_router(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A prompt is computed at one half, moved, and answered at the other; a short one is not."""
    took: dict[int, list[JobTimes]] = {}
    advance = Engine.advance

    def watched(engine: Engine, now: float) -> list[Progress]:
        out = advance(engine, now)
        took.setdefault(id(engine), []).extend(o.times for o in out if o.times is not None)
        return out

    monkeypatch.setattr(Engine, "advance", watched)
    slow = EngineSpec(step_floor=0.05, prefill_rate=400.0, transfer_rate=400.0)
    spec = ReplicaSpec(transfers=True, engine=slow)
    names = (f"{HOME}/p", f"{HOME}/d")
    texts = [f"{number:02} question " * (3 if number % 3 == 2 else 60) for number in range(6)]
    async with SimulatedFleet(dict.fromkeys(names, spec)) as fleet:
        pre, dec = (fleet[name] for name in names)
        text = baseline(f'"{pre.url}"', decode=f'"{dec.url}"')
        main = Files().main.replace("first_token: 2s, answer: 2s", "first_token: 50s, answer: 50s")
        main = main.replace("deadline: 20s", "deadline: 60s")
        files = Files(main=main, baseline=text)
        async with built(tmp_path, script(), files, HttpTransport()) as made:
            done = await asyncio.gather(*(ask(made, one, max_tokens=OUTPUT) for one in texts))
            assert {one.code for one in done} == {"ok"}
            await made.router.transport.close()  # type: ignore[attr-defined]
        halves = [took.pop(id(engine_of(one))) for one in (pre, dec)]
    halves = [[t for t in one if t.output_tokens in {1, OUTPUT}] for one in halves]
    prompts = sorted(t.prompt_tokens for t in halves[1])
    asks = tuple(Ask(0.0, tokens, OUTPUT, (), HOME, "any") for tokens in reversed(prompts))
    split = grounds([f"{HOME}=2"], slow, Layout.read("split=1:1"))
    scenario = Scenario(split, limits=LIMITS, least=64)
    played = await asyncio.to_thread(play, scenario, Trace(asks))
    assert [len(one) for one in halves] == [4, 6]
    assert {k: one["jobs"] for k, one in played.result.parts.items()} == {"prefill": 4, "decode": 6}
    assert played.result.moved == 4
    # From the first prompt at the one half to the last token at the other, in the engines' time.
    began = min(t.submitted for t in halves[0])
    really = max(t.finished for t in halves[1]) - began
    assert played.tally.last - round_trip(HOME, HOME) == pytest.approx(really, rel=0.35)


def engine_of(replica: Replica) -> Engine:
    """What computes in it."""
    return replica._engine
