"""Which entries share a batch, and so a sync; and which thread writes it."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from router.audit import writing
from router.audit.commands import run_show
from router.audit.entry import Entry
from router.audit.errors import LogUnavailable
from router.audit.log import PATIENCE, AuditLog
from router.audit.receipt import Receipt
from tests.router.audit.faultydisk import FaultyDisk
from tests.router.audit.logbox import LogBox


def syncs(disk: FaultyDisk) -> int:
    return disk.calls.count("sync")


def lines(box: LogBox) -> int:
    return len(list(run_show(box.folder)))


async def written(box: LogBox, count: int) -> None:
    async with asyncio.timeout(20):
        while lines(box) < count:  # noqa: ASYNC110 - files tell nobody
            await asyncio.sleep(0.002)


async def test_one_client_after_another_waits_for_one_sync_a_request(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    before, loop = syncs(disk), asyncio.get_running_loop()
    began = loop.time()
    for number in range(50):
        await log.commit(box.decision(f"r{number}"), None)
        log.note(box.outcome(f"r{number}"))
    alone = int((loop.time() - began) / PATIENCE) + 1  # once in that time one may go by itself
    assert 50 <= syncs(disk) - before <= 50 + alone
    await log.close()


async def test_what_nobody_waits_for_is_written_all_the_same(box: LogBox) -> None:
    log = await box.open()
    had = lines(box)
    for number in range(3):
        await log.commit(box.decision(f"r{number}"), None)
        log.note(box.outcome(f"r{number}"))
        await written(box, had + 2 * (number + 1))
    await log.close()


async def test_what_is_noted_while_the_thread_is_busy_does_not_stay(box: LogBox) -> None:
    held, had = threading.Event(), 0

    def hold(name: str, _number: int) -> None:
        if name == "sync" and had:
            held.wait(20)

    log = await box.open(disk=FaultyDisk(fault=hold))
    await log.commit(box.decision("r1"), None)
    had = lines(box)
    waiting = asyncio.ensure_future(log.record(box.decision("r2")))
    await written(box, had + 1)  # and not yet synced
    log.note(box.outcome("r1"))
    await asyncio.sleep(3 * PATIENCE)
    assert lines(box) == had + 1
    held.set()
    await waiting
    await written(box, had + 2)
    await log.close()


async def test_what_is_noted_last_is_there_after_a_close(box: LogBox) -> None:
    log = await box.open()
    await log.commit(box.decision("r1"), None)
    log.note(box.outcome("r1"))
    await log.close()
    kinds = [shown.kind for shown in run_show(box.folder)]
    assert kinds[-3:] == ["decision", "outcome", "administration"]


class Threads:
    """Which threads synced; `fault` may raise in them."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fault = False
        self.disk = FaultyDisk(fault=self._before)

    def _before(self, name: str, _number: int) -> None:
        if name == "sync":
            self.seen.append(threading.current_thread().name)
            if self.fault:
                raise OSError("broken")

    @contextmanager
    def told(self) -> Iterator[list[str]]:
        """Those that sync meanwhile."""
        self.seen.clear()
        found: list[str] = []
        yield found
        found += self.seen


