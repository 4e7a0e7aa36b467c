"""The same records as people get them: packed, in parts, twice, out of order, in other zones."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from router.reconcile.model import Kind, Result, Source
from router.reconcile.run import Asked, reconcile
from tests.router.audit.logbox import START
from tests.router.reconcile.made import (
    EU,
    GEMINI,
    GPT,
    SONNET,
    Traffic,
    facts,
    logged,
)
from tests.router.reconcile.made import (
    Asked as Sent,
)

NOW = round((START + 6 * 3600) * 1e6)
Row = dict[str, object]
WHERE = {Source.BEDROCK: SONNET, Source.AZURE: GPT, Source.GCP: GEMINI}
STAMP = {Source.BEDROCK: "timestamp", Source.AZURE: "time", Source.GCP: "timestamp"}


def stamp(at: float, hours: int = 0) -> str:
    zone = timezone(timedelta(hours=hours)) if hours else UTC
    return datetime.fromtimestamp(at, zone).isoformat(timespec="microseconds")


def bedrock(one: Sent) -> Row:
    refused = {"errorCode": "ThrottlingException"} if one.error else {"inferenceRegion": EU[0]}
    return {
        "schemaType": "ModelInvocationLog", "timestamp": stamp(one.at + 0.2),
        "region": one.made.facts.source.partition(":")[2], "requestId": one.call_id,
        "modelId": one.made.facts.model, "identity": {"arn": "arn:aws:iam::1:role/router"},
        **refused,
    }  # fmt: skip


def azure(one: Sent) -> Row:
    return {
        "time": stamp(one.at + 0.2), "category": "RequestResponse", "location": "swedencentral",
        "operationName": "ChatCompletions_Create", "correlationId": one.call_id,
        "resultSignature": "429" if one.error else "200",
        "properties": json.dumps({"modelDeploymentName": one.made.facts.model}),
    }  # fmt: skip


def gcp(one: Sent) -> Row:
    name = f"projects/p/locations/europe-west4/publishers/google/models/{one.made.facts.model}"
    return {
        "insertId": f"i-{one.call_id}", "timestamp": stamp(one.at + 0.2),
        "protoPayload": {
            "serviceName": "aiplatform.googleapis.com", "resourceName": name,
            "methodName": "google.cloud.aiplatform.v1.PredictionService.GenerateContent",
            "status": {"code": 8} if one.error else {},
            "authenticationInfo": {"principalEmail": "router@p.iam.gserviceaccount.com"},
        },
    }  # fmt: skip


ROWS: dict[Source, Callable[[Sent], Row]] = {
    Source.BEDROCK: bedrock, Source.AZURE: azure, Source.GCP: gcp,
}  # fmt: skip


def lines(folder: Path, rows: Sequence[Row], source: Source) -> None:
    (folder / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def packed(folder: Path, rows: Sequence[Row], source: Source) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "all.json.gz").write_bytes(gzip.compress(text.encode()))


def in_parts_twice_and_backwards(folder: Path, rows: Sequence[Row], source: Source) -> None:
    """As hourly files of two overlapping exports, the newest first."""
    for number in range(3):
        part = [*rows[number::3], *rows[number::2]][::-1]
        below = folder / f"h={number}"
        below.mkdir()
        packed(below, part, source) if number else lines(below, part, source)


def document(folder: Path, rows: Sequence[Row], source: Source) -> None:
    """As command lines print them."""
    (folder / "all.json").write_text("\ufeff" + json.dumps(list(rows), indent=2))


def other_zones(folder: Path, rows: Sequence[Row], source: Source) -> None:
    name = STAMP[source]
    hours = (2, -8, 9)
    moved = [
        {**row, name: stamp(datetime.fromisoformat(str(row[name])).timestamp(), hours[at % 3])}
        for at, row in enumerate(rows)
    ]
    lines(folder, moved, source)


def answered_by_the_api(folder: Path, rows: Sequence[Row], source: Source) -> None:
    """As `filter-log-events`, a query in Log Analytics, and `gcloud logging read` answer."""
    if source is Source.BEDROCK:
        events = [{"timestamp": 1, "eventId": "3", "message": json.dumps(row)} for row in rows]
        told = json.dumps({"events": events, "searchedLogStreams": [], "nextToken": "x"}, indent=4)
    elif source is Source.AZURE:
        table = [
            {
                "TimeGenerated": row["time"], "Category": row["category"], "TenantId": "x",
                "OperationName": row["operationName"], "CorrelationId": row["correlationId"],
                "ResultSignature": row["resultSignature"],
                "properties_s": row["properties"],
            }
            for row in rows
        ]  # fmt: skip
        told = json.dumps(table, indent=2)
    else:
        told = json.dumps(list(rows)[::-1], indent=2)
    (folder / "answer.json").write_text(told)


def subscribed(folder: Path, rows: Sequence[Row], source: Source) -> None:
    """As a subscription of CloudWatch and a diagnostic setting to an event hub deliver them."""
    if source is Source.BEDROCK:
        events = [{"id": "3", "timestamp": 1, "message": json.dumps(row)} for row in rows]
        told: Row = {
            "messageType": "DATA_MESSAGE",
            "owner": "1",
            "logGroup": "g",
            "logEvents": events,
        }
        lines(folder, [told], source)
    else:
        lines(folder, [{"records": list(rows)}] if source is Source.AZURE else rows, source)


FORMS = (
    lines, packed, in_parts_twice_and_backwards, document, other_zones, answered_by_the_api,
    subscribed,
)  # fmt: skip


async def told(
    root: Path,
    source: Source,
    form: Callable[[Path, Sequence[Row], Source], None],
    spoil: Callable[[list[Row]], object] = lambda rows: None,
) -> Result:
    traffic = Traffic(4, 30, endpoints=(WHERE[source],))
    folder = await logged(traffic, root)
    rows = [ROWS[source](one) for one in traffic.attempts if one.listed]
    spoil(rows)
    given = root / "given"
    given.mkdir()
    form(given, rows, source)
    asked = Asked(folder, {source: [given]}, NOW, facts=facts)
    return await asyncio.to_thread(reconcile, asked)


def summary(result: Result) -> tuple[object, ...]:
    return result.coverage, dict(result.kinds), result.exit_code


@pytest.mark.parametrize("form", FORMS[1:])
@pytest.mark.parametrize("source", WHERE)
async def test_one_traffic_has_one_result(
    tmp_path: Path, source: Source, form: Callable[[Path, Sequence[Row], Source], None]
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    plain = await told(tmp_path / "a", source, lines)
    assert [str(one) for one in plain.findings] == []
    (covered,) = plain.coverage
    assert covered.attempts > 29
    result = await told(tmp_path / "b", source, form)
    assert [str(one) for one in result.findings] == []
    assert summary(result) == summary(plain)


@pytest.mark.parametrize("source", WHERE)
async def test_an_export_of_something_else_is_named(tmp_path: Path, source: Source) -> None:
    """Else all that it tells is that every record is missing."""

    def metrics(rows: list[Row]) -> None:
        rows[:] = [{"time": str(row.get("time")), "metricName": "tokens"} for row in rows]

    result = await told(tmp_path, source, lines, metrics)
    assert any(f"{source}: nothing that was given is a call" in one for one in result.notices)


@pytest.mark.parametrize("source", [Source.BEDROCK, Source.AZURE])
async def test_a_record_without_its_id_is_no_proof_of_the_answer(
    tmp_path: Path, source: Source
) -> None:
    """One is missing, and one is a call that no attempt explains: neither stands for the other."""

    def unnamed(rows: list[Row]) -> None:
        row = next(row for row in rows if "429" not in str(row) and "errorCode" not in row)
        for name in ("requestId", "correlationId"):
            row.pop(name, None)

    result = await told(tmp_path, source, lines, unnamed)
    if source is Source.BEDROCK:
        assert {one.kind for one in result.findings} == {Kind.MISSING, Kind.BYPASS}
    else:
        assert (result.exit_code, result.findings) == (4, [])  # paired by time: a presumption
