"""The router's own sealing: finished segments of its log, to the bucket that is configured.

Before anything is put: S3 itself says in which region the bucket is, and that must be the one
configured. What goes wrong stands in the notes of `status`, and is tried again at the next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Final

from router.audit.anchors.s3 import S3Objects
from router.audit.disk import LocalDisk
from router.audit.errors import AuditError
from router.audit.layout import Folder
from router.audit.sealing import IMMUTABLE, Sealer, SealRefused, SealTerms
from router.audit.settings import LogSettings
from router.config import ConfigError, SealSection
from router.credentials import credential
from router.live import Live
from router.providers.base import AwsKeys
from router.storage.s3 import s3_client

NOTE: Final = "seal"
Open = Callable[[], Sealer]


class SealWatch:
    """Seals whatever is finished; opens its bucket at the first look, in a thread."""

    def __init__(self, live: Live, open_: Open, immutable: bool) -> None:
        self._live = live
        self._open = open_
        self._immutable = immutable
        self._sealer: Sealer | None = None

    async def look(self) -> None:
        """One run over all segments that are finished."""
        try:
            size = await asyncio.to_thread(self._run)
        except (AuditError, ConfigError, OSError) as error:
            self._live.notes[NOTE] = str(error)
            return
        self._live.metrics.set("domicile_log_sealed", size)
        self._live.notes.pop(NOTE, None)
        if not self._immutable:
            self._live.notes[NOTE] = "not immutable: GOVERNANCE can be bypassed; use COMPLIANCE"

    def _run(self) -> int:
        if self._sealer is None:
            self._sealer = self._open()
        for _ in self._sealer.run():
            pass
        return max((one.end for one in self._sealer.sealed()), default=0)


def seal_watch(
    live: Live, log: LogSettings, environment: Mapping[str, str], base: Path
) -> SealWatch:
    """Sealing as `log.seal` says. Raises ConfigError: its credentials can't be used."""
    section = live.snapshot.config.log.seal
    if section is None:
        raise ConfigError("`log.seal` is not configured")
    keys = credential("log.seal", section.credentials, environment, base)
    if keys is not None and not isinstance(keys, AwsKeys):
        raise ConfigError("`log.seal.credentials` leads to no AWS keys")

    def opened() -> Sealer:
        terms = SealTerms(
            section.region, timedelta(seconds=section.retain), section.prefix, section.mode
        )
        store = bucket(section, keys)
        return Sealer(Folder(log.dir), log.log_id, store, terms, LocalDisk(), live.wall_time)

    return SealWatch(live, opened, section.mode == IMMUTABLE)


def bucket(section: SealSection, keys: AwsKeys | None) -> S3Objects:
    """The bucket to seal into, once S3 has said that it is where the configuration says.

    Raises:
        SealRefused: it is elsewhere. AnchorRefused: S3 doesn't say.
    """
    store = S3Objects(s3_client(section.region, keys, section.endpoint), section.s3, section.mode)
    code = store.region()
    if section.region.partition(":")[2] != code:
        raise SealRefused(
            f"bucket `{section.s3}` is in `{code}`, and `log.seal.region` says "
            f"`{section.region}`: nothing is sealed there"
        )
    return store
