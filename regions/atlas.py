"""The atlas: all atoms of one catalog, numbered, and the terms boundaries are built from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from regions.countries import ISO_3166_1, Countries
from regions.places import (
    UNKNOWN_BIT,
    Area,
    Atom,
    Boundary,
    Elsewhere,
    Partition,
    PlaceError,
    PlaceSet,
    Region,
    Unknown,
)


class Atlas:
    """The numbered atoms of one catalog, and the terms boundaries are built from.

    Args:
        regions: every region, of every provider; ids must be unique.
        areas: the areas vendors' facts speak of. One area per (partition, country) that
            has a region is added by itself.
        partitions: partitions without any listed region (vendors that name none).
        jurisdictions: word → ISO 3166-1 codes, as `EU` → 27 codes. Words are upper case.
        territories: state → codes of places that are listed apart and may count as its own,
            as `US` → `PR`. They are never surely inside the state, nor surely outside.
        subdivisions: ISO 3166-2 codes that may be used as words, beside those of the regions.
        seed: digest of whatever else the catalog holds; part of the atlas' digest.

    Raises:
        PlaceError: a duplicate region, or a word that is also another country's code.
    """

    __slots__ = (
        "_atoms",
        "_bits",
        "_by_country",
        "_elsewhere",
        "_near",
        "_open",
        "digest",
        "jurisdictions",
        "subdivisions",
        "territories",
    )

    def __init__(
        self,
        regions: Iterable[Region],
        areas: Iterable[Area] = (),
        partitions: Iterable[Partition] = (),
        jurisdictions: Mapping[str, frozenset[str]] | None = None,
        seed: str = "",
        subdivisions: Iterable[str] = (),
        territories: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        ordered = sorted(regions, key=lambda r: r.id)
        _refuse_duplicates(ordered)
        _check_jurisdictions(jurisdictions or {})
        _check_territories(territories or {})
        every_area = {Area(r.partition, r.country) for r in ordered} | set(areas)
        worlds = {a.partition for a in every_area} | set(partitions)
        self.jurisdictions: Mapping[str, frozenset[str]] = dict(jurisdictions or {})
        self.territories: Mapping[str, frozenset[str]] = dict(territories or {})
        self.subdivisions: frozenset[str] = frozenset(subdivisions) | {
            r.subdivision for r in ordered if r.subdivision
        }
        self._atoms: tuple[Atom, ...] = (
            Unknown(),
            *ordered,
            *sorted(every_area),
            *(Elsewhere(p) for p in sorted(worlds)),
        )
        self._bits: Mapping[str, int] = {a.id: 1 << n for n, a in enumerate(self._atoms)}
        self._elsewhere: Mapping[Partition, int] = {
            a.partition: self._bits[a.id] for a in self._atoms if isinstance(a, Elsewhere)
        }
        self._by_country: Mapping[str, int] = self._index_countries()
        self._near: Mapping[str, int] = self._index_near()
        self._open: int = self._mask(
            a for a in self._atoms if isinstance(a, Unknown) or a.partition.is_open
        )
        self.digest: str = self._digest(seed)

    # -- reading -----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._atoms)

    def __contains__(self, place_id: object) -> bool:
        return place_id in self._bits

    def atoms_of(self, mask: int) -> Iterator[Atom]:
        """The atoms of a mask, in atlas order."""
        while mask:
            low = mask & -mask
            yield self._atoms[low.bit_length() - 1]
            mask ^= low

    @property
    def regions(self) -> tuple[Region, ...]:
        """Every region, by id."""
        return tuple(a for a in self._atoms if isinstance(a, Region))

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Every partition, of every provider."""
        return tuple(sorted(self._elsewhere))

    def region(self, region_id: str) -> Region:
        """The region with this id.

        Raises:
            PlaceError: no such region.
        """
        atom = self._atoms[self._bits.get(region_id, 1).bit_length() - 1]
        if isinstance(atom, Region):
            return atom
        near = [one.id for one in self.regions if one.id.partition(":")[2] == region_id]
        said = (
            f"did you mean {' or '.join(f'`{one}`' for one in near)}?"
            if near
            else "see `domicile regions list`"
        )
        raise PlaceError(f"region `{region_id}` is not in the catalog; {said}")

    def territories_of(self, states: Iterable[str]) -> frozenset[str]:
        """The places listed apart that may count as those of any of these states."""
        return frozenset[str]().union(*(self.territories.get(state, ()) for state in states))

    # -- footprints --------------------------------------------------------------------

    def place(self, *ids: str) -> PlaceSet:
        """The set of these atoms, by id.

        Raises:
            PlaceError: an id that is not in the catalog, or none at all.
        """
        if not ids:
            raise PlaceError("an empty set of places lies nowhere; give at least one place")
        mask = 0
        for place_id in ids:
            bit = self._bits.get(place_id)
            if bit is None:
                raise PlaceError(f"place `{place_id}` is not in the catalog")
            mask |= bit
        return PlaceSet(self, mask)

    @property
    def unknown(self) -> PlaceSet:
        """The set that holds only the unknown."""
        return PlaceSet(self, UNKNOWN_BIT)

    # -- boundary terms ----------------------------------------------------------------

    def worldwide(self) -> Boundary:
        """All commercial and sovereign places, listed or not, the unknown too."""
        return Boundary(self, self._open, self._open)

    def nowhere(self) -> Boundary:
        """The empty boundary: what a lapsed member leaves."""
        return Boundary(self, 0, 0)

    def country(self, code: str) -> Boundary:
        """Regions and areas of a country, in commercial and sovereign partitions.

        Those of its territories are possibly inside, and so are a state's areas for each of
        its territories: a vendor's "in France" doesn't say without Réunion.
        """
        sure = self._by_country.get(code, 0)
        return Boundary(self, sure, sure | self._near.get(code, 0) | self._open_ended())

    def jurisdiction(self, word: str) -> Boundary:
        """The union of a jurisdiction's countries.

        Raises:
            PlaceError: the word is not in the catalog.
        """
        codes = self.jurisdictions.get(word)
        if codes is None:
            raise PlaceError(f"jurisdiction `{word}` is not in the catalog")
        result = Boundary(self, 0, self._open_ended())
        for code in sorted(codes):
            result |= self.country(code)
        return result

    def subdivision(self, code: str) -> Boundary:
        """Regions known to be in an ISO 3166-2 subdivision, as `CA-QC`.

        A region of the country whose subdivision is not known is possibly inside.
        """
        country = code.partition("-")[0]
        near = [r for r in self.regions if r.country == country and r.partition.is_open]
        sure = self._mask(r for r in near if r.subdivision == code)
        maybe = self._mask(r for r in near if r.subdivision in (None, code))
        areas = self._areas({country}, {p for p in self._elsewhere if p.is_open})
        return Boundary(self, sure, sure | maybe | areas | self._open_ended())

    def one_region(self, region_id: str) -> Boundary:
        """Exactly one region, of any partition.

        Raises:
            PlaceError: no such region.
        """
        region = self.region(region_id)
        sure = self._bits[region.id]
        areas = self._areas({region.country, *self._states(region.country)}, {region.partition})
        return Boundary(self, sure, sure | areas | self._elsewhere[region.partition] | UNKNOWN_BIT)

    def partition(self, name: str) -> Boundary:
        """Every listed region of a partition, by `provider/name` or a bare unique name.

        Raises:
            PlaceError: no such partition.
        """
        worlds = [p for p in self._elsewhere if name in (p.id, p.name)]
        if not worlds:
            known = ", ".join(p.id for p in self.partitions)
            raise PlaceError(f"partition `{name}` is not in the catalog; known: {known}")
        return self._of_partitions(worlds)

    def provider(self, name: str) -> Boundary:
        """Every listed region of a provider's commercial and sovereign partitions.

        Raises:
            PlaceError: no such provider.
        """
        worlds = [p for p in self._elsewhere if p.provider == name and p.is_open]
        if not worlds:
            raise PlaceError(f"provider `{name}` is not in the catalog")
        return self._of_partitions(worlds)

    # -- building ----------------------------------------------------------------------

    def _of_partitions(self, worlds: Iterable[Partition]) -> Boundary:
        chosen = set(worlds)
        inside = [a for a in self._atoms if not isinstance(a, Unknown) and a.partition in chosen]
        sure = self._mask(a for a in inside if isinstance(a, Region))
        return Boundary(self, sure, self._mask(inside) | UNKNOWN_BIT)

    def _open_ended(self) -> int:
        """What may lie in any country: every open `Elsewhere`, and the unknown."""
        mask = UNKNOWN_BIT
        for partition, bit in self._elsewhere.items():
            if partition.is_open:
                mask |= bit
        return mask

    def _mask(self, atoms: Iterable[Atom]) -> int:
        mask = 0
        for atom in atoms:
            mask |= self._bits[atom.id]
        return mask

    def _index_countries(self) -> dict[str, int]:
        index: dict[str, int] = {}
        for atom in self._atoms:
            if isinstance(atom, Region | Area) and atom.partition.is_open:
                index[atom.country] = index.get(atom.country, 0) | self._bits[atom.id]
        return index

    def _index_near(self) -> dict[str, int]:
        """Country → what is not surely inside it, nor surely outside."""
        near: dict[str, int] = {}
        for state, codes in self.territories.items():
            areas = self._areas({state}, {p for p in self._elsewhere if p.is_open})
            for code in codes:
                near[state] = near.get(state, 0) | self._by_country.get(code, 0)
                near[code] = near.get(code, 0) | areas
        return near

    def _states(self, territory: str) -> Iterator[str]:
        return (state for state, codes in self.territories.items() if territory in codes)

    def _areas(self, countries: set[str], worlds: set[Partition]) -> int:
        return self._mask(
            a
            for a in self._atoms
            if isinstance(a, Area) and a.country in countries and a.partition in worlds
        )

    def _digest(self, seed: str) -> str:
        text = hashlib.sha256(seed.encode())
        for atom in self._atoms:
            text.update(repr(atom).encode())
        for words in (self.jurisdictions, self.territories):
            text.update(repr(sorted((w, sorted(c)) for w, c in words.items())).encode())
        text.update(repr(sorted(self.subdivisions)).encode())
        return text.hexdigest()


def _refuse_duplicates(regions: list[Region]) -> None:
    seen: set[str] = set()
    for region in regions:
        if region.id in seen:
            raise PlaceError(f"region `{region.id}` stands twice in the catalog")
        seen.add(region.id)


def _check_jurisdictions(jurisdictions: Mapping[str, frozenset[str]]) -> None:
    for word, codes in jurisdictions.items():
        Countries.of(codes)
        if word in ISO_3166_1 and codes != {word}:
            raise PlaceError(f"jurisdiction `{word}` is also a country code and must mean it")


def _check_territories(territories: Mapping[str, frozenset[str]]) -> None:
    for state, codes in territories.items():
        Countries.of({state, *codes})
        if state in codes:
            raise PlaceError(f"`{state}` can't be a territory of itself")
