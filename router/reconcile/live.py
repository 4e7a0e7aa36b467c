"""Samples from CloudTrail itself: LookupEvents, where no files are at hand.

AWS allows two such calls a second, keeps 90 days, and shows management events only: enough to try
a few attempts, never all. So: 1. draw some answered attempts; 2. for each, ask its region for
Bedrock's events around its time, page by page, until it is there; 3. what comes is reconciled like
a file, for the drawn ones. An attempt whose pages had to be given up is drawn no more, and said.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import orjson

from router.assess.records import mapping, text
from router.audit.errors import AuditError
from router.providers.aws import base_url, signed
from router.providers.base import Credential, Misconfigured
from router.reconcile.model import Facts, Sent, Source
from router.transport.messages import (
    Origin,
    OutboundRequest,
    Timeouts,
    Transport,
    TransportError,
    read_body,
)

TARGET: Final = "com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents"
PACE: Final = 0.5
"""Seconds between two calls, by AWS's limit per account and region."""
PAGES: Final = 20
AROUND: Final = 60.0
_SECONDS: Final = 15.0
_LIMIT: Final = 16 << 20
_TRIES: Final = 4
_BUSY: Final = ("ThrottlingException", "InternalFailure", "ServiceUnavailable")


class NotLooked(AuditError):
    """CloudTrail could not be asked; names region and AWS's own error type."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a sample came to: events as CloudTrail's own texts, and the attempts they are for."""

    events: tuple[str, ...]
    call_ids: frozenset[str]
    notices: tuple[str, ...] = ()

    def document(self) -> bytes:
        """The events as `assess` and `reconcile` read them."""
        return orjson.dumps({"Events": [{"CloudTrailEvent": one} for one in self.events]})


@dataclass(slots=True)
class Lookup:
    """Asks LookupEvents. `wall` gives epoch seconds, `loop` monotonic ones.

    `url` replaces the public host; only a loopback or private address of CloudTrail may.
    """

    transport: Transport
    credential: Credential | None
    wall: Callable[[], float]
    loop: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    url: str = ""
    _last: float = field(default=-PACE)

    async def events(self, region: str, since: float, until: float) -> AsyncIterator[list[str]]:
        """Bedrock's events of a region between two times, newest first, by pages.

        Raises:
            NotLooked: it could not be asked.
        """
        asked: dict[str, object] = {
            "LookupAttributes": [
                {"AttributeKey": "EventSource", "AttributeValue": "bedrock.amazonaws.com"}
            ],
            "StartTime": int(since),
            "EndTime": int(until) + 1,
            "MaxResults": 50,
        }
        while True:
            page = await self._page(region, asked)
            found = page.get("Events")
            rows = found if isinstance(found, list) else []
            yield [text(mapping(one).get("CloudTrailEvent")) for one in rows]
            token = page.get("NextToken")
            if not isinstance(token, str) or not token:
                return
            asked["NextToken"] = token

    async def _page(self, region: str, asked: dict[str, object]) -> dict[str, object]:
        for number in range(_TRIES):
            await self._paced(2.0**number if number else 0.0)
            status, body = await self._asked(region, orjson.dumps(asked))
            try:
                told: object = orjson.loads(body)
            except orjson.JSONDecodeError:
                told = None
            if status == 200 and isinstance(told, dict):
                return told
            kind = text(mapping(told).get("__type")).rpartition("#")[2]
            if kind not in _BUSY:
                raise NotLooked(f"LookupEvents in {region}: {status} {kind}".rstrip())
        raise NotLooked(f"LookupEvents in {region}: too busy, {_TRIES} times")

    async def _paced(self, pause: float) -> None:
        wait = max(self._last + PACE - self.loop(), pause)
        if wait > 0:
            await self.sleep(wait)
        self._last = self.loop()

    async def _asked(self, region: str, body: bytes) -> tuple[int, bytes]:
        try:
            base = base_url("cloudtrail", region, self.url)
            origin = Origin.parse(base)
            sent = {"content-type": "application/x-amz-json-1.1", "x-amz-target": TARGET}
            headers = signed(
                self.credential, "cloudtrail", region, "POST", f"{origin}/", sent, body, self.wall()
            )
            until = self.loop() + _SECONDS
            request = OutboundRequest(origin, "POST", "/", headers, body)
            response = await self.transport.send(request, Timeouts(until))
            return response.status, await read_body(response, _LIMIT, until)
        except (TransportError, Misconfigured, ValueError) as error:
            raise NotLooked(f"LookupEvents in {region}: {error}") from None


def draw(
    found: Iterable[tuple[Sent, Facts]], count: int, random: Random
) -> list[tuple[Sent, Facts]]:
    """So many answered Bedrock calls, each as likely as another."""
    kept: list[tuple[Sent, Facts]] = []
    number = 0
    for sent, facts in found:
        if not (sent.surely and sent.call_id and Source.CLOUDTRAIL in facts.seen_by):
            continue
        if len(kept) < count:
            kept.append((sent, facts))
        elif (at := random.randrange(number + 1)) < count:
            kept[at] = (sent, facts)
        number += 1
    return kept


async def look(lookup: Lookup, drawn: Iterable[tuple[Sent, Facts]]) -> Drawn:
    """Ask for every one that was drawn. Raises NotLooked."""
    events: dict[str, None] = {}
    reached: set[str] = set()
    notices: list[str] = []
    for sent, facts in drawn:
        region = facts.source.partition(":")[2]
        since, until = sent.began / 1e6 - AROUND, sent.ended / 1e6 + AROUND
        pages = 0
        async for page in lookup.events(region, since, until):
            events.update(dict.fromkeys(page))
            pages += 1
            if any(sent.call_id in one for one in page):
                reached.add(sent.call_id)
                break
            if pages == PAGES:
                notices.append(f"{sent.record}: not among the first {PAGES} pages around its time")
                break
        else:
            reached.add(sent.call_id)  # all was seen: if it isn't there, it is missing
    return Drawn(tuple(events), frozenset(reached), tuple(notices))
