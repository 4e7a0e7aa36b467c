"""What `serve` reads at a start beside the snapshot: secrets of the router's own file, the URL of
Redis behind one of them, and files of replicas. `check` reads them too; a reload doesn't: they
are read, or looked at, elsewhere while a router runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from policies.findings import Finding, Severity
from regions.document import Document, Tree
from router.config import Config, ConfigError
from router.settings import bounded
from router.settings.members import listed, looked_up
from router.settings.secrets import resolve
from router.snapshot import Snapshot

_SCHEMES: Final = ("env:", "file:", "aws-secret:")
_REDIS: Final = ("state", "redis")
_ELSEWHERE: Final = (("log", "signing_key"), ("router", "cache_key"), ("policies",))
"""Where what stands behind a reference is read for more than being there."""

_Place = tuple[str | int, ...]


def unusable(
    document: Document, config: Config, environment: Mapping[str, str], base: Path
) -> Iterator[str]:
    """The log's folder, and references of the router's own file that lead nowhere, with their
    places.

    Args:
        document: `domicile.yaml`; `config` is what it says.
        base: the folder that paths are relative to.
    """
    folder = ("log", "dir")
    if why := no_folder(base / config.log.dir):
        yield f"{document.mark(folder)}: `log.dir`: {why}"
    for place, text in _scalars(document.tree):
        if not text.startswith(_SCHEMES) or any(place[: len(one)] == one for one in _ELSEWHERE):
            continue
        try:
            found = resolve(text, environment, base)
            if place == _REDIS:
                _named(found)
        except ConfigError as error:
            yield f"{document.mark(place)}: `{'.'.join(map(str, place))}`: {error}"


def no_folder(path: Path) -> str:
    """Why nothing can be written into a folder, which is made where it isn't there; empty when
    something can."""
    there = next(one for one in (path, *path.resolve().parents) if os.path.lexists(one))
    if not there.is_dir():
        return f"`{there}` is no folder: name another one"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"`{there}` can't be written by this user: name another folder, or give it to them"
    return ""


def _named(url: bytes) -> None:
    # most routers need none of it to start
    from router.state.opening import WANTED, to_redis

    try:
        to_redis(url.decode("utf-8", "replace"))
    except ValueError:
        raise ConfigError(f"it leads to {WANTED}") from None


def _scalars(tree: Tree, place: _Place = ()) -> Iterator[tuple[_Place, str]]:
    if isinstance(tree, str):
        yield place, tree
    elif isinstance(tree, dict):
        for name, value in tree.items():
            yield from _scalars(value, (*place, name))
    else:
        for number, value in enumerate(tree):
            yield from _scalars(value, (*place, number))


def unread_replicas(snapshot: Snapshot, base: Path) -> Iterator[Finding]:
    """Fleets whose file has no replica now. No error: it may be written by what starts later."""
    for endpoint in looked_up(snapshot.policy):
        way, _, name = endpoint.settings["replicas"].partition(":")
        why = _why(base / name) if way == "file" else ""
        if why:
            message = f"endpoint `{endpoint.name}` has no replicas now: `{name}` {why}"
            yield Finding(Severity.WARNING, "replicas_unread", message, endpoint.mark)


def _why(path: Path) -> str:
    """Why a file of replicas can't be used, or an empty text."""
    try:
        text = bounded.read(path).decode("utf-8-sig")
    except OSError as error:
        return f"can't be read: {error.strerror}"
    except UnicodeDecodeError:
        return "is not UTF-8"
    try:
        listed(text)
    except ValueError as error:
        return str(error)
    return ""
