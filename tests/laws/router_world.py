"""One request through a whole router whose disk, clock, vetoes, endpoints and client misbehave by
a script, and what of the laws it broke.

Time is the script's. `Disk` says what is durable: what was written and then synced.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import orjson

from policies.model import Grant
from policies.timed import Timed, always, ending
from regions.places import Boundary
from router.app import SURFACES, Clocks, Router
from router.audit.disk import Disk
from router.audit.errors import AuditError
from router.audit.log import AuditLog
from router.audit.settings import LogSettings
from router.audit.verify import verify
from router.ids import Ids
from router.narrowing.vetoes import Vetoes
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts, header
from router.types import Arrival, Purpose
from tests.chaos import evidence
from tests.router.audit.faultydisk import QuickDisk
from tests.router.house import KEYS, Plan, signing_key, snapshot
from tests.router.scripted import (
    DONE,
    FakeExchange,
    Reply,
    answer,
    event,
    failure,
    lost,
    refused,
    silent,
    stream,
)

REGIONS = ("self:fra1", "self:par1", "self:iad1")
URLS = {region: f"http://{region[5:]}:80" for region in REGIONS}
START = 1_800_000_000.0
ANSWERS = ("ok", "ok", "refused", "503", "429", "500", "lost", "silent", "broken", "gone", "cancel")
TURNS = ("", "", "", "lapse", "veto endpoint", "veto place", "veto key", "lift", "log")


@dataclass(frozen=True)
class Scene:
    """A script. `sends[n]` is how the n-th call ends and what happens during it; `syncs[n]` what
    happens while the n-th entry is made durable; `until` when the grant lapses, in seconds."""

    sends: Sequence[tuple[str, str]]
    syncs: Sequence[str]
    until: float | None
    streamed: bool
    tenant: str = "world"


class WatchedDisk(QuickDisk):
    """Keeps what is durable; `during` is called while an entry is made so."""

    def __init__(self) -> None:
        super().__init__()
        self.durable: list[bytes] = []
        self.shared: dict[int, object] = {}
        self.broken = False
        self.during: list[str] = []
        self.act: Callable[[str], None] = lambda _what: None
        self._written: dict[int, list[bytes]] = {}

    def write(self, fd: int, data: bytes) -> None:
        if self.broken:
            raise OSError(errno.EIO, "broken")
        super().write(fd, data)
        self._written.setdefault(fd, []).append(data)

    def sync(self, fd: int) -> None:
        if self.during:
            self.act(self.during.pop(0))
        if self.broken:
            raise OSError(errno.EIO, "broken")
        lines = b"".join(self._written.pop(fd, []))
        for line in lines.split(b"\n"):
            if line.startswith(b'{"b":'):
                self.durable.append(line)
            elif line.startswith(b'{"i":'):
                shared = orjson.loads(line)
                self.shared[shared["i"]] = shared["v"]

    def _whole(self, value: object) -> object:
        """What stands for another value, by that value."""
        return (
            self.shared[value["@"]] if isinstance(value, dict) and list(value) == ["@"] else value
        )

    def entries(self, kind: str, request: str) -> list[dict[str, object]]:
        """Durable entries of one request, all its turns."""
        found = []
        for line in self.durable:
            entry = orjson.loads(line)
            if entry["k"] == kind and entry["r"].split(".")[0] == request:
                body = entry["b"]
                entry["b"] = {name: self._whole(value) for name, value in body.items()}
                found.append(entry)
        return found


@dataclass
class Stage:
    """The script as it runs: transport, clock and what was found wrong."""

    scene: Scene
    disk: WatchedDisk
    now: float = START
    router: Router | None = None
    exchange: FakeExchange | None = None
    task: asyncio.Task[None] | None = None
    asked: list[str] = field(default_factory=list)
    sent: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def act(self, what: str) -> None:
        """Something happens."""
        assert self.router is not None
        board = self.router.live.vetoes
        match what:
            case "lapse":
                self.now += 40
            case "veto endpoint":
                board.put("test", Vetoes(endpoints={"par1": "a test"}))
            case "veto place":
                board.put("test", Vetoes(places={"self:fra1": "a test", "self:iad1": "a test"}))
            case "veto key":
                board.put("test", Vetoes(keys={f"key-{self.scene.tenant}": "a test"}))
            case "lift":
                board.put("test", Vetoes())
            case "log":
                self.disk.broken = True
            case _:
                pass

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`. Judges laws 8 and 9 as the bytes would leave."""
        name = request.origin.host
        if request.method == "GET":  # probes and scrapes, which hold nothing of anybody
            return Reply(404)
        self.judge(name, (header(request.headers, b"x-request-id") or b"").decode())
        number = len(self.asked)
        self.asked.append(name)
        how, what = self.scene.sends[number % len(self.scene.sends)]
        await asyncio.sleep(0)
        self.act(what)
        if how in ("gone", "cancel"):
            self.leave(how)
            await asyncio.sleep(30)
        made = reply(how, self.scene.streamed)
        if isinstance(made, Exception):
            raise made
        return made

    def leave(self, how: str) -> None:
        """The client goes away, or the whole task is cancelled."""
        assert self.exchange is not None
        assert self.task is not None
        if how == "gone":
            self.exchange.leave()
        else:
            self.task.cancel()

    def judge(self, name: str, request: str) -> None:
        """Whether this attempt may be made now."""
        assert self.router is not None
        decisions = self.disk.entries("decision", request)
        if not decisions:
            self.wrong.append(f"law 9: {name} was asked before its decision was durable")
            return
        turn = decisions[-1]
        body = turn["b"]
        assert isinstance(body, dict)
        if name not in body["plan"]:
            self.wrong.append(f"law 8: {name} is not in the plan {body['plan']}")
        if self.now >= body.get("good_until", float("inf")):
            self.wrong.append(f"law 8: {name} was asked after `good_until`")
        if self.vetoed(name):
            self.wrong.append(f"law 8: {name} was asked in spite of a veto")
        self.announced(request, str(turn["r"]), name)

    def vetoed(self, name: str) -> bool:
        """Whether a veto stands against it; read here by names, not by the code under test."""
        assert self.router is not None
        now = self.router.live.vetoes.current
        key = f"key-{self.scene.tenant}"
        return name in now.endpoints or f"self:{name}" in now.places or key in now.keys

    def announced(self, request: str, turn: str, name: str) -> None:
        """From a turn's second attempt on it has an entry of its own."""
        before = self.sent.setdefault(turn, [])
        before.append(name)
        found = [one for one in self.disk.entries("attempt", request) if one["r"] == turn]
        told = [one["b"]["endpoint"] for one in found if isinstance(one["b"], dict)]
        for later in before[1:]:
            if later not in told:
                self.wrong.append(f"law 9: {later} was asked before its attempt entry was durable")
            else:
                told.remove(later)


