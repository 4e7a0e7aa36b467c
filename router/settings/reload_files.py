"""Every file a configuration refers to, and one digest over all of them.

The configuration file itself, policies, cases, keys, signatures, accepted drift, and whatever any
of them names as `file:PATH`. Contents are read through symlinks, so a mounted volume that swaps
one (as Kubernetes does for secrets and config maps) is noticed like any other change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from regions.document import DocumentErrors
from router.config import Config, ConfigError, expand, load
from router.narrowing.accepted import FOLDER
from router.settings import bounded
from router.state.shared import LEASE

_REFERENCE: Final = re.compile(r"""\bfile:([^\s"',;&?}\]]+)""")


def fingerprint(path: Path) -> str:
    """SHA-256 (hex) over names and contents. A file that can't be read counts as such."""
    text = hashlib.sha256()
    for name in sorted(set(referred(path))):
        text.update(f"{name}\0".encode())
        text.update(_digest(name))
    return text.hexdigest()


def _digest(path: Path) -> bytes:
    try:
        return hashlib.sha256(bounded.read(path, bounded.LARGE)).digest()
    except OSError as error:
        return f"unreadable: {error.errno}".encode()


def referred(path: Path) -> Iterator[Path]:
    """Every file that matters, whether it is there or not."""
    yield path
    found = [path, *_listed(path)]
    yield from found
    for one in found:
        yield from _references(one, path.parent)


def _listed(path: Path) -> list[Path]:
    """The files that the configuration lists; none while it can't be read."""
    try:
        config = load(path)
    except (DocumentErrors, ConfigError):
        return []
    base = path.parent
    baseline = list(_matching(config.policies.baseline, base))
    folders = sorted({one.parent for one in baseline})
    return [
        *baseline,
        *_matching(config.policies.rules, base),
        *_matching(config.policies.cases, base),
        base / config.keys.file,
        *_beside(folders, "*.sig"),
        *_beside((folder / FOLDER for folder in folders), "*"),
    ]


def _matching(patterns: tuple[str, ...], base: Path) -> Iterator[Path]:
    for pattern in patterns:
        try:
            yield from expand((pattern,), base)
        except ConfigError:
            continue  # it matches nothing now; loading says so


def _beside(folders: Iterable[Path], pattern: str) -> Iterator[Path]:
    for folder in folders:
        yield from (one for one in folder.glob(pattern) if one.is_file())


def _references(path: Path, base: Path) -> Iterator[Path]:
    if path.suffix not in (".yaml", ".yml"):
        return
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for name in _REFERENCE.findall(text):
        yield base / name


def needs_restart(old: Config, new: Config) -> list[str]:
    """Settings that only a new process can take up, and that differ."""
    fixed = ("id", "region", "listen", "admin", "workers")
    found = [f"router.{n}" for n in fixed if getattr(old.router, n) != getattr(new.router, n)]
    longest = max(old.router.limits.deadline, LEASE - 60)
    if new.state is not None and new.router.limits.deadline > longest:
        found.append("router.limits.deadline")  # seats in Redis are leased for as long
    if old.watch != new.watch:
        found.append("watch")
    if old.log != new.log:
        found.append("log")
    if old.state != new.state:
        found.append("state")
    if old.idempotency != new.idempotency:
        found.append("idempotency")
    if old.grading != new.grading:
        found.append("grading")
    return found


def signing_key(config: Config, base: Path) -> bytes:
    """What tells the log's lasting key from another one in the same file; empty for one in KMS."""
    scheme, _, name = config.log.signing_key.partition(":")
    return b"" if scheme == "kms" else _digest(base / name)


def read_at_start(config: Config, base: Path) -> dict[str, bytes]:
    """The secrets that are read at the start alone, as digests of their files, by setting."""
    log = config.log
    named = {"log.kms.credentials": log.kms.credentials}
    if log.anchor is not None:
        named["log.anchor.credentials"] = log.anchor.credentials
    if log.seal is not None:
        named["log.seal.credentials"] = log.seal.credentials
    for number, one in enumerate(log.exports):
        named[f"log.exports[{number}].token"] = one.token
    return {
        name: _digest(base / one.removeprefix("file:"))
        for name, one in named.items()
        if one is not None and one.startswith("file:")
    }
