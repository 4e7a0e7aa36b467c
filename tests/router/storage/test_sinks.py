"""Collectors on real sockets: everything arrives, whatever they do in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from router.audit.entry import Interned, Json
from router.audit.following import Follower, Progress
from router.audit.layout import Folder, LogFolder
from router.storage import sinks
from router.storage.sinks import RemoteSink, SinkFailed, http_sink, syslog_sink
from router.transport.client import HttpTransport
from router.transport.messages import Origin
from router.transport.oneway import OneWay
from tests.rawserver import Line, RawServer
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import LogBox
from tests.router.audit.test_batches import unframed


@pytest.fixture
def box(tmp_path: Path) -> LogBox:
    return LogBox(tmp_path)


async def filled(
    box: LogBox, count: int = 30, kept: str = "aws:eu-west-1"
) -> tuple[LogFolder, int]:
    """A log of so many requests that may be kept in one place; and its size."""
    log = await box.open()
    allowed: dict[str, Json] = {"process": [kept], "retain": [kept]}
    shared = Interned({"who": {"tenant": "clinic", "key": "k"}, "allowed": allowed})
    for _ in range(count):
        await box.request(log, shared)
    head = await log.tick()
    size = log.head.size if log.head is not None else 0
    await log.close()
    assert head is None or head.size <= size
    return Folder(box.folder).log("eu-1"), size


class Collector:
    """Keeps the records of what it takes; `answers` are what it does with each request."""

    def __init__(self, *answers: Callable[[Line, bytes], object]) -> None:
        self.answers = list(answers)
        self.taken: list[str] = []
        self.heads: list[bytes] = []

    async def __call__(self, line: Line) -> None:
        while True:
            head, _, body = (await line.request()).partition(b"\r\n\r\n")
            self.heads.append(head)
            answer = self.answers.pop(0) if self.answers else take
            if answer is take:
                self.taken += records(body)
                await line.json(b"{}")
            else:
                done = answer(line, body)
                if asyncio.iscoroutine(done):
                    await done


def records(body: bytes) -> list[str]:
    return [json.loads(row)["metadata"]["uid"] for row in body.splitlines()]


def take(line: Line, body: bytes) -> object: ...


def status(code: int, *more: bytes) -> Callable[[Line, bytes], object]:
    async def answer(line: Line, body: bytes) -> None:
        head = b"HTTP/1.1 %d x\r\ncontent-length: 0\r\n%b\r\n" % (code, b"".join(more))
        await line.say(head)

    return answer


def reset(line: Line, body: bytes) -> object:
    line.reset()
    raise ConnectionError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def following(
    log: LogFolder, collector: Collector, format_: str = "ocsf", region: str = "aws:eu-west-1"
) -> AsyncIterator[tuple[RemoteSink, Clock]]:
    clock = Clock()
    async with RawServer(collector) as server:
        transport = HttpTransport()
        url = f"http://127.0.0.1:{server.port}/v1/logs?x=1"
        loop = asyncio.get_running_loop()
        more = ((b"authorization", b"Bearer t"),)
        deliver = http_sink(url, Origin.parse(url), format_, more, transport, loop.time)
        follower = Follower(log, "c", format_, QuickDisk(), region)
        try:
            yield RemoteSink(follower, deliver, clock), clock
        finally:
            await transport.close()


async def until_done(sink: RemoteSink, clock: Clock, size: int) -> list[Progress]:
    """Turns as the loop makes them, over failures."""
    found: list[Progress] = []
    for _ in range(50):
        try:
            found.append(await sink.turn(size))
        except SinkFailed:
            clock.now += 3600
            continue
        if found[-1].behind == 0:
            return found
    raise AssertionError(found)


async def test_batches_are_posted_until_nothing_is_left(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, size = await filled(box)
    monkeypatch.setattr(sinks, "FEW", 7)
    monkeypatch.setattr(sinks, "TURNS", 3)
    collector = Collector()
    async with following(log, collector) as (sink, clock):
        turns = await until_done(sink, clock, size)
        again = await sink.turn(size)
    assert sum(one.written for one in turns) == len(collector.taken) == len(set(collector.taken))
    assert len(turns) > 2
    assert all(one.written <= 21 for one in turns)
    assert (again.written, again.behind) == (0, 0)
    assert collector.heads[0].startswith(b"POST /v1/logs?x=1 HTTP/1.1\r\n")
    assert b"authorization: Bearer t" in collector.heads[0]
    assert b"content-type: application/x-ndjson" in collector.heads[0]


async def test_an_outage_loses_nothing_and_repeats_no_more_than_was_in_doubt(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, size = await filled(box)
    monkeypatch.setattr(sinks, "FEW", 10)
    whole = Collector()
    async with following(log, whole) as (sink, clock):
        await until_done(sink, clock, size)
    for cursor in (log.path / "exports").iterdir():
        cursor.unlink()

    async def took_it_and_died(line: Line, body: bytes) -> None:
        sick.taken += records(body)
        line.reset()
        raise ConnectionError

    sick = Collector(status(503), take, reset, status(429), took_it_and_died, take, status(400))
    async with following(log, sick) as (sink, clock):
        await until_done(sink, clock, size)
    assert list(dict.fromkeys(sick.taken)) == whole.taken
    assert len(sick.taken) - len(whole.taken) <= 10


async def test_after_a_crash_it_goes_on_where_it_was(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, size = await filled(box)
    monkeypatch.setattr(sinks, "FEW", 10)
    monkeypatch.setattr(sinks, "TURNS", 1)
    collector = Collector()
    async with following(log, collector) as (sink, _):
        await sink.turn(size)
        await sink.turn(size)
    before = len(collector.taken)
    async with following(log, collector) as (sink, clock):
        await until_done(sink, clock, size)
    assert before > 0
    assert len(collector.taken) == len(set(collector.taken)) > before


async def test_one_that_fails_is_left_alone_for_longer_and_longer(box: LogBox) -> None:
    log, size = await filled(box, 3)
    collector = Collector(*(status(500) for _ in range(20)))
    pauses = []
    async with following(log, collector) as (sink, clock):
        for _ in range(9):
            with pytest.raises(SinkFailed, match="answered 500"):
                await sink.turn(size)
            asked, since = len(collector.heads), clock.now
            while len(collector.heads) == asked:
                clock.now += 0.5
                with pytest.raises(SinkFailed):
                    await sink.turn(size)
            pauses.append(clock.now - since)
            collector.answers.append(status(500))
    assert pauses[0] == 1.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 60.0


async def test_what_it_asked_for_is_kept(box: LogBox) -> None:
    log, size = await filled(box, 3)
    collector = Collector(status(503, b"retry-after: 30\r\n"))
    async with following(log, collector) as (sink, clock):
        for at in (0, 10, 29):
            clock.now = at
            with pytest.raises(SinkFailed):
                await sink.turn(size)
        assert len(collector.heads) == 1
        clock.now = 30
        assert (await sink.turn(size)).behind == 0


LARGE = {
    "nginx": b"HTTP/1.1 413 x\r\ncontent-length: 0\r\n\r\n",
    "OpenTelemetry": b"HTTP/1.1 400 x\r\ncontent-length: 28\r\n\r\nhttp: request body too large",
}


def within(limit: int, collector: Collector, refusal: bytes = LARGE["nginx"]) -> None:
    """A collector, or what stands before it, that takes bodies up to so many bytes, as nginx
    does, whose limit is 1 MiB."""

    async def answer(line: Line, body: bytes) -> None:
        collector.answers.append(answer)
        if len(body) > limit:
            await line.say(refusal)
            return
        collector.taken += records(body)
        await line.json(b"{}")

    collector.answers.append(answer)


@pytest.mark.parametrize("name", LARGE)
async def test_one_that_takes_only_little_at_once_gets_everything(box: LogBox, name: str) -> None:
    """The same body was offered to it for ever: see open-telemetry/opentelemetry-collector#14298,
    #15177."""
    log, size = await filled(box, 60)
    whole = Collector()
    async with following(log, whole) as (sink, clock):
        await until_done(sink, clock, size)
    for cursor in (log.path / "exports").iterdir():
        cursor.unlink()
    small = Collector()
    within(4000, small, LARGE[name])
    async with following(log, small) as (sink, clock):
        await until_done(sink, clock, size)
    assert small.taken == whole.taken
    assert clock.now == 0  # none of it was a failure to be waited for


