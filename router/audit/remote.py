"""What lies in a bucket, for a question: sealed segments one at a time, or Parquet files.

Only what was sealed is there: the newest lines of a running log are not. Nothing is verified here;
`audit restore` makes a folder of the same objects that can be.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from router.audit.anchors.objects import ObjectStore
from router.audit.errors import AuditError
from router.audit.layout import LogFolder, Segment
from router.audit.reading import LogReader, Shown
from router.audit.rows import Progress, Row, joined
from router.audit.sealing import uncompressed

_SEALED: Final = re.compile(r"(?P<log>[^/]+)/(?P<first>[0-9]{20})/segment\.jsonl\.zst")


class NothingThere(AuditError):
    """There is neither a sealed segment nor a Parquet file below that prefix."""


def sealed(store: ObjectStore, prefix: str) -> dict[str, list[tuple[int, str]]]:
    """The sealed segments below a prefix: log → first index and key, in order."""
    found: dict[str, list[tuple[int, str]]] = {}
    for key in store.keys(prefix):
        match = _SEALED.fullmatch(key.removeprefix(prefix))
        if match:
            found.setdefault(match["log"], []).append((int(match["first"]), key))
    return {log: sorted(parts) for log, parts in sorted(found.items())}


def parquet(
    store: ObjectStore, prefix: str, into: Path, progress: Progress = lambda _: None
) -> int:
    """Bring the Parquet files below a prefix into a folder. Gives their number."""
    keys = [key for key in store.keys(prefix) if key.endswith(".parquet")]
    for number, key in enumerate(keys):
        (into / f"{number:06d}.parquet").write_bytes(store.read(key))
        progress(1)
    return len(keys)


def sealed_rows(
    store: ObjectStore, prefix: str, into: Path, progress: Progress = lambda _: None
) -> Iterator[Row]:
    """Every request in sealed segments; one of them at a time lies in the folder `into`.

    Raises:
        NothingThere. AnchorRefused, SealRefused, LineInvalid: while rows are read.
    """
    found = sealed(store, prefix)
    if not found:
        raise NothingThere(f"neither sealed segments nor Parquet files lie below `{prefix}`")
    for log, parts in found.items():
        yield from joined(_entries(store, log, parts, into, progress))


def _entries(
    store: ObjectStore, log: str, parts: list[tuple[int, str]], into: Path, progress: Progress
) -> Iterator[Shown]:
    reader = LogReader(LogFolder(into / log))
    for first, key in parts:
        path = into / f"{first:020d}.jsonl"
        path.write_bytes(uncompressed(key, store.read(key)))
        try:
            yield from reader.of(Segment(path, first))
        finally:
            path.unlink()
        progress(1)
