"""LookupEvents on a real socket: signed, paced, paged, and only as far as it must."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from router.providers.base import AwsKeys
from router.reconcile import live
from router.reconcile.live import PACE, Lookup, NotLooked, draw, look
from router.reconcile.model import Facts, Kind, Source
from router.reconcile.run import Asked, reconcile
from router.transport.client import HttpTransport
from tests.rawserver import Line, RawServer
from tests.router.reconcile.made import LOCAL, SONNET, Traffic, facts, logged
from tests.router.reconcile.planted import Plants, outside
from tests.router.reconcile.test_judging import PAIR, SENT
from tests.router.reconcile.test_run import NOW, found


class Service:
    """CloudTrail's LookupEvents over these events, so many to a page."""

    def __init__(self, events: list[dict[str, object]], size: int = 2) -> None:
        self.size = size
        self.events = events
        self.asked: list[dict[str, object]] = []
        self.heads: list[bytes] = []
        self.failures: list[tuple[bytes, str]] = []

    async def __call__(self, line: Line) -> None:
        while True:
            head, _, body = (await line.request()).partition(b"\r\n\r\n")
            self.heads.append(head)
            if self.failures:
                status, kind = self.failures.pop(0)
                await line.json(json.dumps({"__type": f"com.amazonaws#{kind}"}).encode(), status)
                continue
            asked = json.loads(body)
            self.asked.append(asked)
            begin = int(asked.get("NextToken", 0))
            page = self.events[begin : begin + self.size]
            told: dict[str, object] = {
                "Events": [{"CloudTrailEvent": json.dumps(one)} for one in page]
            }
            if begin + self.size < len(self.events):
                told["NextToken"] = str(begin + self.size)
            await line.json(json.dumps(told).encode())


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@asynccontextmanager
async def looking(service: Service) -> AsyncIterator[tuple[Lookup, Time]]:
    async with RawServer(service) as server:
        transport, clock = HttpTransport(), Time()
        loop = asyncio.get_running_loop()
        lookup = Lookup(
            transport, AwsKeys("AKID", "very-secret"), lambda: 1_800_000_000.0, loop.time,
            clock.sleep, f"http://127.0.0.1:{server.port}",
        )  # fmt: skip
        try:
            yield lookup, clock
        finally:
            await transport.close()


async def test_pages_until_it_is_there(tmp_path: Path) -> None:
    events: list[dict[str, object]] = [{"requestID": f"r-{n}"} for n in range(7)]
    service = Service(events)
    sent = replace(SENT, call_id="r-3", began=1_800_000_000_000_000, ended=1_800_000_002_000_000)
    async with looking(service) as (lookup, clock):
        drawn = await look(lookup, [(sent, PAIR.facts)])
    assert (len(drawn.events), set(drawn.call_ids)) == (4, {"r-3"})
    assert drawn.notices == ()
    assert [one.get("NextToken") for one in service.asked] == [None, "2"]
    first = service.asked[0]
    assert (first["StartTime"], first["EndTime"]) == (1_799_999_940, 1_800_000_063)
    assert first["LookupAttributes"] == [
        {"AttributeKey": "EventSource", "AttributeValue": "bedrock.amazonaws.com"}
    ]
    head = service.heads[0]
    assert b"x-amz-target: com.amazonaws.cloudtrail" in head
    assert b"/eu-west-1/cloudtrail/aws4_request" in head
    assert b"very-secret" not in head
    assert len(clock.slept) == 1
    assert 0 < clock.slept[0] <= PACE
    assert json.loads(drawn.document())["Events"][3] == {"CloudTrailEvent": json.dumps(events[3])}


async def test_one_that_is_nowhere_is_missing_and_one_given_up_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = Service([{"requestID": f"r-{n}"} for n in range(7)])
    sent = replace(SENT, call_id="nowhere")
    async with looking(service) as (lookup, _):
        assert (await look(lookup, [(sent, PAIR.facts)])).call_ids == {"nowhere"}
        monkeypatch.setattr(live, "PAGES", 2)
        given_up = await look(lookup, [(sent, PAIR.facts)])
    assert given_up.call_ids == frozenset()
    assert "not among the first 2 pages" in given_up.notices[0]


async def test_busy_is_asked_again_and_refused_is_not() -> None:
    service = Service([])
    service.failures = [(b"400 Bad Request", "ThrottlingException")] * 2
    async with looking(service) as (lookup, clock):
        assert (await look(lookup, [(SENT, PAIR.facts)])).events == ()
        assert [round(one) for one in clock.slept] == [2, 4]
        service.failures = [(b"400 Bad Request", "ThrottlingException")] * 4
        with pytest.raises(NotLooked, match="too busy"):
            await look(lookup, [(SENT, PAIR.facts)])
        service.failures = [(b"400 Bad Request", "AccessDeniedException")]
        with pytest.raises(NotLooked, match="eu-west-1: 400 AccessDeniedException"):
            await look(lookup, [(SENT, PAIR.facts)])
        lookup.credential = None
        with pytest.raises(NotLooked, match="no credential"):
            await look(lookup, [(SENT, PAIR.facts)])
        lookup.url = "https://evil.example"
        with pytest.raises(NotLooked, match="no https host of cloudtrail"):
            await look(lookup, [(SENT, PAIR.facts)])


def test_only_answered_calls_of_bedrock_are_drawn() -> None:
    other = Facts("vllm", "self", "m", "self:fra1", True)
    unsure = replace(SENT, surely=False)
    found = [
        (SENT, PAIR.facts),
        (SENT, other),
        (unsure, PAIR.facts),
        (replace(SENT, call_id=""), PAIR.facts),
    ]
    assert draw(found, 9, Random(1)) == [(SENT, PAIR.facts)]
    many = [(replace(SENT, call_id=f"r-{n}"), PAIR.facts) for n in range(50)]
    times = [0] * 50
    for seed in range(400):
        for sent, _ in draw(many, 5, Random(seed)):
            times[int(sent.call_id[2:])] += 1
    assert sum(times) == 2000
    assert min(times) > 15


async def test_a_sample_is_reconciled_and_only_it_counts(tmp_path: Path) -> None:
    traffic = Traffic(3, 30, endpoints=(SONNET, LOCAL))
    folder = await logged(traffic, tmp_path)
    plants = Plants(traffic, Random(3))
    outside(plants)
    ((kind, record),) = plants.expected
    (victim,) = plants.taken
    kept = sorted({str(e["requestID"]) for e in plants.events if "requestID" in e} - {victim})[:3]
    path = tmp_path / "lookup.json"
    told: list[dict[str, object]] = [
        e for e in plants.events if e.get("requestID") in {victim, *kept}
    ]
    path.write_text(json.dumps({"Events": [{"CloudTrailEvent": json.dumps(e)} for e in told]}))
    sample = frozenset({victim, "gone"})
    asked = Asked(folder, {Source.CLOUDTRAIL: [path]}, NOW, facts=facts, sample=sample)
    result = await asyncio.to_thread(reconcile, asked)
    assert found(result) == {(kind, record): 1} == {(Kind.OUTSIDE, record): 1}
    assert result.coverage[0].attempts == 1
