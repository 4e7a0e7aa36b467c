"""A stored snapshot as a world to decide in again: its policy, its catalog, its drift.

Everything comes from beside the log: the policy files and the catalog's own files, so that an
upgraded package, with other facts, still decides an old request by the old ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

import orjson

from policies.gathered import PolicyFile
from policies.loader import load
from policies.model import Policy
from regions.catalog import Catalog
from regions.document import DocumentErrors
from regions.model import Footprint
from regions.places import PlaceError
from router.audit.layout import DIGEST, Folder
from router.config import ConfigError
from router.narrowing.accepted import overlaid, said_in
from router.narrowing.drifted import read

FORMATS: Final = (1,)


class WorldMissing(Exception):
    """A snapshot that can't be decided by again; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class World:
    """What one snapshot holds, in force again.

    `router` and `region` are of the router that decided; `drifted` as in `Snapshot`.
    """

    router: str
    region: str
    policy: Policy
    catalog: Catalog
    drifted: Mapping[str, Footprint]
    peers: tuple[str, ...]


def world(folder: Folder, digest: str) -> World:
    """The world of a stored snapshot.

    Raises:
        WorldMissing: it isn't stored, isn't what its digest says, or can't be loaded.
    """
    content = _object(stored(folder, digest))
    if content.get("format") not in FORMATS or "data" not in content:
        raise WorldMissing(f"snapshot `{digest}` doesn't hold the policy and catalog it names")
    facts = _texts(_object(stored(folder, str(content["data"]))))
    try:
        return _world(content, {name: text.encode() for name, text in facts.items()})
    except (DocumentErrors, PlaceError, ConfigError, KeyError, TypeError) as error:
        raise WorldMissing(f"snapshot `{digest}` can't be loaded here: {error}") from error


def stored(folder: Folder, digest: str) -> bytes:
    """A file beside the log, by its SHA-256 in hex.

    Raises:
        WorldMissing: no such file, or with other bytes.
    """
    path = folder.snapshot(digest)
    if DIGEST.fullmatch(digest) is None or not path.is_file():
        raise WorldMissing(f"`{digest}` is not stored beside the log")
    data = path.read_bytes()
    if sha256(data).hexdigest() != digest:
        raise WorldMissing(f"`{path.name}` was altered: its digest is another")
    return data


def _world(content: Mapping[str, object], data: Mapping[str, bytes]) -> World:
    loaded = load(_files(content["baseline"]), _files(content["rules"]), data=data)
    catalog = overlaid(loaded.catalog, said_in(_files(content["accepted"])))
    if catalog.digest != content["catalog"]:
        raise WorldMissing("the stored facts and regions don't have the catalog's digest")
    router = _mapping(content["router"])
    drifted = _mapping(content.get("drifted", {}))
    peers = content["peers"]
    return World(
        str(router["id"]),
        str(router["region"]),
        loaded.policy,
        catalog,
        {name: read(_shown(one), loaded.policy.atlas) for name, one in drifted.items()},
        tuple(str(_mapping(p)["region"]) for p in (peers if isinstance(peers, list) else [])),
    )


def _files(value: object) -> list[PolicyFile]:
    return [PolicyFile(name, text.encode()) for name, text in _texts(_mapping(value)).items()]


def _shown(value: object) -> dict[str, list[str]]:
    lists = {axis: ids for axis, ids in _mapping(value).items() if isinstance(ids, list)}
    return {axis: [str(one) for one in ids] for axis, ids in lists.items()}


def _object(data: bytes) -> Mapping[str, object]:
    try:
        return _mapping(orjson.loads(data))
    except (ValueError, TypeError) as error:
        raise WorldMissing("a stored snapshot is no JSON object") from error


def _texts(value: Mapping[str, object]) -> dict[str, str]:
    return {name: text for name, text in value.items() if isinstance(text, str)}


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("an object is missing")
    return value
