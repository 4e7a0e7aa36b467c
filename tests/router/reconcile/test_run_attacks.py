"""Crafted records that would hide a bypass, and honest ones that look like one."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from router.reconcile.model import Kind, Result, Source
from router.reconcile.run import Asked, reconcile
from tests.router.reconcile import planted
from tests.router.reconcile.made import (
    FRA,
    LOCAL,
    SONNET,
    Made,
    Traffic,
    Trail,
    facts,
    keys,
    logged,
)
from tests.router.reconcile.planted import Event, Plants
from tests.router.reconcile.test_run import NOW

MALLORY = {"arn": "arn:aws:iam::123456789012:user/mallory"}


async def answered(seed: int, root: Path, *made: Made) -> tuple[Path, Plants]:
    """A log whose every attempt was answered, so that nothing is paired by time."""
    traffic = Traffic(seed, 30, endpoints=made or (SONNET, LOCAL))
    for request in traffic.requests:
        request.attempts = request.attempts[-1:]
    return await logged(traffic, root), Plants(traffic, Random(seed))


async def told(
    folder: Path, plants: Plants, root: Path, given: dict[Source, list[Path]] | None = None
) -> Result:
    trail = Trail(root / "trail", planted.as_records(plants.events)).write()
    sources = {Source.CLOUDTRAIL: [trail.folder], **(given or {})}
    asked = Asked(folder, sources, NOW, keys=keys(), facts=facts)
    return await asyncio.to_thread(reconcile, asked)


def kinds(result: Result) -> Counter[Kind]:
    return Counter(one.kind for one in result.findings)


def foreign(plants: Plants, **changes: object) -> Event:
    """A call like one of ours that isn't."""
    event = plants.fresh(plants.call(plants.victim(SONNET)[1]))
    return {**event, "requestID": str(plants.traffic.uuid()), **changes}


def invocation(event: Event, record: str = "") -> Event:
    """The same call as Bedrock's invocation log has it."""
    where = cast("Event", event.get("additionalEventData") or {})
    made: Event = {
        "schemaType": "ModelInvocationLog", "timestamp": event["eventTime"],
        "region": event["awsRegion"], "requestId": event["requestID"],
        "modelId": cast("Event", event["requestParameters"])["modelId"],
        "identity": event["userIdentity"], **where,
    }  # fmt: skip
    return {**made, "requestMetadata": {"domicile-record": record}} if record else made


def invoked(plants: Plants, path: Path, *more: Event) -> Path:
    by_call = {
        one.call_id: request.record
        for request in plants.traffic.requests
        for one in request.attempts
    }
    calls = [e for e in plants.events if e["eventType"] == "AwsApiCall"]
    rows = [invocation(e, by_call.get(str(e["requestID"]), "")) for e in calls]
    path.write_text("\n".join(json.dumps(row) for row in [*rows, *more]))
    return path


async def test_a_borrowed_record_in_the_metadata_is_a_claim(tmp_path: Path) -> None:
    folder, plants = await answered(1, tmp_path)
    path = invoked(plants, tmp_path / "inv.jsonl")
    assert (await told(folder, plants, tmp_path, {Source.BEDROCK: [path]})).findings == []
    victim = plants.traffic.requests[0]
    event = foreign(plants, userIdentity=MALLORY)
    plants.events.append(event)
    invoked(plants, path)
    spoofed = path.read_text().splitlines()
    spoofed[-1] = json.dumps(invocation(event, victim.record))
    path.write_text("\n".join(spoofed))
    shutil.rmtree(tmp_path / "trail")
    result = await told(folder, plants, tmp_path, {Source.BEDROCK: [path]})
    assert kinds(result) == {Kind.BYPASS: 1, Kind.CLAIMED: 1}
    assert {one.source for one in result.findings} == {Source.CLOUDTRAIL, Source.BEDROCK}


async def test_a_bypass_under_the_router_s_own_role_is_found(tmp_path: Path) -> None:
    """Nothing is paired by time with attempts whose calls are known."""
    folder, plants = await answered(2, tmp_path)
    plants.events.append(foreign(plants))
    assert kinds(await told(folder, plants, tmp_path)) == {Kind.BYPASS: 1}


async def test_every_try_of_another_client_is_a_call(tmp_path: Path) -> None:
    """A client library tries again under another request id; throttled tries ran nowhere."""
    folder, plants = await answered(3, tmp_path)
    throttled = {"userIdentity": MALLORY, "errorCode": "ThrottlingException"}
    plants.events += [foreign(plants, **throttled), foreign(plants, **throttled)]
    plants.events += [foreign(plants, userIdentity=MALLORY) for _ in range(2)]
    result = await told(folder, plants, tmp_path)
    assert kinds(result) == {Kind.BYPASS: 2}
    assert result.calls["cloudtrail"]["refused"] == 2


async def test_two_routers_in_one_account(tmp_path: Path) -> None:
    one, plants = await answered(4, tmp_path / "one")
    two, others = await answered(5, tmp_path / "two")
    plants.events += others.events
    result = await told(one, plants, tmp_path)
    assert kinds(result) == {Kind.BYPASS: len(others.traffic.invocations)}
    shutil.rmtree(tmp_path / "trail")
    (two / "eu-1").rename(one / "eu-2")
    shutil.copytree(two / "snapshots", one / "snapshots", dirs_exist_ok=True)
    assert kinds(await told(one, plants, tmp_path)) == {}


