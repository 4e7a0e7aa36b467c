"""Changes planted in an account's CloudTrail, each with exactly what must be found of it."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import cast

from router.reconcile.model import Kind
from router.simulator.cloudtrail import Record, records
from tests.router.reconcile.made import LOCAL, SONNET, Asked, Made, Request, Traffic, Trail

Event = dict[str, object]
Expected = Counter[tuple[Kind, str]]


@dataclass
class Plants:
    """The events of a run, changed; `expected` counts (kind, record)."""

    traffic: Traffic
    random: Random
    events: list[Event] = field(default_factory=list)
    expected: Expected = field(default_factory=Counter)
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        told = [record for call in self.traffic.invocations for record in records(call)]
        self.events = [copy.deepcopy(dict(record)) for record in told]

    def expect(self, kind: Kind, record: str = "", count: int = 1) -> None:
        self.expected[kind, record] += count

    def victim(self, made: Made, stream: bool = False) -> tuple[Request, Asked]:
        """An answered attempt at an endpoint that no other plant has touched."""
        found = [
            (request, one)
            for request in self.traffic.requests
            for one in request.attempts
            if one.result == "ok"
            and one.made is made
            and one.stream is stream
            and one.call_id not in self.taken
        ]
        chosen = self.random.choice(found)
        self.taken.add(chosen[1].call_id)
        return chosen

    def call(self, one: Asked) -> Event:
        (found,) = [e for e in self.events if e.get("requestID") == one.call_id]
        return found

    def told(self, one: Asked) -> Event:
        """The part of a stream's second event that tells the region."""
        for event in self.events:
            details = cast("Event", event.get("serviceEventDetails", {}))
            if details.get("parentRequestId") == one.call_id:
                more = cast("Event", details["AdditionalEventData"])
                return cast("Event", more["additionalEntries"])
        raise AssertionError(one)

    def fresh(self, event: Event) -> Event:
        """The same under another event id."""
        made = copy.deepcopy(event)
        made["eventID"] = str(self.traffic.uuid())
        return made


def outside(plants: Plants) -> None:
    request, one = plants.victim(SONNET)
    plants.call(one)["additionalEventData"] = {"inferenceRegion": "us-east-1"}
    plants.expect(Kind.OUTSIDE, request.record)


def outside_in_a_stream(plants: Plants) -> None:
    request, one = plants.victim(SONNET, stream=True)
    plants.told(one)["inferenceRegion"] = "eu-west-2"
    plants.expect(Kind.OUTSIDE, request.record)


def drifted(plants: Plants) -> None:
    request, one = plants.victim(LOCAL)
    plants.call(one)["additionalEventData"] = {"inferenceRegion": "eu-north-1"}
    plants.expect(Kind.DRIFTED, request.record)


def bypass(plants: Plants) -> None:
    _, one = plants.victim(SONNET)
    event = plants.fresh(plants.call(one))
    event["requestID"] = str(plants.traffic.uuid())
    event["userIdentity"] = {"arn": "arn:aws:iam::123456789012:user/mallory"}
    plants.events.append(event)
    plants.expect(Kind.BYPASS)


def refused_bypass(plants: Plants) -> None:
    """It ran nowhere: counted, no finding."""
    bypass(plants)
    plants.events[-1]["errorCode"] = "AccessDeniedException"
    plants.expect(Kind.BYPASS, count=-1)


def reused(plants: Plants) -> None:
    """A bypass that hides behind the id of a call of ours."""
    request, one = plants.victim(SONNET)
    plants.events.append(plants.fresh(plants.call(one)))
    plants.expect(Kind.REUSED, request.record)


def wrong_model(plants: Plants) -> None:
    request, one = plants.victim(LOCAL, stream=True)
    plants.call(one)["requestParameters"] = {"modelId": "amazon.nova-pro-v1:0"}
    plants.expect(Kind.WRONG_MODEL, request.record)


