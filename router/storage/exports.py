"""The router's own exports: each configured sink follows the log, and says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from router.audit.disk import LocalDisk
from router.audit.errors import AuditError
from router.audit.following import FileSink
from router.audit.layout import Folder
from router.audit.settings import LogSettings
from router.config import ExportSection
from router.live import Live


class ExportWatch:
    """Turns of every sink, one after the other; a sink that fails keeps none from its turn."""

    def __init__(self, live: Live, sinks: Sequence[tuple[str, FileSink]]) -> None:
        self._live = live
        self._sinks = sinks

    async def look(self) -> None:
        """One turn of each."""
        head = self._live.log.head
        size = 0 if head is None else head.size
        for name, sink in self._sinks:
            note = f"export {name}"
            try:
                progress = await asyncio.to_thread(sink.turn, size)
            except (AuditError, OSError) as error:
                self._live.notes[note] = str(error)
                continue
            self._live.notes.pop(note, None)
            self._live.metrics.set("domicile_export_behind", progress.behind, (name,))


def export_watch(
    live: Live, log: LogSettings, sections: Sequence[ExportSection], base: Path
) -> ExportWatch:
    """The sinks of a configuration; files are relative to `base`. Raises SinkRefused.

    Each worker writes a file of its own: `events.json` and, of the second one, `events.w2.json`.
    """
    folder = Folder(log.dir).log(log.log_id)
    worker = log.log_id.removeprefix(live.snapshot.config.router.id)
    files = [(one, base / one.file) for one in sections]
    sinks = [
        (one.file, FileSink(folder, path.with_stem(path.stem + worker), one.format, LocalDisk()))
        for one, path in files
    ]
    return ExportWatch(live, sinks)
