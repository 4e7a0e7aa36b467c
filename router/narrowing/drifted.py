"""Footprints that were found to be wider than the catalog says: joined in, never taken away.

A wider footprint only makes fewer requests eligible, so it may be put in force at once. A
narrower one would let more through: that takes a signed acceptance in the baseline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import orjson

from regions.atlas import Atlas
from regions.countries import Countries
from regions.model import Footprint, Retention
from regions.places import PlaceSet
from router.snapshot import Snapshot


def covers(one: Footprint, other: Footprint) -> bool:
    """Whether everything in `other` is in `one`, on every axis; never across two catalogs."""
    if one.process.atlas.digest != other.process.atlas.digest:
        return False
    return not (
        other.process.mask & ~one.process.mask
        or other.retain.mask & ~one.retain.mask
        or other.operate.mask & ~one.operate.mask
    )


Shown = Mapping[str, list[str]]


def shown(footprint: Footprint) -> Shown:
    """A footprint as ids and codes, for the log, the state file and snapshots."""
    kept = footprint.process.atlas.atoms_of(footprint.retain.mask)
    return {
        "process": list(footprint.process.ids),
        "retain": sorted(atom.id for atom in kept),
        "operate": list(footprint.operate.codes),
    }


def read(written: Shown, atlas: Atlas) -> Footprint:
    """The footprint that `shown` wrote, in another catalog: a place it lacks is unknown there."""
    process = _places(written["process"], atlas)
    kept = _places(written["retain"], atlas) if written["retain"] else PlaceSet(atlas, 0)
    return Footprint(
        process or atlas.unknown,
        Retention(kept.mask, "as found by the drift check"),
        _countries(written["operate"]),
        missing=("an acceptance of the places it was found to run in",),
    )


def _places(ids: list[str], atlas: Atlas) -> PlaceSet:
    found = atlas.unknown if any(one not in atlas for one in ids) else PlaceSet(atlas, 0)
    known = [one for one in ids if one in atlas]
    return found | atlas.place(*known) if known else found


def _countries(codes: list[str]) -> Countries:
    if "any" in codes:
        return Countries.any()
    known = Countries.of(code for code in codes if code != "unknown")
    return known | Countries.unknown() if "unknown" in codes or not codes else known


def with_drift(base: Snapshot, found: Mapping[str, Footprint]) -> Snapshot:
    """The snapshot in which these endpoints also run where they were found; digest and all."""
    mine = {name: one for name, one in found.items() if name in base.policy.endpoints}
    if not mine:
        return base
    content: dict[str, object] = orjson.loads(base.content)
    content["drifted"] = {name: shown(one) for name, one in sorted(mine.items())}
    text = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    return replace(base, content=text, digest=hashlib.sha256(text).hexdigest(), drifted=mine)
