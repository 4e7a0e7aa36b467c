"""Checkpoints leave this machine: which anchors the configuration names, and when they are asked.

Every published checkpoint is offered, one at least every 60 s, idle or not. An anchor that fails
is asked again after 5, 10, 20, 30 s with the newest one, which covers everything before it. The
log goes on meanwhile; what grows is the unanchored tail, shown in status and metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from regions.footprints.own import is_loopback
from router.audit.anchors.cosign import WitnessKey, read_witness_key
from router.audit.anchors.keeper import AnchorKeeper, Publish
from router.audit.anchors.objects import ObjectAnchor
from router.audit.anchors.witness import AnchorRefused, Answer, Send, WitnessAnchor
from router.audit.disk import Disk, LocalDisk
from router.audit.errors import NoteInvalid
from router.audit.layout import Folder, LogFolder
from router.audit.note import Checkpoint
from router.audit.reading import LogReader
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.providers.base import AwsKeys
from router.settings.config_log import AnchorSection
from router.settings.credentials import credential
from router.settings.secrets import resolve
from router.storage.s3 import s3_client
from router.transport.messages import (
    Origin,
    OutboundRequest,
    Timeouts,
    Transport,
    TransportError,
    read_body,
)

FIRST_RETRY: Final = 5.0
LAST_RETRY: Final = 30.0
SECONDS: Final = 15.0
MAX_ANSWER: Final = 64 << 10


class Anchoring:
    """Offers checkpoints to the anchors, one attempt at a time. `clock` gives loop seconds."""

    def __init__(self, keeper: AnchorKeeper, clock: Callable[[], float]) -> None:
        self.keeper = keeper
        self._clock = clock
        self._newest: Checkpoint | None = None
        self._task: asyncio.Task[None] | None = None
        self._offered = False
        self._failed = 0
        self._retry_at = 0.0

    def tick(self, head: Checkpoint | None) -> None:
        """Call every few seconds, with the checkpoint published since the last call, if any."""
        if not self.keeper.anchors:
            return
        if head is not None:
            self._newest, self._offered = head, True
        busy = self._task is not None and not self._task.done()
        retry = self.keeper.failing and self._clock() >= self._retry_at
        if self._newest is not None and not busy and (self._offered or retry):
            self._offered = False
            self._task = asyncio.create_task(self._publish(self._newest))

    async def close(self, head: Checkpoint | None, limit: float = 5.0) -> None:
        """Offer the final checkpoint once, for `limit` seconds at most."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if head is not None:
            await asyncio.wait([asyncio.create_task(self.keeper.publish(head))], timeout=limit)

    async def _publish(self, head: Checkpoint) -> None:
        await self.keeper.publish(head)
        self._failed = self._failed + 1 if self.keeper.failing else 0
        delay = min(FIRST_RETRY * 2 ** min(self._failed - 1, 9), LAST_RETRY)
        self._retry_at = self._clock() + delay


def publishers(
    section: AnchorSection | None,
    log: LogSettings,
    transport: Transport,
    clocks: tuple[Callable[[], float], Callable[[], float]],
    environment: Mapping[str, str],
    base: Path,
) -> dict[str, Publish]:
    """The anchors of a configuration by the names that status shows.

    Args:
        clocks: wall (epoch seconds) and loop (monotonic seconds).

    Raises:
        ConfigError: a witness's key or URL, or a credential, that can't be used.
    """
    return (
        {} if section is None else dict(_made(section, log, transport, clocks, environment, base))
    )


def _made(
    section: AnchorSection,
    log: LogSettings,
    transport: Transport,
    clocks: tuple[Callable[[], float], Callable[[], float]],
    environment: Mapping[str, str],
    base: Path,
) -> Iterator[tuple[str, Publish]]:
    wall, loop = clocks
    if section.s3 is not None and section.region is not None:
        keys = credential("`log.anchor`", section.credentials, environment, base)
        if keys is not None and not isinstance(keys, AwsKeys):
            raise ConfigError("`log.anchor.credentials` leads to no AWS keys")
        yield f"s3://{section.s3}", _bucket(section, keys, wall)
    if section.witness is not None and section.key is not None:
        witness = _witness_key(section.key, base)
        send = _sender(section.witness, transport, loop)
        folder = Folder(log.dir).log(log.log_id)
        anchor = WitnessAnchor(witness, LogReader(folder), send)
        yield witness.name, _kept(anchor, witness, folder, LocalDisk())


def _bucket(section: AnchorSection, keys: AwsKeys | None, wall: Callable[[], float]) -> Publish:
    made: list[ObjectAnchor] = []

    def publish(head: Checkpoint) -> None:
        if not made:
            from router.audit.anchors.s3 import S3Objects  # botocore, only where S3 is used

            client = s3_client(str(section.region), keys, section.endpoint)
            store = S3Objects(client, str(section.s3))
            made.append(ObjectAnchor(store, section.prefix, timedelta(seconds=section.keep), wall))
        made[0].publish(head)

    async def in_thread(head: Checkpoint) -> None:
        await asyncio.to_thread(publish, head)

    return in_thread


def _kept(anchor: WitnessAnchor, witness: WitnessKey, folder: LogFolder, disk: Disk) -> Publish:
    """Get a checkpoint cosigned, and keep the cosigned note: `audit verify --against` takes it."""
    path = folder.path / "cosigned" / f"{quote(witness.name, safe='')}.note"

    async def publish(head: Checkpoint) -> None:
        cosigned = await anchor.publish(head)
        await asyncio.to_thread(disk.replace, path, cosigned.text.encode())

    return publish


def _witness_key(text: str, base: Path) -> WitnessKey:
    try:
        vkey = resolve(text, {}, base).decode() if text.startswith("file:") else text
        return read_witness_key(vkey)
    except (NoteInvalid, UnicodeDecodeError) as error:
        raise ConfigError(f"`log.anchor.key`: {error}") from None


def _sender(url: str, transport: Transport, loop: Callable[[], float]) -> Send:
    """Posts to the witness's `add-checkpoint`, through the router's own transport."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"`log.anchor.witness`: `{url}` is not `https://…`")
    try:
        origin = Origin.parse(url)
    except ValueError as error:
        raise ConfigError(f"`log.anchor.witness`: {error}") from None
    target = f"{parts.path.rstrip('/')}/add-checkpoint"

    async def send(body: bytes) -> Answer:
        until = loop() + SECONDS
        headers = ((b"content-type", b"text/plain; charset=utf-8"),)
        request = OutboundRequest(origin, "POST", target, headers, body)
        try:
            response = await transport.send(request, Timeouts(until))
            answer = await read_body(response, MAX_ANSWER, until)
        except TransportError as error:
            raise AnchorRefused(f"witness at `{origin}`: {error}") from error
        return Answer(response.status, answer.decode("utf-8", "replace"))

    return send
