"""Another number of workers loses no veto, and leaves no log of the dead open."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from router.audit.disk import LocalDisk
from router.audit.entry import Entry
from router.audit.errors import LogLocked
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.roster import read_roster
from router.audit.settings import LogSettings
from router.audit.verify import verify
from router.narrowing.veto_file import Drift, Imposed, State, VetoFile, VetoFileBroken
from router.settings.handover import hand_over, inherit, joined, logs_of, settle_log, worker_log
from tests.router.house import signing_key

FLOOD = Imposed(what="place", name="aws:eu-west-1", reason="flood", by="boss", at=1.5)
ILL = Imposed(what="endpoint", name="a", reason="ill", by="local", at=2.0)


def drift(at: float) -> Drift:
    return Drift(endpoint="a", at=at, process=["unknown"], retain=[], operate=["any"])


def settings(folder: Path, name: str) -> LogSettings:
    key = folder / "log.key"
    return LogSettings(folder / "log", name, key if key.exists() else signing_key(folder))


async def written(folder: Path, name: str) -> AuditLog:
    return await AuditLog.open(settings(folder, name), clock=time.time, entropy=os.urandom)


def states(folder: Path, *names: str) -> list[State]:
    return [VetoFile.open(folder / "log", name, LocalDisk()).state for name in names]


def save(folder: Path, name: str, state: State) -> None:
    VetoFile.open(folder / "log", name, LocalDisk()).save(state)


async def test_the_logs_of_a_router_are_told_from_anothers(tmp_path: Path) -> None:
    for name in (
        "eu-1",
        worker_log("eu-1", 2),
        "eu-1.w",
        "eu-1.w0",
        "eu-12",
        worker_log("eu-12", 1),
    ):
        await (await written(tmp_path, name)).close()
    assert logs_of(tmp_path / "log", "eu-1") == ["eu-1", "eu-1.w2"]


async def test_from_one_process_to_two_and_back_nothing_widens(tmp_path: Path) -> None:
    await (await written(tmp_path, "eu-1")).close()
    save(tmp_path, "eu-1", State(imposed=(FLOOD,), drifts=(drift(1.0),)))
    workers = ("eu-1.w1", "eu-1.w2")
    await hand_over(settings(tmp_path, "eu-1"), "eu-1", workers)
    assert states(tmp_path, *workers) == [State(imposed=(FLOOD,), drifts=(drift(1.0),))] * 2
    assert states(tmp_path, "eu-1") == [State()]
    for name in workers:
        await (await written(tmp_path, name)).close()
    save(tmp_path, "eu-1.w2", State(imposed=(FLOOD, ILL)))
    await hand_over(settings(tmp_path, "eu-1"), "eu-1", ("eu-1",))
    [one] = states(tmp_path, "eu-1")
    assert {(i.what, i.name) for i in one.imposed} == {("place", FLOOD.name), ("endpoint", "a")}
    assert one.drifts == (drift(1.0),)


async def test_what_was_lifted_before_does_not_come_back(tmp_path: Path) -> None:
    """From one to two, lifted there, and back to one: the old file said otherwise."""
    await (await written(tmp_path, "eu-1")).close()
    save(tmp_path, "eu-1", State(imposed=(FLOOD,)))
    await hand_over(settings(tmp_path, "eu-1"), "eu-1", ("eu-1.w1",))
    await (await written(tmp_path, "eu-1.w1")).close()
    save(tmp_path, "eu-1.w1", State())
    await hand_over(settings(tmp_path, "eu-1"), "eu-1", ("eu-1",))
    assert states(tmp_path, "eu-1") == [State()]


async def test_a_dead_workers_log_is_settled_and_the_roster_has_its_stop(tmp_path: Path) -> None:
    log = await written(tmp_path, "eu-1.w3")
    digest = sha256(b"{}").hexdigest()
    await log.snapshot(digest, b"{}")
    await log.record(Entry("decision", "req-1", time.time(), {"snapshot": digest}))
    await log._release()  # as the kernel does at a kill: no stop, no outcome
    assert await settle_log(settings(tmp_path, "eu-1.w3"))
    lines, _ = read_roster(Folder(tmp_path / "log"))
    assert [one.event for one in lines] == ["start", "start", "stop"]
    verdict = verify(tmp_path / "log")
    assert verdict.ok, verdict.all_findings
    assert not await settle_log(settings(tmp_path, "eu-1.w3"))  # it has stopped in good order
    assert not await settle_log(settings(tmp_path, "eu-1.w9"))  # and this one never was


async def test_a_log_that_somebody_writes_is_not_taken_over(tmp_path: Path) -> None:
    log = await written(tmp_path, "eu-1.w3")
    with pytest.raises(LogLocked):
        await hand_over(settings(tmp_path, "eu-1"), "eu-1", ("eu-1",))
    await log.close()


async def test_a_state_file_that_cannot_be_read_stops_the_start(tmp_path: Path) -> None:
    await (await written(tmp_path, "eu-1.w1")).close()
    (tmp_path / "log" / "eu-1.w1" / "vetoes.json").write_text("{")
    with pytest.raises(VetoFileBroken):
        await hand_over(settings(tmp_path, "eu-1"), "eu-1", ("eu-1",))


def test_a_file_that_has_it_all_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, "eu-1.w1", State(imposed=(FLOOD,)))

    def refuse(*args: object) -> Callable[[], None]:
        raise AssertionError(args)

    monkeypatch.setattr(VetoFile, "save", refuse)
    inherit(tmp_path / "log", ["eu-1.w1"], ["eu-1.w1"])


def test_of_two_words_about_one_thing_ones_own_counts() -> None:
    other = FLOOD.model_copy(update={"reason": "fire"})
    both = joined(
        State(imposed=(FLOOD,), drifts=(drift(2.0),)),
        State(imposed=(other, ILL), drifts=(drift(1.0),)),
    )
    assert set(both.imposed) == {FLOOD, ILL}
    assert both.drifts == (drift(2.0),)
