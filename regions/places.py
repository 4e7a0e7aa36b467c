"""Places: the atoms a footprint is made of, and the boundaries it is tested against.

A vendor promises a region, or only a country, or less than that. So there are three
kinds of atom: a `Region`; an `Area` (some region of one provider in one country, members
unknown); and `Elsewhere` (any place of one provider, open-ended). A fourth atom stands
for *unknown*: nothing at all is promised.

An `Atlas` (see `regions.atlas`) numbers the atoms of one catalog. A `PlaceSet` is an
integer mask over these numbers. A `Boundary` is two masks, *surely inside* and *possibly
inside*; a footprint is inside when no bit of it lies outside `sure`. Every set belongs to
one atlas; mixing two is an error, since the numbers mean different places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regions.atlas import Atlas


class PlaceError(ValueError):
    """A place or boundary that can't be built; the message says why and what to do."""


class PartitionKind(StrEnum):
    """What a partition is for; only the first two are reached by country words."""

    COMMERCIAL = "commercial"
    SOVEREIGN = "sovereign"
    GOVERNMENT = "government"
    CHINA = "china"
    ISOLATED = "isolated"


_OPEN_KINDS = frozenset({PartitionKind.COMMERCIAL, PartitionKind.SOVEREIGN})


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A separate world of one provider, with its own accounts, names and profiles."""

    provider: str
    name: str
    kind: PartitionKind = PartitionKind.COMMERCIAL

    @property
    def id(self) -> str:
        """`aws`, or `provider/name` where the two differ: `aws/aws-eusc`."""
        return self.name if self.provider == self.name else f"{self.provider}/{self.name}"

    @property
    def is_open(self) -> bool:
        """Whether country, jurisdiction and `worldwide` words reach into it."""
        return self.kind in _OPEN_KINDS


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """One region of one provider; `id` is `provider:name`, as in `aws:eu-central-1`."""

    id: str
    partition: Partition
    country: str
    subdivision: str | None = None
    name: str = ""
    lat: float | None = None
    lon: float | None = None
    opt_in: bool = False

    @property
    def provider(self) -> str:
        """Whose region it is: `aws`, `azure`, `gcp`, `self`."""
        return self.partition.provider

    @property
    def code(self) -> str:
        """The provider's own name of the region: `eu-central-1`."""
        return self.id.partition(":")[2]


@dataclass(frozen=True, slots=True, order=True)
class Area:
    """Some region of a provider in one country: the vendor promises no more than that."""

    partition: Partition
    country: str

    @property
    def id(self) -> str:
        """`area:partition:COUNTRY`."""
        return f"area:{self.partition.id}:{self.country}"


@dataclass(frozen=True, slots=True, order=True)
class Elsewhere:
    """Any place of a provider's partition; members may be added without notice."""

    partition: Partition

    @property
    def id(self) -> str:
        """`elsewhere:partition`."""
        return f"elsewhere:{self.partition.id}"


@dataclass(frozen=True, slots=True, order=True)
class Unknown:
    """No promise at all."""

    @property
    def id(self) -> str:
        """Always `unknown`."""
        return "unknown"


Atom = Unknown | Region | Area | Elsewhere
UNKNOWN_BIT = 1


@dataclass(frozen=True, slots=True)
class PlaceSet:
    """An immutable set of atoms of one atlas."""

    atlas: Atlas
    mask: int

    def __or__(self, other: PlaceSet) -> PlaceSet:
        _same_atlas(self.atlas, other.atlas)
        return PlaceSet(self.atlas, self.mask | other.mask)

    def __bool__(self) -> bool:
        return self.mask != 0

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __iter__(self) -> Iterator[Atom]:
        return self.atlas.atoms_of(self.mask)

    @property
    def is_known(self) -> bool:
        """Whether every atom is a place, not the unknown."""
        return not self.mask & UNKNOWN_BIT

    @property
    def ids(self) -> tuple[str, ...]:
        """The atoms' ids, sorted: what logs, headers and messages show."""
        return tuple(sorted(atom.id for atom in self))

    @property
    def countries(self) -> frozenset[str]:
        """Countries named by the regions and areas; `Elsewhere` and unknown name none."""
        return frozenset(a.country for a in self if isinstance(a, Region | Area))


@dataclass(frozen=True, slots=True)
class Boundary:
    """A compiled boundary: the atoms surely inside, and those possibly inside.

    `sure` is always a subset of `possible`. Footprints are tested against `sure`.
    """

    atlas: Atlas
    sure: int
    possible: int

    def __or__(self, other: Boundary) -> Boundary:
        _same_atlas(self.atlas, other.atlas)
        return Boundary(self.atlas, self.sure | other.sure, self.possible | other.possible)

    def __and__(self, other: Boundary) -> Boundary:
        _same_atlas(self.atlas, other.atlas)
        return Boundary(self.atlas, self.sure & other.sure, self.possible & other.possible)

    def __sub__(self, other: Boundary) -> Boundary:
        _same_atlas(self.atlas, other.atlas)
        return Boundary(self.atlas, self.sure & ~other.possible, self.possible & ~other.sure)

    def contains(self, places: PlaceSet) -> bool:
        """Whether every atom is surely inside. An empty set is an error, never `True`."""
        _same_atlas(self.atlas, places.atlas)
        if not places.mask:
            raise PlaceError("an empty set of places lies nowhere; give at least one place")
        return not places.mask & ~self.sure

    def outside(self, places: PlaceSet) -> PlaceSet:
        """The atoms of `places` that are not surely inside."""
        _same_atlas(self.atlas, places.atlas)
        return PlaceSet(self.atlas, places.mask & ~self.sure)

    @property
    def is_empty(self) -> bool:
        """Whether no place at all is surely inside."""
        return self.sure == 0

    @property
    def places(self) -> PlaceSet:
        """The atoms surely inside."""
        return PlaceSet(self.atlas, self.sure)


def _same_atlas(one: Atlas, other: Atlas) -> None:
    if one is not other and one.digest != other.digest:
        raise PlaceError(
            f"places of catalog `{one.digest[:12]}` and of catalog `{other.digest[:12]}` "
            "can't be compared; load both from one catalog"
        )