@pytest.mark.parametrize(("minutes", "expected"), [(4, {}), (-4, {}), (9, {Kind.WRONG_TIME: 1})])
async def test_clocks_may_be_apart_by_so_much(
    tmp_path: Path, minutes: int, expected: dict[Kind, int]
) -> None:
    folder, plants = await answered(6, tmp_path)
    event = plants.call(plants.victim(LOCAL)[1])
    clock = str(event["eventTime"])
    hour, minute = int(clock[11:13]), int(clock[14:16]) + minutes
    hour, minute = hour + minute // 60, minute % 60
    event["eventTime"] = f"{clock[:11]}{hour:02d}:{minute:02d}{clock[16:]}"
    assert kinds(await told(folder, plants, tmp_path)) == expected


async def test_a_profile_s_call_that_is_logged_where_it_ran(tmp_path: Path) -> None:
    """Not as AWS documents it: said as that, and judged by where it says it was."""
    folder, plants = await answered(7, tmp_path)
    request, one = plants.victim(SONNET)
    event = plants.call(one)
    event["awsRegion"] = "us-east-1"
    del event["additionalEventData"]
    result = await told(folder, plants, tmp_path)
    assert kinds(result) == {Kind.WRONG_REGION: 1, Kind.OUTSIDE: 1}
    assert {one.record for one in result.findings} == {request.record}
    assert set(result.to_quarantine) == {"sonnet-eu"}


async def test_events_of_global_services_and_repeated_deliveries_are_nothing(
    tmp_path: Path,
) -> None:
    folder, plants = await answered(8, tmp_path)
    base = plants.events[0]
    for service in ("iam", "sts", "signin"):
        other = {**plants.fresh(base), "eventSource": f"{service}.amazonaws.com"}
        plants.events += [{**other, "awsRegion": "us-east-1"}] * 2
    plants.events += copy.deepcopy(plants.events)  # a second trail of the same account
    result = await told(folder, plants, tmp_path)
    assert result.findings == []
    assert result.calls["cloudtrail"]["repeated"] == len(plants.events) // 2 - 6


async def test_a_stream_s_two_events_that_disagree(tmp_path: Path) -> None:
    folder, plants = await answered(9, tmp_path)
    _, one = plants.victim(SONNET, stream=True)
    plants.call(one)["additionalEventData"] = {"inferenceRegion": "us-east-1"}
    result = await told(folder, plants, tmp_path)
    assert kinds(result) == {Kind.EVENT_CONFLICT: 1, Kind.OUTSIDE: 1}


async def test_a_place_told_in_one_source_only_is_found(tmp_path: Path) -> None:
    folder, plants = await answered(10, tmp_path)
    path = invoked(plants, tmp_path / "inv.jsonl")
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    next(row for row in rows if "inferenceRegion" in row)["inferenceRegion"] = "eu-west-2"
    path.write_text("\n".join(map(json.dumps, rows)))
    result = await told(folder, plants, tmp_path, {Source.BEDROCK: [path]})
    assert [(one.kind, one.source) for one in result.findings] == [(Kind.OUTSIDE, Source.BEDROCK)]


def bomb(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"Records": [' + b" " * (64 << 20)))


def garbage(path: Path) -> None:
    path.write_bytes(b"\x1f\x8b" + bytes(range(256)))


def huge_record(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"Records": [{"a": "' + b"x" * (9 << 20)))


def deep(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"Records": [' + b"[" * (1 << 20)))


@pytest.mark.parametrize("spoil", [bomb, garbage, huge_record, deep])
async def test_a_hostile_file_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None]
) -> None:
    monkeypatch.setattr("router.assess.records.MAX_FILE", 16 << 20)
    folder, plants = await answered(11, tmp_path)
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    spoil(tmp_path / "trail" / "123456789012_CloudTrail_eu-west-1_20270115T0805Z_evil.json.gz")
    asked = Asked(folder, {Source.CLOUDTRAIL: [tmp_path / "trail"]}, NOW, keys=keys(), facts=facts)
    result = await asyncio.to_thread(reconcile, asked)
    assert kinds(result) == {Kind.UNREADABLE: 1, Kind.FILE_UNLISTED: 1}
    assert all(one.where is not None and "evil" in one.where.file for one in result.findings)


async def test_the_log_of_a_fleet_that_was_bypassed(tmp_path: Path) -> None:
    """Reused ids, unknown ids, and the name that canaries bear."""
    folder, plants = await answered(12, tmp_path, FRA)
    ids = [request.id for request in plants.traffic.requests]
    line = "INFO 01-15 08:30:00 [logger.py:40] Received request chatcmpl-{}: prompt: 'x'"
    path = tmp_path / "fra.log"
    more = [ids[0], "2f958238775949b7b02fb311fd07b471", str(plants.traffic.uuid()), "probe"]
    path.write_text("\n".join(line.format(one) for one in [*ids, *more]))
    asked = Asked(folder, {Source.VLLM: [path]}, NOW, facts=facts, fleets={path: "fra"}, skew=9e3)
    result = await asyncio.to_thread(reconcile, asked)
    assert kinds(result) == {Kind.REUSED: 1, Kind.BYPASS: 2}
    assert result.calls["vllm-logs"]["probe"] == 1
    for more, code in (["probe"], 4), ([], 0):
        path.write_text("\n".join(line.format(one) for one in [*ids, *more]))
        result = await asyncio.to_thread(reconcile, asked)
        assert (kinds(result), result.exit_code) == ({}, code), "anybody can name a call so"
    lost = ids[:-1]
    path.write_text("\n".join(line.format(one) for one in lost))
    result = await asyncio.to_thread(reconcile, asked)
    assert kinds(result) == {Kind.MISSING: 1}
