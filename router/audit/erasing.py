"""Erasing what opens the log, and saying what is left."""

import asyncio
from collections.abc import Collection, Iterator

from router.audit.entry import Entry, Json
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.openings import Erased, Scope


async def erase(log: AuditLog, scope: Scope, by: str, now: float) -> Erased:
    """Erase for good what a scope covers, once the log says that it will be.

    After a crash in between, ask again: what the log says is then said twice, and done.

    Args:
        by: who asked, as the log shows it.
        now: seconds since the epoch.

    Raises:
        LogUnavailable: nothing was erased. LogDamaged, OSError: the side file can't be read, or
            not be written; ask again.
    """
    covered = await asyncio.to_thread(log.openings.covered, scope)
    body: dict[str, Json] = {"event": "erase", "by": by, "keys": covered.keys}
    body |= {"openings": covered.openings, **scope.shown()}
    await log.record(Entry("administration", "", now, body))
    return await asyncio.to_thread(log.openings.erase, scope)


def remains(erased: Erased, scope: Scope, folder: Folder, logs: Collection[str]) -> Iterator[str]:
    """What is left after erasing in these logs, in sentences for whoever asked for it."""
    yield (
        "the entries: names of tenant, app and key, attributes, places, rules, times and counts, "
        "with pseudonyms and digests that nothing relates to a person or a text any more"
    )
    if scope.request is not None:
        yield "the key of the tenant's period: it still tells whether a text was this request"
    elif erased.kept:
        yield f"{erased.kept} keys of periods that had not ended by then: erase again later, or all"
    others = [one for one in folder.log_ids() if folder.log(one).openings.exists()]
    if others := [one for one in others if one not in logs]:
        yield (
            f"the openings of other logs in this folder: {', '.join(others)}; where no process "
            "writes one any more, erase with `--log`"
        )
    yield (
        "copies that were made of the side file: disclosures handed out, backups, blocks of the "
        "disk that were not written over"
    )
