"""The catalog: every place, and every fact about vendors, that the program knows.

The facts ship as package data; an operator's own regions (`self:…`) are laid over them.
One catalog is immutable; its digest names it in every decision.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TypeVar

from pydantic import BaseModel

from regions.atlas import Atlas
from regions.countries import ISO_3166_1, code_hint
from regions.document import parse_as
from regions.facts import (
    BedrockFacts,
    BedrockFile,
    JurisdictionsFile,
    OffersFile,
    OperatorsFile,
    OperatorsRow,
    RegionsFile,
    SubdivisionsFile,
    bedrock_facts,
)
from regions.places import Area, Partition, PartitionKind, PlaceError, Region

_File = TypeVar("_File", bound=BaseModel)

SELF = Partition("self", "self", PartitionKind.COMMERCIAL)
DAY = 86_400.0
MAX_FACT_AGE = 90 * DAY
CLOUDS = ("aws", "azure", "gcp")
VENDORS = (
    "anthropic",
    "azure",
    "cohere",
    "databricks",
    "mistral",
    "openai",
    "openrouter",
    "snowflake",
    "vertex",
)
_OWN_NAME = re.compile(r"^self:[a-z0-9][a-z0-9-]{0,62}$")


@dataclass(frozen=True, slots=True)
class OwnRegion:
    """A place the operator runs, as configured: coordinates in degrees."""

    country: str
    subdivision: str | None = None
    lat: float | None = None
    lon: float | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Catalog:
    """Places and facts, with the digest that names them.

    Attributes:
        atlas: all places.
        digest: SHA-256, hex, over the data files, own regions and `max_fact_age`.
        date: the newest day on which a fact was checked.
        max_fact_age: seconds after which a vendor's fact reads as unknown.
        offers: vendor → its selectors.
        operators: partition name → who runs it.
    """

    atlas: Atlas
    digest: str
    date: dt.date
    max_fact_age: float
    offers: Mapping[str, OffersFile] = field(repr=False)
    operators: Mapping[str, OperatorsRow] = field(repr=False)
    operators_source: str
    operators_checked_on: dt.date
    bedrock: BedrockFacts = field(repr=False)
    jurisdiction_sources: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def load(
        cls,
        own: Mapping[str, OwnRegion] | None = None,
        max_fact_age: float = MAX_FACT_AGE,
        data: Mapping[str, bytes] | None = None,
    ) -> Catalog:
        """The catalog of the package's facts with an operator's own regions.

        Args:
            own: `self:` region id → its place.
            max_fact_age: seconds; facts about vendors age, a region's country doesn't.
            data: file name → content, instead of the package's own files.

        Raises:
            PlaceError: an own region without a known country, or outside `self:`.
            DocumentErrors: a data file that can't be read.
        """
        raw = dict(data) if data is not None else dict(package_data())
        return _build(_Files(raw), dict(own or {}), max_fact_age)

    def until(self, checked_on: dt.date) -> float:
        """When a fact checked on that day starts to read as unknown, in epoch seconds."""
        return epoch(checked_on) + self.max_fact_age


def epoch(day: dt.date) -> float:
    """The start of a day, UTC, in seconds since the epoch."""
    return dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()


def package_data() -> Iterator[tuple[str, bytes]]:
    """Names and contents of the package's data files, by name."""
    folder = files("regions").joinpath("data")
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".yaml"):
            yield entry.name, entry.read_bytes()


# -- building ----------------------------------------------------------------------------


class _Files:
    """The data files, read and checked on demand."""

    def __init__(self, raw: Mapping[str, bytes]) -> None:
        self._raw = raw

    def read(self, name: str, model: type[_File]) -> _File:
        content = self._raw.get(name)
        if content is None:
            raise PlaceError(f"the catalog has no file `{name}`; install the package again")
        return parse_as(content, f"regions/data/{name}", model)[1]

    def digest(self) -> str:
        text = hashlib.sha256()
        for name, content in sorted(self._raw.items()):
            text.update(f"{name}\0{len(content)}\0".encode())
            text.update(content)
        return text.hexdigest()