def wrong_region(plants: Plants) -> None:
    """Called inside, yet not where the endpoint is called."""
    request, one = plants.victim(SONNET)
    plants.call(one)["awsRegion"] = "eu-west-3"
    plants.expect(Kind.WRONG_REGION, request.record)


def wrong_time(plants: Plants) -> None:
    request, one = plants.victim(LOCAL)
    event = plants.call(one)
    hour = (int(str(event["eventTime"])[11:13]) + 2) % 4 + 8
    event["eventTime"] = f"{str(event['eventTime'])[:11]}{hour:02d}{str(event['eventTime'])[13:]}"
    plants.expect(Kind.WRONG_TIME, request.record)


def missing(plants: Plants) -> None:
    request, one = plants.victim(LOCAL)
    plants.events.remove(plants.call(one))
    plants.expect(Kind.MISSING, request.record)


def conflict(plants: Plants) -> None:
    _, one = plants.victim(SONNET)
    other = copy.deepcopy(plants.call(one))
    other["requestID"] = str(plants.traffic.uuid())
    other["userIdentity"] = {"arn": "arn:aws:iam::123456789012:user/mallory"}
    plants.events.append(other)
    plants.expect(Kind.EVENT_CONFLICT)
    plants.expect(Kind.BYPASS)


def repeated(plants: Plants) -> None:
    """The same event, delivered twice: nothing."""
    _, one = plants.victim(SONNET)
    plants.events.append(copy.deepcopy(plants.call(one)))


EVENTS: tuple[Callable[[Plants], None], ...] = (
    outside, outside_in_a_stream, drifted, bypass, refused_bypass, reused, wrong_model,
    wrong_region, wrong_time, missing, conflict, repeated,
)  # fmt: skip


# -- files ---------------------------------------------------------------------------------


@dataclass
class Delivered:
    """A trail as it lies on disk, and the records that each log file is about."""

    trail: Trail
    plants: Plants
    random: Random
    touched: set[Path] = field(default_factory=set)

    def file(self) -> Path:
        chosen = self.random.choice([one for one in self.trail.files if one not in self.touched])
        self.touched.add(chosen)
        return chosen


def altered_file(found: Delivered) -> None:
    path = found.file()
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()) + b" ", mtime=0))
    found.plants.expect(Kind.FILE_ALTERED)


def unlisted_file(found: Delivered) -> None:
    path = found.file()
    stem, _, rest = path.name.rpartition("_")
    path.with_name(f"{stem}_x{rest[1:]}").write_bytes(gzip.compress(b'{"Records":[]}'))
    found.plants.expect(Kind.FILE_UNLISTED)


def duplicate_file(found: Delivered) -> None:
    """A second copy, in another folder: nothing."""
    path = found.file()
    copied = found.trail.folder / "again" / path.name
    copied.parent.mkdir(exist_ok=True)
    shutil.copy(path, copied)


def moved_file(found: Delivered) -> None:
    """Files in no order and under no day: nothing."""
    path = found.file()
    path.rename(found.trail.folder / path.name)


def lost_file(found: Delivered) -> None:
    """A log file is gone: so are the records of every call in it."""
    path = found.file()
    held = json.loads(gzip.decompress(path.read_bytes()))["Records"]
    path.unlink()
    found.plants.expect(Kind.FILE_MISSING)
    calls = {event.get("requestID") for event in held}
    for request in found.plants.traffic.requests:
        for one in request.attempts:
            if (
                one.result == "ok"
                and one.call_id in calls
                and one.call_id not in found.plants.taken
            ):
                found.plants.expect(Kind.MISSING, request.record)


FILES: tuple[Callable[[Delivered], None], ...] = (
    altered_file, unlisted_file, duplicate_file, moved_file,
)  # fmt: skip


def as_records(events: list[Event]) -> list[Record]:
    return cast("list[Record]", sorted(events, key=lambda one: str(one["eventTime"])))
