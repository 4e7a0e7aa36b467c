"""What a worker answers its supervisor, over a real router."""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import cast

import pytest

from classifiers.difficulty.audit import Shadow
from router.audit.entry import Entry
from router.entries.auditing import PageView
from router.entries.reading_records import RecordView
from router.errors import RequestError
from router.live import Whole
from router.narrowing.operating import EraseAsked, ErasedTold, QuarantineAsked, Status
from router.server import Serving, bind
from router.supervisor.channel import Channel, Gone
from router.supervisor.orders import (
    Audits,
    AuditsAsked,
    Beat,
    Drain,
    Erase,
    Hurry,
    Install,
    Judged,
    Narrow,
    Orders,
    PageAsked,
    Prepare,
    Pulse,
    RecordAsked,
    Relayed,
    StatusAsked,
    Write,
)
from router.supervisor.worker import Post, Relay, Worker, reopen, serve
from tests.router.folders import sound
from tests.router.reloading import World, watched

WHOLE = Whole(ready=True, workers=2)


@asynccontextmanager
async def worker(folder: Path) -> AsyncIterator[tuple[World, Worker]]:
    async with watched(sound(folder)) as world:
        live = world.router.live
        orders = Orders(
            1, live.snapshot, "a", "local.w1", ("local.w1", "local.w2"), folder, {}, WHOLE
        )
        serving = Serving.__new__(Serving)
        serving.router = world.router
        yield world, Worker(serving, world.watches, orders)