def _build(source: _Files, own: dict[str, OwnRegion], max_fact_age: float) -> Catalog:
    clouds = [source.read(f"regions-{cloud}.yaml", RegionsFile) for cloud in CLOUDS]
    words = source.read("jurisdictions.yaml", JurisdictionsFile)
    subdivisions = source.read("subdivisions.yaml", SubdivisionsFile)
    operators = source.read("operators.yaml", OperatorsFile)
    offers = {v: source.read(f"{v}.yaml", OffersFile) for v in VENDORS}
    bedrock = source.read("bedrock.yaml", BedrockFile)
    _check_codes(own, words)
    known = [*(r for cloud in clouds for r in _regions(cloud)), *_own_regions(own)]
    partitions = _partitions(known, offers)
    atlas = Atlas(
        known,
        areas=_areas(offers, partitions),
        partitions=partitions.values(),
        jurisdictions={w: frozenset(row.countries) for w, row in words.jurisdictions.items()},
        seed=f"{source.digest()} {max_fact_age!r}",
        subdivisions=(f"{c}-{s}" for c, codes in subdivisions.subdivisions.items() for s in codes),
        territories={s: frozenset(row.countries) for s, row in words.territories.items()},
    )
    return Catalog(
        atlas=atlas,
        digest=atlas.digest,
        date=_newest([*clouds, words, operators, bedrock, *offers.values()]),
        max_fact_age=max_fact_age,
        offers=offers,
        operators=operators.partitions,
        operators_source=operators.source,
        operators_checked_on=operators.checked_on,
        bedrock=bedrock_facts(bedrock),
        jurisdiction_sources={w: row.source for w, row in words.jurisdictions.items()},
    )


def _regions(cloud: RegionsFile) -> Iterator[Region]:
    for name, row in cloud.partitions.items():
        partition = Partition(cloud.provider, name, row.kind)
        for code, region in row.regions.items():
            yield Region(
                id=f"{cloud.provider}:{code}",
                partition=partition,
                country=region.country,
                subdivision=region.subdivision,
                name=region.city,
                lat=region.lat,
                lon=region.lon,
                opt_in=region.opt_in,
            )


def _own_regions(own: Mapping[str, OwnRegion]) -> Iterator[Region]:
    for region_id, place in own.items():
        _check_own(region_id, place)
        yield Region(
            region_id, SELF, place.country, place.subdivision, place.name, place.lat, place.lon
        )


def _check_own(region_id: str, place: OwnRegion) -> None:
    if not _OWN_NAME.match(region_id):
        raise PlaceError(
            f"own region `{region_id}` must be `self:` and a name of lower-case letters, digits "
            "and `-`, as `self:fra1`; regions of providers come with the catalog"
        )
    if place.country not in ISO_3166_1:
        raise PlaceError(
            f"own region `{region_id}`: `{place.country}` is not an ISO 3166-1 country code"
            f"{code_hint(place.country)}"
        )
    if place.subdivision and not place.subdivision.startswith(f"{place.country}-"):
        raise PlaceError(
            f"own region `{region_id}`: subdivision `{place.subdivision}` is not in "
            f"`{place.country}`; write it as `{place.country}-XX` (ISO 3166-2)"
        )
    _check_degrees(region_id, "lat", place.lat, 90)
    _check_degrees(region_id, "lon", place.lon, 180)


def _check_codes(own: Mapping[str, OwnRegion], words: JurisdictionsFile) -> None:
    """One place has one country: what ISO lists apart is not to be written as a part too."""
    apart = {part: code for row in words.territories.values() for part, code in row.also.items()}
    for region_id, place in own.items():
        code = apart.get(place.subdivision or "")
        if code is not None:
            raise PlaceError(
                f"own region `{region_id}`: `{place.subdivision}` has a country code of its own; "
                f"write `country: {code}` and no subdivision"
            )


def _check_degrees(region_id: str, name: str, value: float | None, limit: int) -> None:
    # `not <=` also refuses nan.
    if value is not None and not abs(value) <= limit:
        raise PlaceError(f"own region `{region_id}`: `{name}` must lie in -{limit} to {limit}")


def _partitions(regions: list[Region], offers: Mapping[str, OffersFile]) -> dict[str, Partition]:
    found = {r.partition.name: r.partition for r in regions} | {SELF.name: SELF}
    for vendor in offers.values():
        name = vendor.partition
        found.setdefault(name, Partition(name, name, PartitionKind.COMMERCIAL))
    return found


def _areas(offers: Mapping[str, OffersFile], partitions: Mapping[str, Partition]) -> Iterator[Area]:
    for vendor in offers.values():
        partition = partitions[vendor.partition]
        for row in vendor.offers.values():
            for promise in (row.process, row.retain):
                for country in promise.countries if promise else ():
                    yield Area(partition, country)


_Dated = RegionsFile | JurisdictionsFile | OperatorsFile | BedrockFile | OffersFile


def _newest(dated: list[_Dated]) -> dt.date:
    days = [file.checked_on for file in dated]
    for file in dated:
        if isinstance(file, OffersFile):
            days.extend(row.checked_on for row in file.offers.values() if row.checked_on)
    return max(days)
