"""What would end up outside if a tenant's grant became another boundary. Reads, never moves.

1. what the router writes to, each with its region, and what is stored there already: files of
   exports and answers kept under idempotency keys too;
2. this router itself, which processes every call;
3. the endpoints of the tenant's models, by their footprints.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regions.boundaries import boundary
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.joining import joined
from regions.places import Boundary, PlaceError, PlaceSet
from router.audit.layout import Folder
from router.config import Config, ConfigError
from router.settings.checking import stores
from router.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Standing:
    """One thing of a tenant's: where it is, and whether the new boundary holds it.

    `kind` is `store`, `router` or `endpoint`; `held` says what is there, in words.
    """

    kind: str
    name: str
    places: tuple[str, ...]
    inside: bool
    held: str = ""


def plan_move(
    snapshot: Snapshot, tenant: str, to: str, base: Path, now: float
) -> tuple[Standing, ...]:
    """Everything of the tenant's against the boundary `to`, stores first.

    Args:
        to: a boundary expression; the operator's named boundaries may stand in it.
        base: the configuration's folder, which relative paths start from.
        now: seconds since the epoch.

    Raises:
        ConfigError: no such tenant, or a boundary that can't be read.
    """
    policy = snapshot.policy
    if tenant not in policy.tenants:
        raise ConfigError(f"tenant `{tenant}` is in no baseline file")
    names = {name: timed.at(now) for name, timed in policy.boundaries.items()}
    try:
        bound = boundary(to, policy.atlas, names)
    except PlaceError as error:
        raise ConfigError(str(error)) from None
    return (
        *_stores(snapshot, bound, base),
        _standing("router", snapshot.config.router.id, policy.atlas.place(snapshot.region), bound),
        *_endpoints(snapshot, tenant, bound, now),
    )


def _standing(kind: str, name: str, places: PlaceSet, bound: Boundary, held: str = "") -> Standing:
    return Standing(kind, name, places.ids, bound.contains(places), held)


def _stores(snapshot: Snapshot, bound: Boundary, base: Path) -> Iterator[Standing]:
    """1. Entries of all tenants stand in one log, so the whole of it counts."""
    config = snapshot.config
    held = {"log": stored(base / config.log.dir), **_files(config, base)}
    answers = f"each answer for at most {config.idempotency.window:g} s"
    kept = config.router.region if config.state is None else config.state.region
    held["idempotency keys"] = answers
    here = dict.fromkeys(held, config.router.region)
    for name, region in {**here, **stores(config), "idempotency keys": kept}.items():
        yield _standing(
            "store", name, snapshot.policy.atlas.place(region), bound, held.get(name, "")
        )


def _files(config: Config, base: Path) -> dict[str, str]:
    """Exports to files on this machine, and how long those are."""
    files = {f"log.exports {one.name}": base / one.file for one in config.log.exports if one.file}
    return {
        name: f"{path.stat().st_size} bytes" if path.exists() else "nothing yet"
        for name, path in files.items()
    }


def stored(folder: Path) -> str:
    """What a folder of logs holds, in words."""
    found = [segment.path for log in Folder(folder).logs for segment in log.segments()]
    size = sum(path.stat().st_size for path in found)
    return f"{len(found)} log segments, {size} bytes" if found else "nothing yet"


def _endpoints(snapshot: Snapshot, tenant: str, bound: Boundary, now: float) -> Iterator[Standing]:
    """3."""
    policy = snapshot.policy
    models = policy.tenants[tenant].models
    used = {
        endpoint.name: endpoint
        for name in sorted(policy.models if models is None else models)
        for _, endpoint in policy.candidates(name)
    }
    for name, endpoint in used.items():
        where = footprint(endpoint, PLAIN_CALL, snapshot.catalog, now)
        drifted = snapshot.drifted.get(name)
        where = where if drifted is None else joined(where, drifted)
        yield _standing("endpoint", name, where.process, bound)
