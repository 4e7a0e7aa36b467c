"""A sink follows the log without losing or, but for a crash, repeating anything."""

import json
from pathlib import Path

import pytest

from router.audit import following
from router.audit.following import FileSink, Follower, SinkRefused
from router.audit.layout import Folder, LogFolder
from tests.router.audit.asked import fill
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def log(box: LogBox) -> LogFolder:
    await fill(box)
    return Folder(box.folder).log("eu-1")


def size(log: LogFolder) -> int:
    return sum(one.path.read_bytes().count(b"\n") for one in log.segments())


def records(target: Path) -> list[str]:
    lines = target.read_text().splitlines() if target.exists() else []
    return [json.loads(line)["metadata"]["uid"] for line in lines]


async def test_small_turns_give_the_same_as_large_ones(
    log: LogFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FileSink(log, tmp_path / "whole", "ocsf", QuickDisk())
    progress = whole.turn(size(log))
    assert (progress.behind, progress.written) == (0, len(records(tmp_path / "whole")))
    monkeypatch.setattr(following, "TURN", 2)
    sink = FileSink(log, tmp_path / "small", "ocsf", QuickDisk())
    behind = [sink.turn(size(log)).behind for _ in range(20)]
    assert behind == sorted(behind, reverse=True)
    assert behind[-1] == 0
    assert records(tmp_path / "small") == records(tmp_path / "whole")
    assert sink.turn(size(log)).written == 0


async def test_only_what_is_durable_is_followed(log: LogFolder, tmp_path: Path) -> None:
    sink = FileSink(log, tmp_path / "a", "ocsf", QuickDisk())
    sink.turn(6)
    assert all(int(one.rpartition("/")[2]) < 6 for one in records(tmp_path / "a"))
    sink.turn(size(log))
    assert len(records(tmp_path / "a")) == len(set(records(tmp_path / "a")))


class FullDisk(QuickDisk):
    """Refuses to write to files called `full` while it is."""

    full = True

    def open(self, path: Path) -> int:
        if path.name == "full" and self.full:
            raise OSError(28, "no space left")
        return super().open(path)


async def test_a_full_disk_loses_nothing(log: LogFolder, tmp_path: Path) -> None:
    disk = FullDisk()
    sink = FileSink(log, tmp_path / "full", "ocsf", disk)
    for _ in range(3):
        with pytest.raises(OSError, match="no space"):
            sink.turn(size(log))
    disk.full = False
    FileSink(log, tmp_path / "other", "ocsf", disk).turn(size(log))
    sink.turn(size(log))
    assert records(tmp_path / "full") == records(tmp_path / "other")


async def test_a_sink_that_can_not_be_used_says_so(log: LogFolder, tmp_path: Path) -> None:
    with pytest.raises(SinkRefused, match="is no format"):
        FileSink(log, tmp_path / "a", "xml", QuickDisk())
    sink = FileSink(log, tmp_path / "a", "cef", QuickDisk())
    sink.turn(size(log))
    cursor = next((log.path / "exports").iterdir())
    cursor.write_text("-5")
    with pytest.raises(SinkRefused, match="is no index"):
        sink.turn(size(log))


async def test_a_request_goes_only_where_its_record_may_be_kept(
    log: LogFolder, tmp_path: Path
) -> None:
    every = Follower(log, "a", "ocsf", QuickDisk()).batch(size(log), 1 << 20)
    some = Follower(log, "b", "ocsf", QuickDisk(), "aws:eu-west-1").batch(size(log), 1 << 20)
    rows = [one for one in every.events if one.row is not None]
    # This log's decisions say nothing of where they may be kept: that is nowhere.
    told = [one for one in rows if one.kind != "misdirected"]
    assert len(told) > 3
    assert some.withheld == len(told)
    assert len(some.events) == len(every.events) - len(told)
    assert some.last == every.last
