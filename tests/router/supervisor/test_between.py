"""What workers tell each other by way of their supervisor, over scripted workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from classifiers.difficulty.audit import Shadow, StandingAudit
from router.supervisor.between import KNOWING
from router.supervisor.channel import PATIENCE, Gone
from router.supervisor.orders import (
    Audits,
    AuditsAsked,
    Beat,
    Began,
    Judged,
    PageAsked,
    Relayed,
)
from tests.router.supervisor.test_crew import World


async def test_what_one_worker_judged_all_others_count(tmp_path: Path) -> None:
    """An alarm that one of them raised alone left the rest of the traffic with small."""
    world = World.of(tmp_path, count=3)
    await world.begin()
    world.crew.slots[2].state = "starting"
    message = Judged("two", Shadow("eu", "question", "latin", "small", 0.0, 1.0), 5.0)
    world.said[1].broken[Judged] = Gone("ended")
    assert await world.crew._answer(world.crew.slots[0], message) is None
    judged = [[one for one in said.heard if isinstance(one, Judged)] for said in world.said]
    assert judged == [[], [message], []]


async def test_a_worker_that_begins_is_told_what_the_others_found(tmp_path: Path) -> None:
    world = World.of(tmp_path, count=3)
    await world.begin()
    found = Audits({("two", 0.05): StandingAudit(0.05)})
    world.said[0].broken[AuditsAsked] = Gone("silent")
    world.said[1].answers[AuditsAsked] = found
    await world.crew._answer(world.crew.slots[2], Began())
    assert [one for one in world.said[2].heard if not isinstance(one, Beat)] == [found]
    assert world.crew.slots[2].state == "serving"


async def test_a_worker_that_nobody_has_told_yet_knows_that(tmp_path: Path) -> None:
    """It answered by small what the silent ones had returned to large. Another one that nobody has
    told can't say so either; where all who knew are gone there is nothing left to be told."""
    world = World.of(tmp_path, count=3)
    await world.begin()
    first, second, third = world.crew.slots
    world.said[0].broken[AuditsAsked] = Gone("silent")
    second.unheard = True
    await world.crew._answer(third, Began())
    await world.crew._beat(third)
    asked_for = [third.unheard]
    del world.said[0].broken[AuditsAsked]
    await world.crew._beat(third)
    asked_for.append(third.unheard)
    first.state, third.unheard = "down", True
    await world.crew._beat(third)
    assert [*asked_for, third.unheard] == [True, False, False]
    told = [one.found for one in world.said[2].heard if isinstance(one, Audits)]
    assert told == [None, None, {}, {}]


async def test_who_serves_longest_is_asked_what_was_found(tmp_path: Path) -> None:
    """Of two that begin together one would have told the other that nothing was found."""
    world = World.of(tmp_path, count=3)
    await world.begin()
    first, second, third = world.crew.slots
    found = Audits({("two", 0.05): StandingAudit(0.05)})
    for said, answer in zip(world.said, (Audits({}), found), strict=False):
        said.answers[AuditsAsked] = answer
    first.since = second.since + 1
    await world.crew._answer(third, Began())
    assert [one for one in world.said[2].heard if not isinstance(one, Beat)] == [found]


async def test_stuck_workers_hold_a_new_ones_door_up_for_one_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each was waited for in turn, five seconds long, before the next was asked."""
    world, waiting, most = World.of(tmp_path, count=4), set[int](), 0
    await world.begin()
    found = Audits({("two", 0.05): StandingAudit(0.05)})

    def stuck(number: int) -> Callable[[object, type, float], Awaitable[object]]:
        async def ask(message: object, kind: type, patience: float) -> object:
            nonlocal most
            assert (message, patience) == (AuditsAsked(), KNOWING)
            waiting.add(number)
            most = max(most, len(waiting))
            await asyncio.sleep(0.01)
            waiting.discard(number)
            raise Gone("silent")

        return ask

    for number in (0, 1):
        monkeypatch.setattr(world.said[number], "ask", stuck(number))
    world.said[2].answers[AuditsAsked] = found
    await world.crew._answer(world.crew.slots[3], Began())
    assert most == 2
    assert [one for one in world.said[3].heard if not isinstance(one, Beat)] == [found]


async def test_a_page_of_anothers_log_may_take_as_long_as_whoever_asked_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log takes longer than a count of what was judged."""
    world, waited = World.of(tmp_path), list[float]()
    await world.begin()

    async def ask(message: object, kind: type, patience: float) -> object:
        waited.append(patience)
        return message

    monkeypatch.setattr(world.said[1], "ask", ask)
    asked = PageAsked(-1, 10, "key")
    assert await world.crew._answer(world.crew.slots[0], Relayed("local.w2", asked)) is asked
    assert waited == [PATIENCE]
