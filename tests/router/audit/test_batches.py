from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.audit.batches import http_body, syslog_frames
from router.audit.exporting import FORMATS, Event, events
from router.audit.layout import Folder
from router.audit.paging import page
from tests.router.audit.asked import fill
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def found(box: LogBox) -> list[Event]:
    await fill(box)
    return list(events(page(Folder(box.folder).log("eu-1"), -1, 1 << 62)))


def unframed(data: bytes) -> list[bytes]:
    """A receiver's reading of octet counting."""
    messages = []
    while data:
        length, _, rest = data.partition(b" ")
        messages.append(rest[: int(length)])
        assert len(messages[-1]) == int(length)
        data = rest[int(length) :]
    return messages


async def test_otlp_is_one_request_of_many_records(found: list[Event]) -> None:
    kind, body = http_body("otel", found)
    assert kind == "application/json"
    (resource,) = json.loads(body)["resourceLogs"]
    (scope,) = resource["scopeLogs"]
    singles = [json.loads(FORMATS["otel"](one))["resourceLogs"][0] for one in found]
    assert scope["logRecords"] == [s["scopeLogs"][0]["logRecords"][0] for s in singles]
    assert all(one["resource"] == resource["resource"] for one in singles)


@pytest.mark.parametrize(
    ("format_", "kind"), [("ocsf", "application/x-ndjson"), ("cef", "text/plain; charset=utf-8")]
)
async def test_lines(found: list[Event], format_: str, kind: str) -> None:
    told, body = http_body(format_, found)
    assert told == kind
    assert body.splitlines() == [FORMATS[format_](one) for one in found]
    assert body.endswith(b"\n")


@pytest.mark.parametrize("format_", sorted(FORMATS))
async def test_syslog_messages_hold_the_event_whole(found: list[Event], format_: str) -> None:
    messages = unframed(syslog_frames(format_, found))
    assert len(messages) == len(found)
    for message, event in zip(messages, found, strict=True):
        head, text = message.split(b" - ", 2)[0::2]
        assert text == FORMATS[format_](event)
        priority, when, host, name = head.decode().split(" ")
        assert priority == (f"<{13 * 8 + (6 if event.good else 4)}>1")
        assert (host, name, when[-1]) == (event.log, "domicile", "Z")


async def test_a_line_end_in_an_event_ends_no_message(found: list[Event], tmp_path: Path) -> None:
    odd = Event("veto", "eu-1", 1, 1_800_000_000_000_000, None, {"reason": "a\n<14>1 forged"})
    (message,) = unframed(syslog_frames("cef", [odd]))
    assert message.count(b"forged") == 1
    assert http_body("cef", [odd])[1].count(b"\n") == 1
    assert syslog_frames("cef", []) == b""
