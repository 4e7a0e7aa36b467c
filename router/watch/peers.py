"""Logs that nobody writes any more are taken over by who is there."""

from __future__ import annotations

from collections.abc import Callable

from router.audit.adoption import adopt
from router.audit.disk import Disk
from router.audit.entry import Entry, Json
from router.audit.errors import AuditError
from router.audit.settings import LogSettings
from router.live import Live

NOTE = "peer logs"


class PeerWatch:
    """Looks for orphaned logs in this router's folder; records what became of them in its own."""

    def __init__(
        self, live: Live, log: LogSettings, entropy: Callable[[int], bytes], disk: Disk
    ) -> None:
        self._live = live
        self._settings = log
        self._entropy = entropy
        self._disk = disk

    async def look(self) -> None:
        """Take over what is orphaned. What can't be now stands in the status, and is tried again.

        Raises:
            AuditError: this router's own log can't be written.
        """
        live = self._live
        try:
            done = await adopt(self._settings, live.wall_time, self._entropy, self._disk)
        except (AuditError, OSError) as error:
            live.notes[NOTE] = str(error)
            return
        live.notes.pop(NOTE, None)
        if waits := [one.waits for one in done if one.waits]:
            live.notes[NOTE] = "; ".join(waits)
        for one in done:
            if one.waits:
                continue
            body: dict[str, Json] = {
                "event": "lost" if one.lost else "adopted",
                "log": one.log,
                "lines": one.lines,
            }
            await live.log.record(Entry("recovery", "", live.stamp(), body))
            if one.lost:
                live.notes[f"log {one.log}"] = f"lost after {one.lines} lines: {one.lost}"
