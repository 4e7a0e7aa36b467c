"""Quarantine without a running router: its veto file, so that its next start knows.

Only while nobody holds the log: a router that runs has the list in memory, and is asked itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from router.audit.disk import LocalDisk
from router.audit.layout import Folder
from router.narrowing.veto_file import MAX_REASON, Imposed, VetoFile

BY: Final = "reconcile"


def impose(folder: Path, log_id: str, reasons: Mapping[str, str], at: float) -> tuple[str, ...]:
    """Put endpoints into the veto file of a log; gives those that were not there.

    Args:
        reasons: endpoint → why. at: seconds since the epoch.

    Raises:
        LogLocked: a router runs on this log. VetoFileBroken: the file can't be read or written.
    """
    disk = LocalDisk()
    held = disk.lock(Folder(folder).log(log_id).lock, wait=False)
    try:
        file = VetoFile.open(folder, log_id, disk)
        known = {one.name for one in file.state.imposed if one.what == "endpoint"}
        new = tuple(name for name in reasons if name not in known)
        added = [
            Imposed(what="endpoint", name=name, reason=reasons[name][:MAX_REASON], by=BY, at=at)
            for name in new
        ]
        if added:
            imposed = (*file.state.imposed, *added)
            file.save(file.state.model_copy(update={"imposed": imposed}))
        return new
    finally:
        os.close(held)
