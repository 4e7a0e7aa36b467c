"""The wall clock is set forth and back under load: nothing opens again, nothing hangs."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from math import inf
from pathlib import Path

import pytest

from router.simulator.faults import Fault, Kind
from tests.chaos import evidence
from tests.chaos.test_storm import at_rest, receipts
from tests.chaos.world import DEADLINE, OUTSIDE, Client, Clock, Heard, Question, World, running

pytestmark = pytest.mark.chaos
HOUR = 3600.0
ENDS = 24 * HOUR
"""When the grant of `games` loses the US, seconds after the start."""
STEPS: tuple[tuple[float, bool], ...] = (
    (0.0, True),
    (600.0, True),
    (-1200.0, False),  # behind the log by more than a tick: what has an end reads as lapsed
    (700.0, True),
    (3 * HOUR, True),
    (-HOUR, False),
    (ENDS + HOUR, False),  # over, and for ever; and the certificate of the log's key has ended too
    (0.0, False),
    (ENDS - HOUR, False),
    (-48 * HOUR, False),
    (ENDS + 2 * HOUR, False),
    (60.0, False),
)
"""How far the clock is off, and whether `games` may then use the US."""
LATE = 1 + next(at for at, (off, _) in enumerate(STEPS) if off > ENDS)
UNSIGNED = "log_unavailable"
"""What requests are told at step `LATE` until the log's next key is certified: nothing is sent."""
EACH = 15
ASKING = 12


@dataclass(frozen=True, slots=True)
class Stepped(Clock):
    """A clock that is set: `off` has seconds, the last of which count."""

    off: list[float] = field(default_factory=lambda: [STEPS[0][0]])

    def at(self, monotonic: float) -> float:
        """The time at a monotonic reading, as the clock stands now."""
        return Clock.at(self, monotonic) + self.off[-1]


@contextmanager
def failing(world: World, *faults: Fault) -> Iterator[None]:
    """Every replica has these faults."""
    for replica in world.fleet:
        for fault in faults:
            replica.fail(fault)
    yield
    for replica in world.fleet:
        replica.faults.clear()


def ending(clock: Clock) -> str:
    """The moment at which the US end, as it is written."""
    return datetime.fromtimestamp(clock.start + ENDS, UTC).isoformat().replace("+00:00", "Z")


def with_an_end(baseline: str, end: str) -> str:
    """`games` may use the EU, and the US until then."""
    written = "games: {grant: {process: worldwide}}"
    assert written in baseline
    bound = f"boundaries:\n  eu-us: {{plus: [EU, {{country: US, until: {end}}}]}}\n"
    return baseline.replace(written, "games: {grant: {process: eu-us}}") + bound


