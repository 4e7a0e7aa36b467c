"""What the snapshots stored beside a log say of places, recipients, assurances and trials.

Everything comes from the snapshot that an entry names, never from today's configuration or facts.
A snapshot that is missing or can't be loaded is said; what it would have told is `not known`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import orjson

from policies.model import Rule
from regions.boundaries import boundary
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Assurance
from regions.places import Area, Atom, PlaceError, Region, Unknown
from router.audit.layout import Folder
from router.decisions.replayed import World, WorldMissing, stored, world
from router.entries.recipients import NOT_KNOWN, recipients

_FOLDERS: Final = frozenset({"baseline", "rules", "accepted"})
NONE: Final = "none recorded"


@dataclass(frozen=True, slots=True)
class Spot:
    """A place as a picture needs it; coordinates in degrees, `None` where not known."""

    id: str
    country: str
    name: str
    lat: float | None
    lon: float | None


@dataclass(slots=True)
class Facts:
    """Loads each snapshot once; `missing` are those that can't be, with why."""

    folder: Folder
    worlds: dict[str, World | None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    spots: dict[str, Spot] = field(default_factory=dict)
    ends: dict[str, list[float]] = field(default_factory=dict)
    trials: dict[tuple[str, str, tuple[str, ...], int], str] = field(default_factory=dict)
    assurances: dict[tuple[str, Assurance], None] = field(default_factory=dict)

    def world(self, digest: str) -> World | None:
        """A stored snapshot's world; an entry that names none has none."""
        if not digest:
            return None
        if digest not in self.worlds:
            try:
                self.worlds[digest] = world(self.folder, digest)
            except WorldMissing as error:
                self.worlds[digest] = None
                self.missing[digest] = str(error)
        return self.worlds[digest]

    def countries(self, digest: str, places: Iterable[str]) -> tuple[str, ...]:
        """The countries that places lie in; the places are known to the map from now on."""
        found = set()
        for place in places:
            spot = self.spots.get(place)
            if spot is None or spot.country == NOT_KNOWN:
                spot = self.spots[place] = self._spot(digest, place)
            found.add(spot.country)
        return tuple(sorted(found))

    def recipient(self, digest: str, places: Iterable[str]) -> str:
        """Who runs these places, by the catalog of then: the entities that receive data there."""
        found = self.world(digest)
        if found is None:
            return NOT_KNOWN
        atoms = (_atom(found, place) for place in places)
        return "; ".join(recipients(found.catalog, atoms)) or NOT_KNOWN

    def mechanism(self, digest: str, endpoint: str, now: float) -> str:
        """The assurances that an endpoint held at a time, by name."""
        found = self.world(digest)
        known = None if found is None else found.policy.endpoints.get(endpoint)
        if known is None:
            return NOT_KNOWN
        held = [one for one in known.assurances if one.held(now)]
        self.assurances.update(dict.fromkeys((endpoint, one) for one in held))
        return ", ".join(sorted({one.name for one in held})) or NONE

    def attempted(self, digest: str, endpoint: str, now: float) -> tuple[str, ...]:
        """Where a plain call to an endpoint may be processed, by the snapshot."""
        found = self.world(digest)
        known = None if found is None else found.policy.endpoints.get(endpoint)
        if found is None or known is None:
            return ("unknown",)
        return footprint(known, PLAIN_CALL, found.catalog, now).process.ids

    def trial(self, digest: str, rule: str, places: tuple[str, ...], now: float) -> str:
        """What a rule on trial would have said of the places that were used."""
        key = (digest, rule, places, self.spell(digest, now))
        if key not in self.trials:
            self.trials[key] = self._trial(digest, rule, places, now)
        return self.trials[key]

    def _trial(self, digest: str, rule: str, places: tuple[str, ...], now: float) -> str:
        found = self.world(digest)
        if found is None:
            return NOT_KNOWN
        rules = [one for one in found.policy.rules if one.name == rule]
        if not rules:
            return NOT_KNOWN
        try:
            where = found.policy.atlas.place(*places)
        except PlaceError:
            return "nothing was processed"
        bounds = [one.process.at(now) for one in rules if one.process is not None]
        if not bounds:
            return _other(rules)
        return "places allowed" if all(b.contains(where) for b in bounds) else "places not allowed"

    def spell(self, digest: str, now: float) -> int:
        """A number that differs when something of a snapshot lapsed between two times."""
        ends = self.ends.get(digest)
        if ends is None:
            found = self.world(digest)
            listed = [] if found is None else found.policy.ends()
            if found is not None:
                held = (a for e in found.policy.endpoints.values() for a in e.assurances)
                listed += [one.until for one in held if one.until is not None]
            ends = self.ends[digest] = sorted(listed)
        return bisect_right(ends, now)

    def changed(self, before: str, after: str) -> str:
        """What differs between two stored snapshots, by the names of files and parts."""
        one, other = _parts(self.folder, before), _parts(self.folder, after)
        if one is None or other is None:
            return ""
        gone, new = one.keys() - other.keys(), other.keys() - one.keys()
        words = {**dict.fromkeys(gone, "removed"), **dict.fromkeys(new, "added")}
        differ = (name for name in {*one, *other} if one.get(name) != other.get(name))
        found = (f"{name} {words.get(name, 'changed')}" for name in sorted(differ))
        return ", ".join(found)

    def sits(self, words: str) -> frozenset[str]:
        """The place ids of a boundary, by the newest snapshot that was loaded.

        Raises:
            PlaceError: a word without meaning, or no snapshot to look it up in.
        """
        loaded = [one for one in self.worlds.values() if one is not None]
        if not loaded:
            raise PlaceError("no stored snapshot says which places there are")
        return frozenset(boundary(words, loaded[-1].policy.atlas).places.ids)

    def _spot(self, digest: str, place: str) -> Spot:
        found = self.world(digest)
        atom = None if found is None else _atom(found, place)
        if isinstance(atom, Region):
            return Spot(place, atom.country, atom.name, atom.lat, atom.lon)
        country = atom.country if isinstance(atom, Area) else NOT_KNOWN
        return Spot(place, country, "", None, None)


def _parts(folder: Folder, digest: str) -> dict[str, object] | None:
    """A snapshot's files by `baseline/NAME`, and its other parts; None without it."""
    if not digest:
        return None
    try:
        content = orjson.loads(stored(folder, digest))
    except (WorldMissing, ValueError):
        return None  # said where a decision names it
    parts: dict[str, object] = {}
    for name, value in content.items() if isinstance(content, dict) else ():
        if name in _FOLDERS and isinstance(value, dict):
            parts |= {f"{name}: {file}": text for file, text in value.items()}
        else:
            parts[name] = value
    return parts


def _atom(found: World, place: str) -> Atom:
    atlas = found.policy.atlas
    return next(iter(atlas.place(place))) if place in atlas else Unknown()


def _other(rules: Iterable[Rule]) -> str:
    kinds = sorted(
        {"retention" for one in rules if one.retain is not None}
        | {"operators" for one in rules if one.operate is not None}
        | {"assurances" for one in rules if one.require}
    )
    return f"would bind {', '.join(kinds) or 'obligations'}, not judged here"