async def test_one_that_takes_not_even_a_line_is_told(box: LogBox) -> None:
    log, size = await filled(box, 3)
    collector = Collector()
    within(10, collector)
    async with following(log, collector) as (sink, clock):
        for _ in range(3):
            with pytest.raises(SinkFailed, match="413, too large with a line of the log; raise"):
                await sink.turn(size)
            clock.now += 3600
    assert not collector.taken


async def test_records_that_otlp_rejects_are_offered_again(box: LogBox) -> None:
    log, size = await filled(box, 3)

    def partial(count: object) -> Callable[[Line, bytes], object]:
        told = json.dumps({"partialSuccess": {"rejectedLogRecords": count}}).encode()
        return lambda line, body: line.json(told)

    collector = Collector(partial("2"), partial(1), partial(0))
    async with following(log, collector, "otel") as (sink, clock):
        for told in ("rejected 2 of", "rejected 1 of"):
            with pytest.raises(SinkFailed, match=told):
                await sink.turn(size)
            clock.now += 3600
        assert (await sink.turn(size)).behind == 0
    assert len(collector.heads) == 3


async def test_what_may_not_be_kept_there_never_leaves(box: LogBox) -> None:
    log, size = await filled(box, 5, kept="aws:eu-central-1")
    collector = Collector()
    async with following(log, collector) as (sink, _):
        progress = await sink.turn(size)
    assert (progress.withheld, progress.behind) == (5, 0)
    assert progress.written == len(collector.taken) > 0  # starts and stops are nobody's
    shown = {one: index for index, one in enumerate(collector.taken)}
    assert len(shown) == progress.written


