"""What becomes of a log whose process is gone for good: a peer of the same folder takes it over.

A log is orphaned when its roster ends with a start, nobody holds its lock, and it has published
nothing for a while: a process that only restarts is back before. For each one:

 1. it is opened as its own process would: the torn tail is cut, every open request settled as
    `unknown`, a start and a recovery recorded;
 2. who took it over is recorded in it, and its stop signed: it is whole;
 3. if it contradicts what it signed, it stays as it is, and the roster says that it is `lost`, with
    the size and root of the newest checkpoint that is still good: a named gap, never forgotten.

A peer signs with its own day's key for that log, so it needs the same lasting key; another's log is
left alone. Two peers that see the same orphan take turns by its lock.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from router.audit.certificate import Signing
from router.audit.disk import Disk
from router.audit.entry import Entry
from router.audit.errors import AuditError, LogDamaged, LogLocked, NoteInvalid, OpeningsDamaged
from router.audit.layout import Folder, LogFolder, complete_lines
from router.audit.log import AuditLog
from router.audit.note import Checkpoint, PublicKey, parse_checkpoint
from router.audit.roster import append_roster, read_roster
from router.audit.settings import LogSettings
from router.audit.tree import EMPTY_ROOT

SILENT: Final = 150.0
"""Seconds without a checkpoint after which a log without a process is orphaned."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A log that was taken over: its lines. `lost` says why it could not be, with what is good;
    `waits` why it could not be now."""

    log: str
    lines: int
    lost: str = ""
    waits: str = ""


async def adopt(
    settings: LogSettings,
    clock: Callable[[], float],
    entropy: Callable[[int], bytes],
    disk: Disk,
) -> list[Adopted]:
    """Take over every orphaned log beside the one of `settings`.

    Raises:
        LogDamaged: the roster can't be read.
    """
    now = clock()
    found = await asyncio.to_thread(lambda: list(orphans(settings, now)))
    done = [await _tried(log, _taken(settings, log, clock, entropy, disk)) for log in found]
    return [one for one in done if one is not None]


async def _tried(log: str, taking: Awaitable[Adopted | None]) -> Adopted | None:
    """One that can't be taken over now keeps nobody from the others."""
    try:
        return await taking
    except (AuditError, OSError) as error:
        return Adopted(log, 0, waits=f"{log}: {error}")


def orphans(settings: LogSettings, now: float) -> Iterator[str]:
    """Logs of the folder that may be orphaned; whether anybody holds their lock isn't asked."""
    folder, own = Folder(settings.dir), settings.authority.public()
    newest = {line.log: line for line in read_roster(folder)[0]}
    for log in folder.log_ids():
        line = newest.get(log)
        if log == settings.log_id or line is None or line.event != "start" or line.key != own:
            continue
        if now - _touched(folder.log(log), line.time / 1e6) > SILENT:
            yield log


async def _taken(
    settings: LogSettings,
    log: str,
    clock: Callable[[], float],
    entropy: Callable[[int], bytes],
    disk: Disk,
) -> Adopted | None:
    """1 to 3; None when somebody else has it, or had it meanwhile."""
    if log not in await asyncio.to_thread(lambda: list(orphans(settings, clock()))):
        return None
    own = replace(settings, log_id=log)
    try:
        opened = await AuditLog.open(own, clock=clock, entropy=entropy, disk=disk)
    except LogLocked:
        return None
    except OpeningsDamaged:
        raise  # what opens a log is no evidence: the log may be whole, and isn't given up for that
    except LogDamaged as error:
        return await asyncio.to_thread(_given_up, own, clock(), entropy, disk, str(error))
    now = max(clock(), opened.newest_time())
    body = {"event": "adopted", "by": settings.log_id}
    try:
        await opened.record(Entry("administration", "", now, body))
    finally:
        await opened.close()
    head = opened.head
    return Adopted(log, 0 if head is None else head.size)


def _given_up(
    settings: LogSettings, now: float, entropy: Callable[[int], bytes], disk: Disk, why: str
) -> Adopted | None:
    folder = Folder(settings.dir)
    lock = disk.lock(folder.log(settings.log_id).lock, wait=False)
    try:
        signing = Signing(settings.log_id, settings.authority, entropy, now)
        head = last_good(folder.log(settings.log_id), signing.authority)
        size, root = (0, EMPTY_ROOT) if head is None else (head.size, head.root)
        append_roster(folder, disk, signing.signer, "lost", size, root, now)
    finally:
        disk.close(lock)
    return Adopted(settings.log_id, size, why)


def last_good(folder: LogFolder, key: PublicKey) -> Checkpoint | None:
    """The largest checkpoint beside a log, published or cosigned, that its lasting key stands
    behind."""
    good = (head for head in _heads(folder) if head.origin == folder.path.name)
    signed = (head for head in good if head.signed_by([key]) is not None)
    return max(signed, key=lambda head: head.size, default=None)


def _heads(folder: LogFolder) -> Iterator[Checkpoint]:
    files = [folder.checkpoint, *sorted((folder.path / "cosigned").glob("*.note"))]
    texts = [file.read_bytes() for file in files if file.exists()]
    if folder.checkpoints.exists():
        texts += map(_published, complete_lines(folder.checkpoints.read_bytes())[0])
    for text in texts:
        try:
            yield parse_checkpoint(text.decode())
        except (NoteInvalid, UnicodeDecodeError):
            continue  # it is damaged, and only the good ones count


def _published(line: bytes) -> bytes:
    try:
        return str(orjson.loads(line)["checkpoint"]).encode()
    except (ValueError, KeyError, TypeError):
        return b""


def _touched(folder: LogFolder, started: float) -> float:
    """When a log last published, epoch seconds."""

    def changed(path: Path) -> float:
        return path.stat().st_mtime if path.exists() else 0.0

    return max(started, changed(folder.checkpoint), changed(folder.checkpoints))
