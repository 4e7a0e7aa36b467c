"""Bedrock calls out of CloudTrail records: each once, with the region it ran in.

1. Only an `AwsApiCall` is a call. A streaming call has a second event, an `AwsServiceEvent`
   of the same name, which tells the region and names its call.
2. Files overlap and come in any order: an event counts once, by its id, and the two events
   of a stream meet whichever came first.
3. A call that was refused before a model saw it (`errorCode`) ran nowhere.
4. Everything is kept in a private database that spills to disk, so memory stays bounded.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from router.assess.records import Record, mapping, text

SOURCES: Final = frozenset({"bedrock.amazonaws.com", "bedrock-mantle.amazonaws.com"})
NAMES: Final = frozenset(
    {
        "Converse",
        "ConverseStream",
        "CreateInference",
        "InvokeModel",
        "InvokeModelWithBidirectionalStream",
        "InvokeModelWithResponseStream",
        "StartAsyncInvoke",
        "CreateModelInvocationJob",
    }
)
# Refused by the front door: no model was asked.
REFUSED: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "ResourceNotFoundException",
        "ServiceQuotaExceededException",
        "ThrottlingException",
        "UnrecognizedClientException",
        "ValidationException",
    }
)
_SCHEMA: Final = """
create table calls (event text primary key, request text, source text, model text,
                    service text, region text, refused integer) without rowid;
create table streams (request text primary key, source text, region text) without rowid;
create index by_request on calls (request);
"""
_GROUPED: Final = """
select c.source, c.model, c.service,
       coalesce(nullif(c.region, ''), nullif(s.region, ''), '') as ran, count(*)
from calls c left join streams s on s.request = c.request and c.request != ''
where not c.refused group by 1, 2, 3, 4 order by 1, 2, 4
"""
_ORPHANS: Final = """
select source, region, count(*) from streams
where request not in (select request from calls) group by 1, 2 order by 1, 2
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Calls alike: the same source region, model and service, run in the same region.

    `region` is empty where no record tells; regions stand without their `aws:`.
    """

    source: str
    model: str
    mantle: bool
    region: str
    calls: int


class Calls:
    """Takes records in any order and gives counts; `close` forgets them."""

    __slots__ = ("_store", "events", "repeated", "unread")

    def __init__(self) -> None:
        # An empty name is a private file, deleted on close, used once the cache is full.
        self._store = sqlite3.connect("")
        self._store.executescript("pragma journal_mode = off; pragma synchronous = off;" + _SCHEMA)
        self.events = 0
        self.repeated = 0
        self.unread = 0

    def close(self) -> None:
        """Forget everything."""
        self._store.close()

    def add(self, record: Record) -> None:
        """Take one record; those that are no inference are counted and left out."""
        self.events += 1
        if record.get("eventSource") not in SOURCES or record.get("eventName") not in NAMES:
            return
        kind = record.get("eventType")
        if kind == "AwsApiCall":
            self._add_call(record)
        elif kind == "AwsServiceEvent":
            self._add_stream(record)
        else:
            self.unread += 1

    def _add_call(self, record: Record) -> None:
        error = text(record.get("errorCode"))
        parameters = mapping(record.get("requestParameters"))
        mantle = text(record.get("eventSource")).startswith("bedrock-mantle")
        row = (
            _identity(record),
            text(record.get("requestID")),
            text(record.get("awsRegion")),
            text(parameters.get("modelId") or parameters.get("model")),
            "mantle" if mantle else "",
            text(mapping(record.get("additionalEventData")).get("inferenceRegion")),
            error in REFUSED,
        )
        done = self._store.execute("insert or ignore into calls values (?,?,?,?,?,?,?)", row)
        self.repeated += done.rowcount == 0

    def _add_stream(self, record: Record) -> None:
        details = mapping(record.get("serviceEventDetails"))
        more = mapping(details.get("AdditionalEventData") or details.get("additionalEventData"))
        entries = mapping(more.get("additionalEntries")) or more
        request = text(details.get("parentRequestId"))
        if not request:
            self.unread += 1
            return
        row = (request, text(record.get("awsRegion")), text(entries.get("inferenceRegion")))
        done = self._store.execute("insert or ignore into streams values (?,?,?)", row)
        self.repeated += done.rowcount == 0

    def groups(self) -> Iterator[Group]:
        """The calls that ran, by source, model and region."""
        for source, model, service, region, count in self._store.execute(_GROUPED):
            yield Group(source, model, service == "mantle", region, count)

    def orphans(self) -> Iterator[Group]:
        """Second events of streams whose call is in none of the files: no calls, yet evidence."""
        for source, region, count in self._store.execute(_ORPHANS):
            yield Group(source, "", False, region, count)

    @property
    def refused(self) -> int:
        """Calls that ran nowhere."""
        found: int = self._store.execute("select count(*) from calls where refused").fetchone()[0]
        return found


def _identity(record: Record) -> str:
    """An event's id; a record without one is known by its content."""
    known = text(record.get("eventID"))
    if known:
        return known
    content = json.dumps(record, sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
