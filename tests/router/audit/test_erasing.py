import errno

import pytest

from router.audit.commands import run_show
from router.audit.erasing import erase, remains
from router.audit.errors import LogUnavailable
from router.audit.layout import Folder
from router.audit.openings import Erased, Scope, read
from tests.router.audit.faultydisk import FaultyDisk, fails
from tests.router.audit.logbox import START, LogBox


async def test_an_erasure_is_in_the_log_before_it_is_done(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    log.openings.key("clinic", START).content("r1", b"text")
    path = Folder(box.folder).log("eu-1").openings
    disk.fault = fails("replace", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        await erase(log, Scope(tenant="clinic"), "boss", START)
    assert len(read(path)) == 1
    disk.fault = lambda _name, _number: None
    assert (await erase(log, Scope(tenant="clinic"), "boss", START)).keys == 1
    assert read(path) == []
    await log.close()
    said = [one.body for one in run_show(box.folder, kind="administration")]
    events = [body for body in said if body["event"] == "erase"]
    assert (
        events
        == [{"event": "erase", "by": "boss", "keys": 1, "openings": 0, "tenant": "clinic"}] * 2
    )  # asked twice, said twice


async def test_nothing_is_erased_that_the_log_can_not_say(box: LogBox) -> None:
    disk = FaultyDisk()
    log = await box.open(disk=disk)
    log.openings.key("clinic", START).content("r1", b"text")
    disk.fault = fails("sync", errno.EIO)
    with pytest.raises(LogUnavailable):
        await erase(log, Scope(), "boss", START)
    assert len(read(Folder(box.folder).log("eu-1").openings)) == 1
    await log.close()


async def test_what_remains_is_said(box: LogBox) -> None:
    other = await box.open("us-1")
    other.openings.key("clinic", START).content("r1", b"text")
    await other.close()
    folder = Folder(box.folder)
    by_request = " ".join(remains(Erased(0, 1, 3), Scope(request="r1"), folder, {"eu-1"}))
    assert "key of the tenant's period" in by_request
    assert "other logs in this folder: us-1" in by_request
    by_time = " ".join(remains(Erased(1, 1, 3), Scope(before=START), folder, {"us-1"}))
    assert "3 keys of periods that had not ended" in by_time
    assert "other logs" not in by_time
    assert "backups" in by_time
