"""The router's own exports: each configured sink follows the log, and says how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from router.audit.disk import LocalDisk
from router.audit.errors import AuditError
from router.audit.following import FileSink, Follower, Progress
from router.audit.layout import Folder, LogFolder
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.live import Live
from router.settings.authorities import authorities
from router.settings.config_log import ExportSection
from router.settings.secrets import resolve
from router.storage.sinks import RemoteSink, http_sink, syslog_sink
from router.transport.messages import Headers, Origin, Tls, Transport
from router.transport.oneway import OneWay


class Sink(Protocol):
    """Something that follows the log."""

    async def turn(self, size: int) -> Progress:
        """Follow; `size` is the number of durable lines. Raises AuditError or OSError."""
        ...


class ExportWatch:
    """A turn of every sink, all at once; a sink that fails or waits keeps none from its turn."""

    def __init__(self, live: Live, sinks: Sequence[tuple[str, Sink]]) -> None:
        self._live = live
        self._sinks = sinks

    async def look(self) -> None:
        """One turn of each."""
        head = self._live.log.head
        size = 0 if head is None else head.size
        await asyncio.gather(*(self._turn(name, sink, size) for name, sink in self._sinks))

    async def _turn(self, name: str, sink: Sink, size: int) -> None:
        note, metrics = f"export {name}", self._live.metrics
        try:
            progress = await sink.turn(size)
        except (AuditError, OSError) as error:
            self._live.notes[note] = str(error)
            metrics.count("domicile_export_failures_total", (name,))
            return
        self._live.notes.pop(note, None)
        metrics.set("domicile_export_behind", progress.behind, (name,))
        metrics.count("domicile_export_events_total", (name,), progress.written)
        if progress.withheld:
            metrics.count("domicile_export_withheld_total", (name,), progress.withheld)
            self._live.notes[f"{note}: withheld"] = (
                "some events may not be kept where it is; name a sink inside their boundary"
            )


class LocalSink:
    """A file, written in a thread."""

    def __init__(self, file: FileSink) -> None:
        self._file = file

    async def turn(self, size: int) -> Progress:
        """See `Sink`."""
        return await asyncio.to_thread(self._file.turn, size)


def export_watch(
    live: Live,
    log: LogSettings,
    sections: Sequence[ExportSection],
    base: Path,
    transport: Transport,
    environment: Mapping[str, str],
) -> ExportWatch:
    """The sinks of a configuration; files are relative to `base`.

    Each worker writes a file of its own: `events.json` and, of the second one, `events.w2.json`.

    Raises:
        SinkRefused: a format that isn't. ConfigError: a token or URL that can't be used.
    """
    folder = Folder(log.dir).log(log.log_id)
    line = OneWay()
    return ExportWatch(
        live,
        [
            (one.name, _sink(one, folder, base, live, (transport, line), environment))
            for one in sections
        ],
    )


def _sink(
    one: ExportSection,
    folder: LogFolder,
    base: Path,
    live: Live,
    out: tuple[Transport, OneWay],
    environment: Mapping[str, str],
) -> Sink:
    if one.file is not None:
        path = base / one.file
        worker = folder.path.name.removeprefix(live.snapshot.config.router.id)
        path = path.with_stem(path.stem + worker)
        return LocalSink(FileSink(folder, path, one.format, LocalDisk()))
    transport, line = out
    origin = _origin(one, base)
    if one.http is not None:
        more = _authorization(one, environment, base)
        deliver = http_sink(one.http, origin, one.format, more, transport, live.loop_time)
    else:
        deliver = syslog_sink(one.name, origin, one.format, line, live.loop_time)
    name = one.name.replace(":", "_")
    follower = Follower(folder, name, one.format, LocalDisk(), one.region or "")
    return RemoteSink(follower, deliver, live.loop_time)


def _origin(one: ExportSection, base: Path) -> Origin:
    try:
        tls = None if one.ca is None else Tls(authorities(base / one.ca))
        if one.http is not None:
            return Origin.parse(one.http, tls)
        parts = urlsplit(one.syslog or "")
        scheme, usual = ("https", 6514) if parts.scheme == "tls" else ("http", 601)
        return Origin(scheme, (parts.hostname or "").lower(), parts.port or usual, tls)
    except (ConfigError, ValueError) as error:
        raise ConfigError(f"`log.exports`: {error}") from None


def _authorization(one: ExportSection, environment: Mapping[str, str], base: Path) -> Headers:
    if one.token is None:
        return ()
    token = resolve(one.token, environment, base)
    if not token.isascii() or not token.decode("ascii", "replace").isprintable():
        raise ConfigError("`log.exports.token` leads to what no header can carry")
    return ((b"authorization", b"Bearer " + token),)
