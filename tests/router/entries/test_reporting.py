"""An auditor's report over HTTP: what the key says binds, the reading is logged first."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest

from router.audit.anchors.keeper import AnchorKeeper
from router.audit.note import Checkpoint
from router.entries import reporting
from router.entries.auditing import Auditor, auditor
from router.entries.reporting import Reporting, run
from router.errors import RequestError
from tests.router.entries.test_auditing import filled, get
from tests.router.reloading import CLINIC, World

DAY = "2026-11-29/2026-12-01"


def holder(world: World, key: str) -> Auditor:
    keys = world.router.live.snapshot.keys
    [found] = [one for one in keys.holders if one.key == key]
    return auditor(found, world.router.live.snapshot.policy)


class Ran:
    """Stands for the command: writes `text`, or nothing, and keeps what it was given."""

    def __init__(self, text: str | None, entries: Callable[[], int]) -> None:
        self.text = text
        self.entries = entries
        self.given: list[str] = []
        self.place = Path()
        self.before = 0
        self.go = asyncio.Event()
        self.go.set()
        self.began = asyncio.Event()

    async def __call__(self, command: Sequence[str], place: Path) -> str:
        self.given, self.place, self.before = list(command), place, self.entries()
        self.began.set()
        await self.go.wait()
        [out] = [word.removeprefix("--out=") for word in command if word.startswith("--out=")]
        if self.text is None:
            return f"error: can't read `{command[-1]}/x`"
        Path(out).write_text(self.text)
        return ""


def readings(world: World) -> int:
    return sum(one.body["event"] == "read" for one in world.entries("administration"))


async def test_a_tenants_auditor_gets_that_tenant_and_no_other(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        own = await get(world, "dom-own", "/domicile/v1/audit/report", period=DAY)  # type: ignore[arg-type]
        assert own.status_code == 200, own.text
        assert own.json()["about"] == "tenant clinic"
        assert own.json()["facts"]["requests answered"] == 2
        assert own.json()["facts"]["requests refused"] == 1
        assert "shop" not in own.text
        assert own.json()["evidence"]
        assert str(tmp_path) not in own.text, "where the log lies is the operator's business"
        assert own.headers["content-security-policy"].startswith("sandbox")
        [read] = [one for one in world.entries("administration") if one.body["event"] == "read"]
        assert (read.body["what"], read.body["by"]) == ("report", "own")


async def test_the_command_is_bound_by_the_key(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        ran = Ran("{}", lambda: readings(world))
        found = Reporting(world.router.live, ran)
        expected = {
            "own": ["--view-from=DE", "--tenant=clinic"],
            "all": ["--view-from=DE"],
            "far": ["--view-from=US", "--tenant=clinic"],
            "nowhere": ["--view-from=", "--tenant=clinic"],
        }
        for number, (key, words) in enumerate(expected.items(), 1):
            assert await found.report(holder(world, key), DAY, "UTC", "json") == b"{}"
            bound = [word for word in ran.given if word.startswith(("--view", "--tenant"))]
            assert bound == words
            assert (ran.given[-1], ran.place) == ("log", tmp_path)
            assert ran.before == number, "the reading is in the log before anything is read"
        assert not list(tmp_path.glob("**/report.json"))


async def test_the_report_says_how_old_the_anchors_are(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        now = [100.0]

        async def takes(head: Checkpoint) -> None:
            now[0] += 1

        keeper = AnchorKeeper({"w.example.org": takes, "s3": takes}, lambda: now[0])
        world.router.live.anchors = keeper
        ran = Ran("x", lambda: readings(world))
        reporting_ = Reporting(world.router.live, ran)
        await reporting_.report(holder(world, "all"), DAY, "UTC", "json")
        assert "--anchor-told=w.example.org (late) took nothing yet" in ran.given
        head = await world.router.live.log.tick()
        if head is None:
            world.now[0] += 120
            head = await world.router.live.log.tick()
        assert head is not None
        await keeper.publish(head)
        now[0] += 7
        await reporting_.report(holder(world, "all"), DAY, "UTC", "json")
        [told] = [one for one in ran.given if one.startswith("--anchor-told=s3")]
        assert f"(ok) took {head.size} lines, " in told


@pytest.mark.parametrize("period", ["soon", "--tenant=shop", "2026-11 --despite", "x" * 70])
async def test_what_is_no_period_starts_nothing(tmp_path: Path, period: str) -> None:
    async with filled(tmp_path) as world:
        ran = Ran("{}", lambda: readings(world))
        found = Reporting(world.router.live, ran)
        with pytest.raises(RequestError, match="period"):
            await found.report(holder(world, "own"), period, "UTC", "json")
        with pytest.raises(RequestError, match="time zone"):
            await found.report(holder(world, "own"), DAY, "../../etc/passwd", "json")
        assert not ran.given
        assert readings(world) == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "`query.period` is missing"),
        ({"period": DAY, "form": "doc"}, "`query.form` can't be read: input should be 'html'"),
        ({"period": "x" * 81}, "`query.period` can't be read: string should have at most 80"),
    ],
)
async def test_what_was_asked_wrongly_is_named(
    tmp_path: Path, asked: dict[str, int], said: str
) -> None:
    async with filled(tmp_path) as world:
        answer = await get(world, "dom-own", "/domicile/v1/audit/report", **asked)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith(said)
        assert readings(world) == 0


async def test_one_at_a_time_and_nothing_without_the_log(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        ran = Ran("{}", lambda: readings(world))
        ran.go.clear()
        found = Reporting(world.router.live, ran)
        first = asyncio.ensure_future(found.report(holder(world, "own"), DAY, "UTC", "json"))
        await ran.began.wait()
        with pytest.raises(RequestError, match="another report"):
            await found.report(holder(world, "own"), DAY, "UTC", "json")
        ran.go.set()
        assert await first == b"{}"
        ran.given = []
        world.router.live.log._failure = "disk full"
        with pytest.raises(RequestError, match="can't be written"):
            await found.report(holder(world, "own"), DAY, "UTC", "json")
        assert not ran.given
        world.router.live.log._failure = ""


async def test_a_failure_does_not_tell_where_the_log_lies(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        found = Reporting(world.router.live, Ran(None, lambda: 0))
        with pytest.raises(RequestError, match="no report could be made") as told:
            await found.report(holder(world, "own"), DAY, "UTC", "pdf")
        assert str(tmp_path) not in told.value.message


async def test_only_auditors(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        found: httpx.Response = await get(
            world, CLINIC, "/domicile/v1/audit/report", period=DAY  # type: ignore[arg-type]
        )  # fmt: skip
        assert (found.status_code, found.json()["error"]["code"]) == (403, "role_not_allowed")


async def test_a_command_is_ended_when_it_takes_too_long_or_nobody_waits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = tmp_path / "pid"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    monkeypatch.setattr(reporting, "LONGEST", 2.0)
    with pytest.raises(TimeoutError):
        await run([sys.executable, "-c", code], tmp_path)
    assert not Path(f"/proc/{mark.read_text()}").exists()
    said = "import sys; print('one'); sys.exit('error: two')"
    assert await run([sys.executable, "-c", said], tmp_path) == "error: two"
    assert await run([sys.executable, "-c", "pass"], tmp_path) == "exit code 0"
