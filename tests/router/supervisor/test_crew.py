"""The crew over scripted workers: readiness of the whole, one snapshot for all, giving up."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest

from router.app import Clocks
from router.audit.entry import Entry
from router.audit.errors import LogUnavailable
from router.audit.settings import LogSettings
from router.errors import RequestError
from router.metrics import Metrics
from router.server import bind
from router.settings.loading import log_settings
from router.settings.reload import Refused, Source
from router.snapshot import Snapshot
from router.supervisor import crew as crew_module
from router.supervisor.channel import Channel, Gone
from router.supervisor.crew import HOPELESS, LAST, SILENT, WAITED, Crew
from router.supervisor.orders import (
    Audits,
    AuditsAsked,
    Beat,
    Began,
    Begin,
    Drain,
    Failed,
    Hurry,
    Install,
    Orders,
    Prepare,
    Pulse,
    RecordAsked,
    Relayed,
    Write,
)
from router.supervisor.slot import Slot
from tests.router.folders import sound


def reloaded(base: Snapshot) -> Snapshot:
    """Another one."""
    return replace(base, content=b"{}", digest=sha256(b"{}").hexdigest())


@dataclass
class Said:
    """A worker's side of the channel, scripted."""

    broken: dict[type, Exception] = field(default_factory=dict)
    answers: dict[type, object] = field(default_factory=lambda: {AuditsAsked: Audits({})})
    heard: list[object] = field(default_factory=list)
    active: str = "a"
    digest: str = ""
    killed: int = 0

    async def ask(self, message: object, kind: type, patience: float = 0.0) -> object:
        self.heard.append(message)
        found = self.broken.get(type(message))
        if found is not None:
            raise found
        match message:
            case Beat():
                if Beat in self.answers:
                    return self.answers[Beat]
                return Pulse(True, False, self.active, 5.0, Metrics().read())
            case Prepare():
                return self.digest or message.snapshot.digest
            case Install():
                self.active = message.active
                return message.digest
        return self.answers.get(type(message), True)

    def close(self) -> None:
        self.killed += 0


class Place(Slot):
    """A slot without a process."""

    def kill(self) -> None:
        cast("Said", self.channel).killed += 1


def no_door(listens: bool) -> socket.socket:
    """Nothing is started here."""
    raise AssertionError(listens)


@dataclass
class World:
    crew: Crew
    said: list[Said]
    base: Snapshot
    folder: Path

    @classmethod
    def of(cls, folder: Path, count: int = 2) -> World:
        box = sound(folder)
        snapshot = box.snapshot()
        said = [Said() for _ in range(count)]
        slots: list[Slot] = [
            Place(n, f"local.w{n}", no_door, channel=cast("Channel", one))
            for n, one in enumerate(said, 1)
        ]
        loop = asyncio.get_running_loop()
        clocks = Clocks(lambda: 1.0, loop.time, os.urandom)
        settings: LogSettings = log_settings(snapshot.config, folder)
        crew = Crew(Source(box.config, {"A": "b"}, "a"), snapshot, settings, slots, clocks)
        return cls(crew, said, snapshot, folder)

    async def begin(self) -> None:
        for slot in self.crew.slots:
            await self.crew._answer(slot, Began())
        for one in self.said:
            one.heard.clear()
        await self.crew.hear()