async def test_a_beat_carries_the_whole_there_and_the_pulse_back(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        world.router.live.starting.clear()
        await world.ask()
        told = Whole(ready=False, workers=2, troubles=("worker 2 is down",))
        pulse = await one.answer(Beat(told))
        assert isinstance(pulse, Pulse)
        assert (pulse.serving, pulse.log_failed, pulse.active) == (True, False, "a")
        assert pulse.read.gauges["domicile_log_size", ()] > 0
        assert not world.router.live.ready()
        assert "worker 2 is down" in world.router.live.degraded()


async def test_readiness_is_the_wholes_while_the_own_log_can_be_written(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        world.router.live.starting.add("probes")
        await one.answer(Beat(WHOLE))
        assert world.router.live.ready()  # others serve
        world.router.live.log._failure = "disk full"
        with pytest.raises(RequestError, match="disk full"):
            await one.answer(Write(Entry("administration", "", 1.0, {"event": "x"})))
        pulse = await one.answer(Beat(WHOLE))
        assert isinstance(pulse, Pulse)
        assert (pulse.serving, pulse.log_failed) == (False, True)
        assert not world.router.live.ready()


async def test_a_snapshot_is_prepared_then_put_in_force(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        content = world.router.live.snapshot.content + b" "
        digest = sha256(content).hexdigest()
        new = replace(world.router.live.snapshot, content=content, digest=digest)
        assert await one.answer(Prepare(new)) == digest
        assert world.router.live.snapshot is not new
        with pytest.raises(RequestError, match="another snapshot"):
            await one.answer(Install("0" * 64, "b"))
        assert await one.answer(Install(digest, "b")) == digest
        assert world.router.live.snapshot.digest == digest
        assert world.router.live.files.active == "b"


async def test_the_digest_is_computed_anew(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        changed = replace(world.router.live.snapshot, content=b"other")
        assert await one.answer(Prepare(changed)) != changed.digest


async def test_an_operators_word(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        asked = QuarantineAsked(what="endpoint", name="fra-large", reason="flood")
        imposed = await one.answer(Narrow(asked, "boss"))
        assert [(i.name, i.by) for i in cast("tuple[object, ...]", imposed)] == [  # type: ignore[attr-defined]
            ("fra-large", "boss")
        ]
        status = await one.answer(StatusAsked())
        assert isinstance(status, Status)
        assert [i.name for i in status.quarantined] == ["fra-large"]
        with pytest.raises(RequestError, match="nowhere"):
            await one.answer(Narrow(asked.model_copy(update={"name": "nowhere"}), "boss"))
        [entry] = world.entries("veto")
        assert entry.body["by"] == "boss"


async def test_what_opens_a_workers_log_is_erased_there(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        await world.ask()
        done = await one.answer(Erase(EraseAsked(tenant="clinic"), "boss"))
        assert isinstance(done, ErasedTold)
        assert (done.keys, done.openings) == (1, 0)
        others = world.router.live.log.folder.path.parent / "r1.w9" / "openings"
        others.mkdir(parents=True)
        (others.parent / "checkpoints.jsonl").touch()
        (others / "openings.jsonl").touch()
        for logs, left in (((), True), (("r1.w9",), False)):
            done = await one.answer(Erase(EraseAsked(tenant="clinic"), "boss", logs))
            assert isinstance(done, ErasedTold)
            assert any("other logs" in one for one in done.remains) is left
        told = [e.body["by"] for e in world.entries("administration") if "keys" in e.body]
        assert told == ["boss"] * 3


async def test_a_siblings_caller_reads_its_own_record_and_no_others(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        _, index, _ = (await world.ask()).sent["x-domicile-record"].split("/")
        found = await one.answer(RecordAsked(int(index), "clinic-1"))
        assert isinstance(found, RecordView)
        assert (found.index, found.kind) == (int(index), "decision")
        for number, key in ((int(index) + 500, "clinic-1"), (-1, "clinic-1"), (0, "clinic-1")):
            with pytest.raises(RequestError) as refused:
                await one.answer(RecordAsked(number, key))
            assert refused.value.code == "not_found"
        with pytest.raises(RequestError) as stranger:
            await one.answer(RecordAsked(int(index), "nobody"))
        assert stranger.value.status == 401
        with pytest.raises(RequestError, match="auditor"):
            await one.answer(PageAsked(-1, 10, "clinic-1"))


async def test_draining_and_hurry(tmp_path: Path) -> None:
    async with worker(tmp_path) as (world, one):
        assert await one.answer(Drain(3.0)) is True
        assert (one.stop.is_set(), one.drain) == (True, 3.0)
        assert await one.answer(Hurry()) is True
        assert world.router.hurry.is_set()
        with pytest.raises(TypeError, match="is not asked"):
            await one.answer("hello")


async def test_nothing_is_answered_before_there_is_a_worker() -> None:
    with pytest.raises(RequestError, match="still starting"):
        await Post().answer(Beat(WHOLE))


class Supervisor:
    """The other side of a channel."""

    def __init__(self, found: object) -> None:
        self.found = found
        self.asked: list[object] = []

    async def ask(self, message: object, kind: type, patience: float = 0.0) -> object:
        self.asked.append(message)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


async def test_a_siblings_log_is_read_through_the_supervisor() -> None:
    page = PageView(log="b", entries=[], hidden=0, next=None, size=0, checkpoint="")
    other = Supervisor(page)
    relay = Relay(cast("Channel", other), ["a", "b"])
    assert relay.logs == ("a", "b")
    assert await relay.page("b", -1, 10, "key") is page
    assert other.asked == [Relayed("b", PageAsked(-1, 10, "key"))]
    other.found = Gone("ended")
    with pytest.raises(RequestError, match="not running"):
        await relay.record("b", 1, "key")


async def test_what_a_sibling_judged_is_counted_and_handed_on(tmp_path: Path) -> None:
    shadow = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    async with worker(tmp_path) as (world, one):
        model = next(iter(world.router.live.snapshot.policy.models))
        for _ in range(60):
            assert await one.answer(Judged(model, shadow, 5.0)) is True
        assert await one.answer(Judged("gone", shadow, 5.0)) is True
        found = await one.answer(AuditsAsked())
        assert isinstance(found, Audits)
        assert found.found is not None
        [(name, audit)] = found.found.items()
        assert name[0] == model
        assert audit.returned("tenant=eu")
        again = cast("Audits", pickle.loads(pickle.dumps(found)))
        world.router.live.audits.clear()
        assert await one.answer(again) is True
        assert world.router.live.audits[name].returned("tenant=eu")


@pytest.mark.parametrize("fault", [None, Gone("ended")])
async def test_what_was_judged_is_told_through_the_supervisor(fault: Exception | None) -> None:
    shadow = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    other = Supervisor(fault)
    relay = Relay(cast("Channel", other), ["a", "b"])
    if fault is None:
        await relay.judged("two", shadow, 5.0)
    else:
        with pytest.raises(RequestError, match="ended"):
            await relay.judged("two", shadow, 5.0)
    assert other.asked == [Judged("two", shadow, 5.0)]


@pytest.mark.parametrize("fault", [None, Gone("ended")])
async def test_it_serves_once_the_supervisor_knows_of_it(fault: Exception | None) -> None:
    """Else it would answer by what was in force when it was started."""
    done: list[str] = []

    class Told:
        async def ask(self, message: object, kind: type, patience: float) -> None:
            done.append(type(message).__name__)
            await asyncio.sleep(0)
            if fault is not None:
                raise fault

    class Starting:
        router: Starting

        async def start(self) -> None:
            done.append("serves")

        async def close(self, drain: float) -> None:
            done.append("closed")

    starting = Starting()
    starting.router = starting
    with bind(("127.0.0.1", 0), "listen", shared=True) as door:
        serving = serve(cast("Channel", Told()), cast("Serving", starting), door)
        if fault is None:
            await serving
            assert done == ["Began", "serves"]
        else:
            with pytest.raises(Gone):
                await serving
            assert done == ["Began", "closed"]


def test_a_door_that_was_shut_meanwhile_is_opened_again() -> None:
    with bind(("127.0.0.1", 0), "listen", shared=True) as door:
        address = door.getsockname()
        reopen(door)  # it listens: nothing to do
        waiting = socket.create_connection(address)
        door.accept()[0].close()
        with door.dup() as same:
            same.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        reopen(door)
        assert door.getsockname() == address
        with socket.create_connection(address), door.accept()[0] as taken:
            assert taken.getsockname() == address
        waiting.close()
