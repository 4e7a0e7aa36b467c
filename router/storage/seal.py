"""The router's own sealing: finished segments of its log, to the bucket that is configured.

Before anything is put: S3 itself says in which region the bucket is, and that must be the one
configured. Where `local` says so, local copies of what is sealed go later. What goes wrong stands
in the notes of `status`, and is tried again at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from router.audit.disk import LocalDisk
from router.audit.entry import Entry
from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.audit.releasing import Releaser, body
from router.audit.sealing import IMMUTABLE, Sealer, SealRefused, SealTerms
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.live import Live
from router.providers.base import AwsKeys
from router.settings.config_log import SealSection
from router.settings.credentials import credential
from router.storage.s3 import s3_client

if TYPE_CHECKING:
    from router.audit.anchors.s3 import S3Objects

NOTE: Final = "seal"
Open = Callable[[], tuple[Sealer, Releaser | None]]


class SealWatch:
    """Seals whatever is finished, then releases what may go from here; opens its bucket at the
    first look, in a thread."""

    def __init__(self, live: Live, open_: Open, immutable: bool) -> None:
        self._live = live
        self._open = open_
        self._immutable = immutable
        self._opened: tuple[Sealer, Releaser | None] | None = None

    async def look(self) -> None:
        """One run over all segments that are finished."""
        try:
            size = await asyncio.to_thread(self._run)
            await self._release()
        except (AuditError, ConfigError, OSError) as error:
            self._live.notes[NOTE] = str(error)
            return
        self._live.metrics.set("domicile_log_sealed", size)
        self._live.notes.pop(NOTE, None)
        if not self._immutable:
            self._live.notes[NOTE] = "not immutable: GOVERNANCE can be bypassed; use COMPLIANCE"

    def _run(self) -> int:
        if self._opened is None:
            self._opened = self._open()
        sealer, _ = self._opened
        for _ in sealer.run():
            pass
        return max((one.end for one in sealer.sealed()), default=0)

    async def _release(self) -> None:
        releaser = None if self._opened is None else self._opened[1]
        if releaser is None:
            return
        await asyncio.to_thread(releaser.run)
        for one in await asyncio.to_thread(releaser.due):
            entry = Entry("administration", "", self._live.stamp(), body(one))
            releaser.announced(one, (await self._live.log.record(entry)).index)


def seal_watch(
    live: Live, log: LogSettings, environment: Mapping[str, str], base: Path
) -> SealWatch:
    """Sealing as `log.seal` says. Raises ConfigError: its credentials can't be used."""
    section = live.snapshot.config.log.seal
    if section is None:
        raise ConfigError("`log.seal` is not configured")
    keys = credential("`log.seal`", section.credentials, environment, base)
    if keys is not None and not isinstance(keys, AwsKeys):
        raise ConfigError("`log.seal.credentials` leads to no AWS keys")

    def opened() -> tuple[Sealer, Releaser | None]:
        terms = SealTerms(
            section.region, timedelta(seconds=section.retain), section.prefix, section.mode
        )
        store = bucket(section, keys)
        folder, disk = Folder(log.dir), LocalDisk()
        sealer = Sealer(folder, log.log_id, store, terms, disk, live.wall_time)
        if section.local is None:
            return sealer, None
        of = folder.log(log.log_id)
        return sealer, Releaser(of, store, disk, live.wall_time, section.local)

    return SealWatch(live, opened, section.mode == IMMUTABLE)


def bucket(section: SealSection, keys: AwsKeys | None) -> S3Objects:
    """The bucket to seal into, once S3 has said that it is where the configuration says.

    Raises:
        SealRefused: it is elsewhere. AnchorRefused: S3 doesn't say.
    """
    from router.audit.anchors.s3 import S3Objects  # botocore, only where S3 is used

    store = S3Objects(s3_client(section.region, keys, section.endpoint), section.s3, section.mode)
    code = store.region()
    if section.region.partition(":")[2] != code:
        raise SealRefused(
            f"bucket `{section.s3}` is in `{code}`, and `log.seal.region` says "
            f"`{section.region}`: nothing is sealed there"
        )
    return store