async def test_syslog(box: LogBox, monkeypatch: pytest.MonkeyPatch) -> None:
    log, size = await filled(box)
    monkeypatch.setattr(sinks, "FEW", 20)
    got: list[bytes] = []

    async def collect(line: Line) -> None:
        data = await line.reader.read()
        if line.number == 1:
            line.reset()  # it died with what it had
            return
        got.extend(unframed(data))

    loop, clock = asyncio.get_running_loop(), Clock()
    async with RawServer(collect) as server:
        origin = Origin("http", "127.0.0.1", server.port)
        deliver = syslog_sink("syslog", origin, "cef", OneWay(), loop.time)
        sink = RemoteSink(Follower(log, "s", "cef", QuickDisk()), deliver, clock)
        turns = await until_done(sink, clock, size)
    names = [text.split(b"externalId=")[1].split(b" ")[0] for text in got]
    assert len(names) == len(set(names)) >= 30
    assert sum(one.written for one in turns) < len(names)  # the failed turn told nothing


async def test_nobody_listens(box: LogBox) -> None:
    log, size = await filled(box, 1)
    loop = asyncio.get_running_loop()
    deliver = syslog_sink("s", Origin("http", "127.0.0.1", 1), "cef", OneWay(), loop.time)
    sink = RemoteSink(Follower(log, "s", "cef", QuickDisk()), deliver, Clock())
    with pytest.raises(SinkFailed, match="`s`: connecting"):
        await sink.turn(size)
    assert not (log.path / "exports").exists()


def test_answers_that_reject_nothing() -> None:
    assert sinks._rejected(b"") == sinks._rejected(b"nonsense") == sinks._rejected(b"[]") == 0
    assert sinks._rejected(b'{"partialSuccess": {"errorMessage": "warn"}}') == 0
