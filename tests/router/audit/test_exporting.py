"""Each format says what it must, escapes what it must, and names the record."""

import json
from dataclasses import replace

import pytest

from router.audit.exporting import FORMATS, Event, cef, events, ocsf, otel
from router.audit.layout import Folder
from router.audit.paging import page
from tests.router.audit.asked import fill
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def found(box: LogBox) -> list[Event]:
    await fill(box)
    return list(events(page(Folder(box.folder).log("eu-1"), -1, 1 << 40)))


def request(found: list[Event], id_: str) -> Event:
    return next(one for one in found if one.row is not None and one.row.request == id_)


async def test_one_event_per_request_that_ended_and_none_for_heartbeats(found: list[Event]) -> None:
    ended = [one.row.request for one in found if one.row is not None]
    assert ended == ["q1", "q2", "q3", "q4", "q5"]
    others = {one.kind for one in found if one.row is None}
    assert others == {"administration", "key"}
    assert len({one.record for one in found}) == len(found)


async def test_ocsf_has_what_the_class_requires(found: list[Event]) -> None:
    for event in found:
        told = json.loads(ocsf(event))
        assert (told["category_uid"], told["class_uid"], told["type_uid"]) == (6, 6003, 600399)
        assert {"actor", "api", "src_endpoint", "cloud", "metadata", "time"} <= told.keys()
        assert told["metadata"]["uid"] == event.record
        assert told["api"]["operation"]
        assert told["cloud"]["provider"]
    good = json.loads(ocsf(request(found, "q2")))
    assert (good["status_id"], good["cloud"]["region"]) == (1, "self:par1")
    assert good["actor"]["user"]["uid"] == "shop-1"
    assert good["unmapped"]["rules"] == ["any"]
    several = json.loads(ocsf(request(found, "q1")))
    assert several["cloud"]["region"] == "not observable"
    assert several["unmapped"]["places"] == ["self:fra1", "self:par1"]
    refused = json.loads(ocsf(request(found, "q4")))
    assert (refused["status_id"], refused["status_code"]) == (2, "no_grant")


async def test_cef_is_one_line_with_escapes(found: list[Event]) -> None:
    event = request(found, "q1")
    assert event.row is not None
    nasty = replace(event, row=replace(event.row, outcome="a|b\\c\nd", tenant="x=y\\z\nw"))
    line = cef(nasty).decode()
    assert "\n" not in line
    head = line.split("rt=")[0]
    assert head == "CEF:0|Domicile|Domicile|1|outcome|a\\|b\\\\c d|6|"
    assert "cs1=x\\=y\\\\z\\nw cs1Label=tenant" in line
    assert f"externalId={event.record}" in line
    assert "attributes" in line
    assert "data_class\\=health" in line


async def test_otel_is_a_logs_request(found: list[Event]) -> None:
    told = json.loads(otel(request(found, "q2")))
    (record,) = told["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    facts = {one["key"]: one["value"] for one in record["attributes"]}
    assert facts["cloud.region"] == {"stringValue": "self:par1"}
    assert facts["gen_ai.usage.input_tokens"] == {"intValue": "3"}
    assert facts["gen_ai.operation.name"] == {"stringValue": "chat"}
    assert facts["gen_ai.provider.name"] == {"stringValue": "self"}
    assert facts["domicile.rules"] == {"arrayValue": {"values": [{"stringValue": "any"}]}}
    assert record["timeUnixNano"].endswith("000")
    assert (record["severityText"], record["body"]) == ("INFO", {"stringValue": "ok"})


async def test_every_event_has_a_line_in_every_format(found: list[Event]) -> None:
    for format_ in FORMATS.values():
        for event in found:
            line = format_(event)
            assert line
            assert b"\n" not in line