async def one(log: AuditLog, box: LogBox, count: int = 1) -> None:
    for _ in range(count):
        entry = box.decision()
        await log.commit(entry, None)
        log.note(box.outcome(entry.id))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy this machine is."""
    monkeypatch.setattr(writing, "QUICK", 60.0)


@pytest.mark.usefixtures("quick")
async def test_on_a_quick_disk_the_loop_writes_for_a_request_that_is_alone(box: LogBox) -> None:
    threads, here = Threads(), threading.current_thread().name
    log = await box.open(disk=threads.disk)
    with threads.told() as first:
        await one(log, box, writing.ENOUGH // 2)
    assert here not in first
    await one(log, box, writing.ENOUGH)
    with threads.told() as then:
        await one(log, box, 5)
    assert set(then) == {here}
    await log.close()
    written = [shown.kind for shown in run_show(box.folder)]
    assert written.count("decision") == written.count("outcome") == 3 * writing.ENOUGH // 2 + 5


@pytest.mark.usefixtures("quick")
async def test_while_an_answer_is_under_way_the_thread_writes(box: LogBox) -> None:
    threads, here = Threads(), threading.current_thread().name
    log = await box.open(disk=threads.disk)
    await one(log, box, 2 * writing.ENOUGH)
    await log.commit(box.decision("long"), None)
    with threads.told() as meanwhile:
        await one(log, box, 5)
        await asyncio.gather(*(one(log, box) for _ in range(5)))
        await log.record(Entry("administration", "", box.clock.now, {"event": "seen"}))
        await asyncio.sleep(3 * PATIENCE)  # the last outcome goes by itself
    assert len(meanwhile) > 6
    assert here not in meanwhile
    log.note(box.outcome("long"))
    with threads.told() as after:
        await one(log, box, 5)
    assert set(after) == {here}
    await log.close()


async def test_one_slow_write_gives_everything_to_the_thread(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, here = Threads(), threading.current_thread().name
    monkeypatch.setattr(writing, "QUICK", 60.0)
    log = await box.open(disk=threads.disk)
    await one(log, box, 2 * writing.ENOUGH)
    monkeypatch.setattr(writing, "QUICK", 0.0)
    with threads.told() as slow:
        await one(log, box, 5)
    assert slow[0] == here
    assert here not in slow[1:]
    monkeypatch.setattr(writing, "QUICK", 60.0)
    with threads.told() as again:
        await one(log, box, writing.ENOUGH // 2)
    assert here not in again
    await log.close()


@pytest.mark.usefixtures("quick")
async def test_what_the_loop_can_not_write_is_told_as_what_the_thread_can_not(box: LogBox) -> None:
    threads = Threads()
    log = await box.open(disk=threads.disk)
    await one(log, box, 2 * writing.ENOUGH)
    threads.fault = True
    with pytest.raises(LogUnavailable, match="broken"):
        await log.commit(box.decision(), None)
    assert log.health.for_good
    with pytest.raises(LogUnavailable):
        await log.commit(box.decision(), None)
    await log.close()


class Slow(FaultyDisk):
    """Counts who syncs at once; the thread takes its time once it is `slow`."""

    slow = False
    inside = most = 0

    def sync(self, fd: int) -> None:
        """See `Disk`."""
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.slow and threading.current_thread().name == "region-log":
            time.sleep(0.2)
        self.inside -= 1


@pytest.mark.usefixtures("quick")
async def test_two_batches_are_never_written_at_once(box: LogBox) -> None:
    """Three fall due in one turn: an entry, the timer of what nobody waits for, another entry."""
    disk = Slow()
    log, loop = await box.open(disk=disk), asyncio.get_running_loop()
    await one(log, box, 2 * writing.ENOUGH)
    await log.commit(box.decision("long"), None)
    await log.commit(box.decision("short"), None)
    await asyncio.sleep(3 * PATIENCE)
    found: list[asyncio.Future[Receipt]] = []

    def seen() -> None:
        entry = Entry("administration", "", box.clock.now, {"event": "seen"})
        found.append(asyncio.ensure_future(log.record(entry)))

    def last() -> None:
        log.note(box.outcome("long"))
        seen()

    log.note(box.outcome("short"))
    loop.call_later(PATIENCE / 2, seen)
    loop.call_later(2 * PATIENCE, last)
    disk.slow = True
    time.sleep(3 * PATIENCE)  # noqa: ASYNC251 - so that all three are due
    async with asyncio.timeout(10):
        while not found:  # noqa: ASYNC110 - not one turn more
            await asyncio.sleep(0)
        await found[0]
        await one(log, box)
        await asyncio.gather(*found)
        await log.close()
    assert disk.most == 1
    kinds = [shown.kind for shown in run_show(box.folder)]
    assert kinds.count("decision") == kinds.count("outcome")
