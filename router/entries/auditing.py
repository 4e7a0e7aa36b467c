"""What an auditor's key may read, and the entry that every reading leaves.

An auditor reads one tenant's records, or all (`tenant: "*"`), and never sends a request.
`view_from` says where the auditor sits: a record is shown when all of that lies inside what the
record may be kept in. Any other record is counted, nothing more. Nothing is given out before the
reading itself is in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pydantic import BaseModel

from policies.model import Policy
from regions.boundaries import boundary
from router.audit.entry import Entry, Json
from router.audit.errors import AuditError
from router.audit.paging import Owned, page
from router.audit.reading import NotInLog, Shown
from router.auth import EVERY, Home, Principal
from router.entries.reading_records import RecordView, read_record, record_view
from router.errors import RequestError
from router.live import Live

MOST: Final = 500


class EntryView(BaseModel):
    """One entry, interned values in place."""

    index: int
    kind: str
    request: str
    time: float
    body: dict[str, object]


class PageView(BaseModel):
    """A page: `hidden` are those of the auditor's tenants that may not be viewed from there.

    `next` is the `after` of the next page; `null` at the end. `logs` are the names of all logs of
    this router: each of its workers writes one.
    """

    log: str
    entries: list[EntryView]
    hidden: int
    next: int | None
    size: int
    checkpoint: str
    logs: list[str] = []


@dataclass(slots=True)
class _Seen:
    shown: list[EntryView] = field(default_factory=list)
    hidden: int = 0
    last: int = -1
    looked: int = 0


@dataclass(frozen=True, slots=True)
class Auditor:
    """Who reads, and where from, as place ids."""

    principal: Principal
    sits: frozenset[str]

    def concerns(self, owner: Shown) -> bool:
        """Whether the entry is of a tenant that this auditor audits."""
        return self.principal.tenant in (EVERY, _who(owner).get("tenant"))

    def sees(self, owner: Shown) -> bool:
        """Whether the entry may be viewed from where the auditor sits."""
        allowed = owner.body.get("allowed")
        if not isinstance(allowed, dict):
            # No request's: starts, snapshots, vetoes. For those who audit the whole router.
            return self.principal.tenant == EVERY and bool(self.sits)
        kept = allowed.get("retain")
        places = {one for one in kept if isinstance(one, str)} if isinstance(kept, list) else set()
        return bool(self.sits) and self.sits <= places


def auditor(holder: Principal | Home, policy: Policy) -> Auditor:
    """The auditor who holds a key.

    Raises:
        RequestError: the key is no auditor's.
    """
    if isinstance(holder, Home) or holder.role != "auditor":
        message = f"key `{holder.key}` has not the role `auditor`; ask the operator for one"
        raise RequestError("role_not_allowed", message)
    if not holder.view_from:
        return Auditor(holder, frozenset())
    return Auditor(holder, frozenset(boundary(holder.view_from, policy.atlas).places.ids))


async def record_for(live: Live, index: int, holder: Principal) -> RecordView:
    """One entry of this process's log, for its owner or an auditor.

    Raises:
        RequestError: no such entry that the holder may see, or the reading can't be recorded.
    """
    try:
        if index < 0:
            raise NotInLog(f"no entry {index}")
        if holder.role == "auditor":
            return await audited_record(live, auditor(holder, live.snapshot.policy), index)
        return await read_record(live.log, live.log_name, index, holder)
    except NotInLog:
        raise RequestError("not_found", "no such record of yours in this log") from None


async def page_for(live: Live, after: int, limit: int, holder: Principal | Home) -> PageView:
    """A page of this process's log, for an auditor.

    Raises:
        RequestError: the key is no auditor's, or the reading can't be recorded.
    """
    found = await audited_page(live, auditor(holder, live.snapshot.policy), after, limit)
    found.logs = list(live.logs)
    return found


async def audited_record(live: Live, who: Auditor, index: int) -> RecordView:
    """One entry with its proof, once the reading is in the log.

    Raises:
        NotInLog: no such entry, or one that may not be seen from there: the same words.
        RequestError: the reading can't be recorded.
    """
    size = _size(live)
    found = await asyncio.to_thread(_one, live, index, size)
    seen = found is not None and who.concerns(found.owner) and who.sees(found.owner)
    await recorded(live, who, "record", {"index": index, "shown": int(seen)})
    if found is None or not seen:
        raise NotInLog(f"no entry {index} that key `{who.principal.key}` may see")
    return await record_view(live.log, live.log_name, found.shown)


async def audited_page(live: Live, who: Auditor, after: int, limit: int) -> PageView:
    """Entries above an index, at most `limit` (and `MOST`) looked at, oldest first.

    Raises:
        RequestError: the reading can't be recorded.
    """
    head = live.log.head
    size = _size(live)
    seen = await asyncio.to_thread(_page, live, who, after, min(limit, MOST), size)
    told: dict[str, Json] = {
        "after": after, "upto": seen.last, "shown": len(seen.shown), "hidden": seen.hidden,
    }  # fmt: skip
    await recorded(live, who, "entries", told)
    more = seen.last if seen.looked == min(limit, MOST) else None
    text = "" if head is None else head.text
    return PageView(
        log=live.log_name,
        entries=seen.shown,
        hidden=seen.hidden,
        next=more,
        size=size,
        checkpoint=text,
    )


def _page(live: Live, who: Auditor, after: int, limit: int, size: int) -> _Seen:
    seen = _Seen()
    for one in islice(page(live.log.folder, after, size), limit):
        seen.last, seen.looked = one.shown.place.index, seen.looked + 1
        if not who.concerns(one.owner):
            continue
        if who.sees(one.owner):
            seen.shown.append(_view(one.shown))
        else:
            seen.hidden += 1
    return seen


def _one(live: Live, index: int, size: int) -> Owned | None:
    found = next(page(live.log.folder, index - 1, size), None) if 0 <= index < size else None
    return found if found is not None and found.shown.place.index == index else None


async def recorded(live: Live, who: Auditor, what: str, told: Mapping[str, Json]) -> None:
    """Write down that an auditor reads, and what, before it is given out.

    Raises:
        RequestError: it can't be written; then nothing may be read.
    """
    body: dict[str, Json] = {"event": "read", "by": who.principal.key, "what": what, **told}
    body["tenant"] = who.principal.tenant
    try:
        await live.log.record(Entry("administration", "", live.stamp(), body))
    except AuditError:
        raise RequestError(
            "log_unavailable",
            "the region log can't be written, so nothing is read from it; try again later",
            retry_after=5.0,
        ) from None


def _size(live: Live) -> int:
    """Lines that are durable and signed for."""
    head = live.log.head
    return 0 if head is None else head.size


def _view(shown: Shown) -> EntryView:
    return EntryView(
        index=shown.place.index,
        kind=shown.kind,
        request=shown.id,
        time=shown.time / 1e6,
        body=dict(shown.body),
    )


def _who(shown: Shown) -> Mapping[str, object]:
    who = shown.body.get("who")
    return who if isinstance(who, dict) else {}
