"""What a router takes over from the processes it had before, when their number changes.

A lone process writes the log that bears the router's id; of several workers each writes its own,
`ID.w1`, `ID.w2`, …. Before any of them serves:

1. a log that is nobody's any more, and whose process died, is opened and closed in good order, so
   that what it left open is settled and the roster has its stop;
2. what is quarantined or has drifted in any of the logs' state files is put into each of the files
   that are used from now on: another number of workers must not widen anything;
3. state files of logs that are nobody's any more are removed, for all they said is in the others.

A crash in between leaves every veto in some file that the next start reads.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from router.audit.disk import LocalDisk
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.roster import read_roster
from router.audit.settings import LogSettings
from router.narrowing.veto_file import Drift, Imposed, State, VetoFile

_WORKER: Final = re.compile(r"\.w[1-9]\d*")


def worker_log(router: str, number: int) -> str:
    """The name of one worker's log; workers are counted from 1. No router's id holds a dot."""
    return f"{router}.w{number}"


def logs_of(folder: Path, router: str) -> list[str]:
    """The logs of one router in a folder, in order, whoever wrote them."""
    names = Folder(folder).log_ids()
    return [name for name in names if is_of(name, router)]


def is_of(name: str, router: str) -> bool:
    """Whether a log of that name is the router's, or one of its workers'."""
    rest = name.removeprefix(router)
    return name == router or (rest != name and _WORKER.fullmatch(rest) is not None)


async def hand_over(settings: LogSettings, router: str, used: Sequence[str]) -> None:
    """See the top of the file; `used` are the logs that are written from now on.

    Raises:
        AuditError: a log or a state file can't be read or written, or is another process's.
    """
    left = [name for name in logs_of(settings.dir, router) if name not in used]
    for name in left:
        await settle_log(replace(settings, log_id=name))  # 1
    await asyncio.to_thread(inherit, settings.dir, [*used, *left], used)  # 2
    for name in left:
        await asyncio.to_thread(_forget, settings.dir, name)  # 3


async def settle_log(settings: LogSettings) -> bool:
    """Open and close the log of a process that died; gives whether it had to be done.

    Raises:
        AuditError: it can't be opened, or a process still writes it.
    """
    lines, _ = await asyncio.to_thread(read_roster, Folder(settings.dir))
    last = next((one for one in reversed(lines) if one.log == settings.log_id), None)
    if last is None or last.event != "start":
        return False
    log = await AuditLog.open(settings, clock=time.time, entropy=os.urandom)
    await log.close()
    return True


def inherit(folder: Path, givers: Iterable[str], takers: Iterable[str]) -> None:
    """Put what narrows in any giver's state file into each taker's.

    Raises:
        VetoFileBroken: a file can't be read or written.
    """
    whole = State()
    for name in givers:
        whole = joined(whole, VetoFile.open(folder, name, LocalDisk()).state)
    for name in takers:
        file = VetoFile.open(folder, name, LocalDisk())
        state = joined(file.state, whole)
        if state != file.state:
            file.save(state)


def joined(own: State, other: State) -> State:
    """Everything that either narrows; of two words about the same thing, one's own."""
    imposed: dict[tuple[str, str], Imposed] = {}
    for one in (*other.imposed, *own.imposed):
        imposed[one.what, one.name] = one
    drifts: dict[str, Drift] = {}
    for drift in (*other.drifts, *own.drifts):
        drifts[drift.endpoint] = drift
    return State(imposed=tuple(imposed.values()), drifts=tuple(drifts.values()))


def _forget(folder: Path, name: str) -> None:
    path = VetoFile.open(folder, name, LocalDisk()).path
    if path.exists():
        LocalDisk().remove(path)