def reply(how: str, streamed: bool) -> Reply | Exception:
    """What the endpoint does."""
    match how:
        case "refused":
            return refused()
        case "lost":
            return lost()
        case "silent":
            return silent()
        case "503" | "429" | "500":
            return failure(int(how))
        case "broken" if streamed:
            return stream(event(content="hi"), lost())
        case "broken":
            return Reply(200, chunks=[b"{"])
        case _:
            return stream(event(content="hi"), DONE) if streamed else answer()


@asynccontextmanager
async def staged(folder: Path, scene: Scene) -> AsyncIterator[Stage]:
    """A router on the stage."""
    stage = Stage(scene, WatchedDisk())
    made = snapshot(Plan(regions=REGIONS), URLS, folder)
    atlas = made.policy.atlas
    within: Timed[Boundary] = always(atlas.worldwide())
    if scene.until is not None:
        within = ending(atlas.worldwide(), START + scene.until, atlas.nowhere())
    tenants = {
        name: replace(one, grant=Grant.within(within)) if name == "world" else one
        for name, one in made.policy.tenants.items()
    }
    shot = replace(made, policy=replace(made.policy, tenants=tenants))
    loop = asyncio.get_running_loop()
    clocks = Clocks(lambda: stage.now, loop.time, os.urandom)
    settings = LogSettings(folder / "log", "eu-1", signing_key(folder))
    with patch("router.audit.log.LocalDisk", lambda: stage.disk):
        stage.router = await Router.open(shot, settings, clocks, stage)
        stage.disk.act, stage.disk.during = stage.act, list(scene.syncs)
        try:
            yield stage
        finally:
            with contextlib.suppress(AuditError):
                await stage.router.close(0.2)


