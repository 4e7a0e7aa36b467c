"""Which entries share a batch, and so a sync."""

import asyncio
import threading

from router.audit.commands import run_show
from router.audit.log import PATIENCE
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