def question(rng: random.Random) -> Question:
    """Half may use the US for some time, most others never may."""
    kinds = [
        *[Question("games")] * 5, *[Question("clinic")] * 3, Question("bank"),
        Question("clinic", headers=(("x-domicile-attr-data_class", "health"),)),
    ]  # fmt: skip
    return replace(rng.choice(kinds), stream=rng.random() < 0.4)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was heard of a request, and how far the clock was off when it began and ended."""

    heard: Heard
    first: int
    last: int


async def stepped(world: World, clock: Stepped) -> list[Asked]:
    """Ask without a pause while the clock is set; each time some requests are open."""
    client, rng = Client(world.url), random.Random(11)
    found, refused, within = list[Asked](), list[Asked](), Counter[int]()

    async def one_by_one() -> None:
        while within[len(STEPS)] < EACH:
            first = len(clock.off)
            one = Asked(await client.ask(question(rng)), first, len(clock.off))
            if one.heard.status and one.heard.code == UNSIGNED:
                refused.append(one)
                await asyncio.sleep(0.05)  # until the log has its next key
                continue
            found.append(one)
            within[first] += one.last == first and one.heard.code == "ok"
            if within[step := len(clock.off)] >= EACH and step < len(STEPS):
                clock.off.append(STEPS[step][0])

    slow = Fault(Kind.SLOW_START, seconds=0.05, probability=0.3)
    with failing(world, slow, Fault(Kind.HANG, probability=0.01)):
        await asyncio.gather(*(one_by_one() for _ in range(ASKING)))
    await client.close()
    assert all(one.first <= LATE <= one.last for one in refused), "never but then"
    return found


async def test_what_has_lapsed_stays_so_whatever_the_clock_says(tmp_path: Path) -> None:
    clock = Stepped()

    def edit(baseline: str) -> str:
        return with_an_end(baseline, ending(clock))

    async with running(tmp_path, clock=clock, edit=edit) as world:
        before = asyncio.all_tasks()
        asked = await stepped(world, clock)
        await at_rest(world, before)
    log, heard = evidence.traces(world.log), [one.heard for one in asked]
    # What upstreams saw, by a clock that nobody sets: the log's times can't be compared.
    hits = evidence.reached(world.fleet, world.bedrock.calls, world.log, Clock(inf))
    found = [decided(hit, log) for hit in hits]
    assert list(evidence.unjustified(found, log)) == []
    assert list(evidence.unsettled(log)) == []
    assert list(evidence.malformed(heard)) == []
    assert {one.code for one in heard} <= {"ok", "misdirected", "upstream_unavailable"}
    assert max(one.seconds for one in heard) < DEADLINE + 3, "no clock that is set ends a wait"
    receipts(world, heard)
    plans(asked, log)
    times = [trace.decision.time for trace in log.values() if trace.decision is not None]
    # Of two requests under way at once the later one may be written down first, no more.
    newest = accumulate(times, max)
    behind = max(most - time for time, most in zip(times, newest, strict=True)) / 1_000_000
    assert behind < DEADLINE, "a log's time goes back by no clock"


def decided(hit: evidence.Reached, log: Mapping[str, evidence.Trace]) -> evidence.Reached:
    """A hit under the name that the log has for its decision: one made again is `ID.1`, `ID.2`."""
    name, number = hit.request, 0
    while (trace := log.get(name)) is not None and trace.status == "decided_again":
        if hit.endpoint in [one["endpoint"] for one in trace.tried]:
            break
        number += 1
        name = f"{hit.request}.{number}"
    return replace(hit, request=name)


def plans(asked: Sequence[Asked], log: Mapping[str, evidence.Trace]) -> None:
    """Nobody was sent where the time did not allow it, nor kept from where it did."""
    judged = Counter[int]()
    for one in asked:
        if one.heard.tenant != "games":
            continue
        may = {STEPS[step - 1][1] for step in range(one.first, one.last + 1)}
        outside = OUTSIDE.isdisjoint(log[one.heard.headers["x-request-id"]].plan) is False
        assert outside in may, (one.first, one.last)
        judged[one.first] += one.first == one.last
    assert all(judged[step] for step in range(1, len(STEPS) + 1)), judged


@pytest.mark.parametrize("step", [5 * HOUR, -5 * HOUR])
async def test_a_deadline_is_no_time_of_day(tmp_path: Path, step: float) -> None:
    clock = Stepped()
    async with running(tmp_path, limits="first_token: 4s, answer: 5s", clock=clock) as world:
        client = Client(world.url)
        late = Question("clinic", headers=(("x-domicile-deadline", "700ms"),))
        with failing(world, Fault(Kind.HANG)):
            waits = asyncio.create_task(client.ask(late))
            await asyncio.sleep(0.2)
            clock.off.append(step)
            heard = await waits
        assert (heard.status, heard.code) == (504, "deadline")
        assert 0.65 < heard.seconds < DEADLINE
        assert (await client.ask(Question("clinic"))).code == "ok"
        await client.close()
    assert list(evidence.unsettled(evidence.traces(world.log))) == []
