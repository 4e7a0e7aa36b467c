"""A caller's own record: the entry, and the proof that it is in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from pydantic import BaseModel

from router.audit.log import AuditLog
from router.audit.openings import text
from router.audit.reading import NotInLog, Shown
from router.auth import Principal


class RecordView(BaseModel):
    """One entry with its inclusion proof against a signed checkpoint.

    `content_key`, for the tenant only: what opens `content` of its body, so that nobody else can
    later say it was another text. `null` where there is none, or once it is erased.
    """

    log: str
    index: int
    kind: str
    time: float
    body: dict[str, object]
    leaf: str
    size: int
    inclusion: list[str]
    checkpoint: str
    content_key: str | None = None


async def read_record(log: AuditLog, name: str, index: int, principal: Principal) -> RecordView:
    """The entry at an index of the log called `name`, when it is the caller's own.

    Raises:
        NotInLog: no such entry, or somebody else's: the two can't be told apart.
    """
    message = f"no entry {index} of yours in log `{name}`"
    try:
        shown = await log.entry(index)
    except NotInLog:
        raise NotInLog(message) from None
    if not _is_own(shown.body, principal):
        raise NotInLog(message)
    view = await record_view(log, name, shown)
    bound = shown.body.get("bound")
    if isinstance(bound, str):
        key = await asyncio.to_thread(log.openings.find, principal.tenant, bound)
        view.content_key = None if key is None else text(key.of_request(shown.id))
    return view


async def record_view(log: AuditLog, name: str, shown: Shown) -> RecordView:
    """An entry with its proof, for somebody who may see it."""
    index = shown.place.index
    inclusion, checkpoint = await log.inclusion(index)
    return RecordView(
        log=name,
        index=index,
        kind=shown.kind,
        time=shown.time / 1_000_000,
        body=dict(shown.body),
        leaf=inclusion.leaf.hex(),
        size=inclusion.size,
        inclusion=[one.hex() for one in inclusion.path],
        checkpoint=checkpoint.text,
    )


def _is_own(body: Mapping[str, object], principal: Principal) -> bool:
    who = body.get("who")
    return isinstance(who, Mapping) and who.get("tenant") == principal.tenant