async def run(folder: Path, scene: Scene) -> tuple[Stage, FakeExchange]:
    """Play one scene; afterwards the log is recovered if it failed, as a restart would."""
    async with staged(folder, scene) as stage:
        router = stage.router
        assert router is not None
        exchange = stage.exchange = asking(scene)
        stage.task = asyncio.create_task(router.pipeline.run(arrival(router, exchange, stage)))
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(stage.task, 20)
        await asyncio.sleep(0)
        live = router.live
        if live.inflight.keys or live.concurrency.total:
            stage.wrong.append("load of an ended request is still held")
        if not stage.disk.broken and live.log._intake.open:
            stage.wrong.append("law 10: an ended request is not settled")
    await restarted(folder)
    stage.wrong += judged(folder, stage, exchange)
    return stage, exchange


def asking(scene: Scene) -> FakeExchange:
    """The client's request."""
    body = {
        "model": "assistant",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": scene.streamed,
    }
    key = (b"authorization", b"Bearer " + KEYS[scene.tenant].encode())
    return FakeExchange(json.dumps(body).encode(), [key])


def arrival(router: Router, exchange: FakeExchange, stage: Stage) -> Arrival:
    """It arrives."""
    live = router.live
    now = asyncio.get_running_loop().time()
    clocks = Clocks(lambda: stage.now, lambda: now, os.urandom)
    return Arrival(
        exchange, Ids(clocks.wall, clocks.entropy)(), live.stamp(), now, now + 20, SURFACES[0],
        Purpose.INTERACTIVE, live.snapshot,
    )  # fmt: skip


async def restarted(folder: Path) -> None:
    """A new process opens the log, and stops."""
    settings = LogSettings(folder / "log", "eu-1", folder / "log.key")
    disk: Disk = QuickDisk()
    log = await AuditLog.open(settings, clock=lambda: START, entropy=os.urandom, disk=disk)
    await log.close()


def judged(folder: Path, stage: Stage, exchange: FakeExchange) -> Iterator[str]:
    """Laws 10 and 12 on the log that is left."""
    verdict = verify(folder / "log")
    if not verdict.ok:
        yield f"the log does not verify: {verdict.all_findings}"
    traces = evidence.traces(folder / "log")
    yield from (f"law 10: {one}" for one in evidence.unsettled(traces))
    for id_, trace in traces.items():
        told = [str(one["endpoint"]) for one in trace.tried]
        if trace.status != "unknown" and told != stage.sent.get(id_, []):
            yield f"law 12: {stage.sent.get(id_, [])} were asked, the outcome says {told}"
    if exchange.status == 200:
        yield from _placed(traces, stage, exchange.sent)


def _placed(
    traces: Mapping[str, evidence.Trace], stage: Stage, sent: Mapping[str, str]
) -> Iterator[str]:
    called = stage.asked[-1]
    said = (sent["x-domicile-endpoint"], sent["x-domicile-region"])
    if said != (called, f"self:{called}"):
        yield f"law 12: {said} is said, {called} was called"
    if int(sent["x-domicile-attempts"]) != len(list(stage.sent.values())[-1]):
        yield "law 12: the number of attempts is another"
    ended = [one for one in traces.values() if one.status not in ("unknown", "decided_again")]
    if any(one.outcomes[0].body.get("endpoint") != called for one in ended):
        yield "law 12: the log says another endpoint than was called"