async def test_the_whole_is_ready_when_all_have_begun_and_while_one_serves(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    first, second = world.crew.slots
    await world.crew._answer(first, Began())
    await world.crew.hear()
    assert not world.crew.whole().ready
    await world.crew._answer(second, Began())
    await world.crew.hear()
    assert world.crew.whole().ready
    second.ended(0.0)
    whole = world.crew.whole()
    assert (whole.ready, whole.troubles) == (True, ("worker 2 is down",))
    first.ended(0.0)
    assert not world.crew.whole().ready


async def test_orders_are_what_is_in_force_not_what_is_on_disk(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    (tmp_path / "rules" / "example.yaml").write_text("broken")
    found = await world.crew._answer(world.crew.slots[1], Begin(7))
    assert isinstance(found, Orders)
    assert found.snapshot is world.base
    assert (found.number, found.log, found.active) == (2, "local.w2", "a")
    assert (found.logs, dict(found.environment)) == (("local.w1", "local.w2"), {"A": "b"})


async def test_a_reload_is_prepared_by_all_before_any_serves_it(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    new = reloaded(world.base)
    world.crew.files.on_disk = "b"
    await world.crew.reload(new)
    for said in world.said:
        kinds = [type(one) for one in said.heard if not isinstance(one, Beat)]
        assert kinds == [Prepare, Install]
        assert (said.active, said.killed) == ("b", 0)
    assert (world.crew.snapshot, world.crew.files.active) == (new, "b")


async def test_a_worker_that_has_another_snapshot_stops_the_reload(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    world.said[1].digest = "0" * 64
    with pytest.raises(Refused, match="worker 2 can't take it"):
        await world.crew.reload(reloaded(world.base))
    assert world.crew.snapshot is world.base
    assert not any(isinstance(one, Install) for said in world.said for one in said.heard)


async def test_a_worker_that_cannot_install_is_replaced(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    world.said[0].broken[Install] = RequestError("log_unavailable", "no room")
    await world.crew.reload(reloaded(world.base))
    assert [said.killed for said in world.said] == [1, 0]
    assert "no room" in world.crew.slots[0].reason


async def test_a_worker_that_is_away_does_not_stop_a_reload(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    world.said[1].broken[Prepare] = world.said[1].broken[Install] = Gone("ended")
    new = reloaded(world.base)
    await world.crew.reload(new)
    assert world.crew.snapshot is new


async def test_one_that_began_with_the_old_snapshot_is_given_the_new(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    world.crew.snapshot, world.crew.files.active = reloaded(world.base), "c"
    await world.crew._beat(world.crew.slots[0])
    assert world.said[0].active == "c"
    assert world.said[1].active == "a"


async def test_one_that_begins_during_a_reload_serves_nothing_before_it_has_the_new(
    tmp_path: Path,
) -> None:
    """Its orders are older than the reload that nobody told it of."""
    world = World.of(tmp_path)
    crew, (first, second) = world.crew, world.crew.slots
    for slot in (first, second):
        assert isinstance(await crew._answer(slot, Begin(1)), Orders)
    await crew._answer(first, Began())
    new = reloaded(world.base)
    crew.files.on_disk = "b"
    gate, ask = asyncio.Event(), world.said[0].ask

    async def slow(message: object, kind: type, patience: float = 0.0) -> object:
        await gate.wait()
        return await ask(message, kind, patience)

    world.said[0].ask = slow  # type: ignore[method-assign]
    reloading = asyncio.create_task(crew.reload(new))
    await asyncio.sleep(0)
    beginning = asyncio.create_task(crew._answer(second, Began()))
    await asyncio.sleep(0.01)
    assert (second.state, beginning.done()) != ("serving", True)
    gate.set()
    await asyncio.gather(reloading, beginning)
    assert [type(one) for one in world.said[1].heard] == [Prepare, Install, Audits]
    assert (second.state, world.said[1].active) == ("serving", "b")


async def test_one_that_reads_its_siblings_vetoes_is_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they are told from then on, it has to be told itself."""
    world = World.of(tmp_path)
    slot = world.crew.slots[1]
    seen: list[str] = []

    def inherit(*given: object) -> None:
        seen.append(slot.state)
        raise LogUnavailable("no more of this test")

    monkeypatch.setattr(crew_module, "inherit", inherit)
    assert await world.crew._process(slot) == 1
    assert seen == ["starting"]


async def test_the_time_is_never_before_the_newest_in_a_log(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    assert world.crew.now() == 1.0
    await world.begin()
    assert world.crew.now() == 5.0


async def test_an_entry_goes_to_the_first_log_that_takes_it(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    entry = Entry("administration", "", 1.0, {"event": "x"})
    with pytest.raises(LogUnavailable):
        await world.crew.record(entry)
    await world.begin()
    world.said[0].broken[Write] = Gone("ended")
    assert await world.crew.record(entry) is True
    assert [one for one in world.said[1].heard if isinstance(one, Write)] == [Write(entry)]


async def test_a_question_goes_to_the_worker_that_writes_the_log(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    asked = RecordAsked(3, "key")
    first = world.crew.slots[0]
    assert await world.crew._answer(first, Relayed("local.w2", asked)) is True
    assert world.said[1].heard[-1] == asked
    with pytest.raises(RequestError, match="no such log"):
        await world.crew._answer(first, Relayed("other.w2", asked))
    world.said[1].broken[RecordAsked] = Gone("worker 2 is not running")
    with pytest.raises(RequestError, match="try again"):
        await world.crew._answer(first, Relayed("local.w2", asked))


async def test_a_first_start_that_fails_is_told_at_once(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.crew._answer(world.crew.slots[1], Failed("no key"))
    assert world.crew.hopeless.result() == "worker 2: no key"


async def test_later_it_gives_up_only_when_nobody_can_be_started(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    assert world.crew.whole().ready
    first, second = world.crew.slots
    for _ in range(HOPELESS + 2):
        first.ended(0.0)
        world.crew._judge()
    assert not world.crew.hopeless.done()
    await world.crew._answer(first, Failed("disk full"))
    for _ in range(HOPELESS):
        second.ended(0.0)
        world.crew._judge()
    assert "disk full" in world.crew.hopeless.result()


async def test_what_a_worker_never_asks(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    with pytest.raises(TypeError):
        await world.crew._answer(world.crew.slots[0], "hello")


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are looked at a hundred times a second."""
    monkeypatch.setattr(crew_module, "CALM", 0.01)
    monkeypatch.setattr(crew_module, "BEAT", 0.01)


async def test_a_log_that_cannot_be_written_takes_a_new_process(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    failed = Pulse(False, True, "a", 5.0, Metrics().read())
    world.said[0].answers[Beat] = failed
    await world.crew._beat(world.crew.slots[0])
    assert world.said[0].heard[-1] == Drain(LAST)
    assert (world.crew.slots[0].state, world.crew.serving()) == ("stopping", [world.crew.slots[1]])
    assert world.crew.whole().ready


async def test_a_worker_that_says_nothing_is_killed(tmp_path: Path, hasty: None) -> None:
    world = World.of(tmp_path)
    await world.begin()
    slot, said = world.crew.slots[0], world.said[0]
    said.broken[Beat] = Gone("no answer")
    beating = asyncio.create_task(world.crew._beats(slot))
    await asyncio.sleep(0.05)
    assert said.killed == 0
    slot.heard -= SILENT
    while not said.killed:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert "said nothing" in slot.reason
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_nobody_waits_for_a_worker_that_takes_long_while_another_serves(
    tmp_path: Path, hasty: None
) -> None:
    world = World.of(tmp_path)
    await world.begin()
    assert world.crew.whole().ready
    one, other = world.crew.slots
    door = one.door = bind(("127.0.0.1", 0), "listen", shared=True)
    one.state, other.state = "starting", "starting"
    beating = asyncio.create_task(world.crew._beats(one))
    await asyncio.sleep(0.05)
    assert one.door is door, "it has only begun"
    one.since -= WAITED
    await asyncio.sleep(0.05)
    assert one.door is door, "nobody else serves"
    other.state = "serving"
    async with asyncio.timeout(20):
        while door.fileno() >= 0:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_a_stop_drains_those_that_serve_and_ends_those_that_begin(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    world.crew.slots[1].state = "starting"
    await world.crew.stop(3.0, asyncio.Event())
    assert world.said[0].heard[-1] == Drain(3.0)
    assert [said.killed for said in world.said] == [0, 1]
    assert not world.crew.whole().ready


async def test_a_second_word_hurries(tmp_path: Path) -> None:
    world = World.of(tmp_path)
    await world.begin()
    hurry, ended = asyncio.Event(), asyncio.Event()

    async def life() -> None:
        await ended.wait()

    world.crew._lives = [asyncio.create_task(life())]
    stopping = asyncio.create_task(world.crew.stop(60.0, hurry))
    await asyncio.sleep(0.01)
    hurry.set()
    await asyncio.sleep(0.01)
    assert [said.heard[-1] for said in world.said] == [Hurry(), Hurry()]
    ended.set()
    await asyncio.wait_for(stopping, 5)
