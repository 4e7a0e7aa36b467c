"""The shapes of the catalog's data files, and what they are compiled to.

Each file in `regions/data/` is one YAML document (see `regions.document`). The pydantic
models here only check it; the rest of the program reads the frozen classes they build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from regions.places import PartitionKind


def _split(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Code = Annotated[str, Field(pattern=r"^[A-Z]{2}$")]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


# -- places ------------------------------------------------------------------------------


class RegionRow(_File):
    """One region as its provider publishes it."""

    country: Code
    subdivision: str | None = None
    city: str
    lat: float | None = None
    lon: float | None = None
    opt_in: bool = False
    status: str = "available"


class PartitionRow(_File):
    """One partition of a provider with its regions, by their own names."""

    kind: PartitionKind
    regions: dict[str, RegionRow]


class RegionsFile(_File):
    """`regions-*.yaml`: all regions of one provider."""

    provider: str
    source: str
    checked_on: date
    subdivisions_source: str
    coordinates_source: str
    partitions: dict[str, PartitionRow]


class JurisdictionRow(_File):
    """One word for a set of countries, with the day from which the set holds."""

    countries: Words
    since: date
    source: str


class TerritoriesRow(_File):
    """Places of one state that ISO 3166-1 lists apart from it.

    Attributes:
        also: codes in ISO 3166-2 that some of them have as parts of the state.
    """

    countries: Words
    since: date
    source: str
    also: dict[str, Code] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _also_of_these(self) -> TerritoriesRow:
        if strange := sorted(set(self.also.values()) - set(self.countries)):
            raise ValueError(f"`also` names {', '.join(strange)}, not in `countries`")
        return self


class JurisdictionsFile(_File):
    """`jurisdictions.yaml`."""

    checked_on: date
    jurisdictions: dict[str, JurisdictionRow]
    territories: dict[Code, TerritoriesRow]


class SubdivisionsFile(_File):
    """`subdivisions.yaml`: country → the second halves of its ISO 3166-2 codes."""

    source: str
    checked_on: date
    subdivisions: dict[str, Words]


# -- vendors -----------------------------------------------------------------------------


class Promise(_File):
    """What a vendor says of a place; several together are a union.

    Attributes:
        countries: areas of the vendor's partition in these countries.
        elsewhere: any place of these partitions, open-ended.
        at_source: the region the endpoint is called in.
        unknown: why nothing is promised.
    """

    countries: Words = ()
    elsewhere: Words = ()
    at_source: bool = False
    unknown: str = ""

    @model_validator(mode="after")
    def _says_something(self) -> Promise:
        if not (self.countries or self.elsewhere or self.at_source or self.unknown):
            raise ValueError("a promise without any place; say `unknown: why`")
        return self


class OfferRow(_File):
    """One selector of a vendor: where it processes and keeps, if `needs` are declared."""

    process: Promise
    retain: Promise | None = None
    needs: dict[str, str] = Field(default_factory=dict)
    source: str | None = None
    checked_on: date | None = None
    note: str = ""


class OffersFile(_File):
    """One vendor's selectors.

    `zero_retention` is the source for what zero data retention means with this vendor, and
    `zero_retention_forgets` names the movers that then store nothing.
    """

    vendor: str
    partition: str
    checked_on: date
    source: str
    offers: dict[str, OfferRow]
    zero_retention: str = ""
    zero_retention_forgets: Words = ()


class OperatorRow(_File):
    """One company that runs a place, and the country whose law reaches it."""

    name: str
    country: Code
    role: str


class LocalOperatorRow(OperatorRow):
    """A company that runs a partition's regions in some countries only."""

    countries: Words


class OperatorsRow(_File):
    """Who runs one partition."""

    everywhere: tuple[OperatorRow, ...]
    by_country: tuple[LocalOperatorRow, ...] = ()
    unknown: str = ""


class OperatorsFile(_File):
    """`operators.yaml`."""

    checked_on: date
    source: str
    partitions: dict[str, OperatorsRow]


# -- Bedrock -----------------------------------------------------------------------------


class RouteRow(_File):
    """Called from any of `from`, a profile may run in any of `to`."""

    sources: Words = Field(alias="from")
    to: Words


class ProfilesRow(_File):
    """Profiles that share one route table."""

    profiles: Words
    routes: tuple[RouteRow, ...]
    source: str = "profiles"


class GlobalRow(_File):
    """Global profiles that can be called from the same regions."""

    profiles: Words
    sources: Words = Field(alias="from")


class InRegionRow(_File):
    """Models by the regions that answer their bare id."""

    models: Words
    runtime: Words = ()
    mantle: Words = ()
    apis: Words = ()


class BedrockFile(_File):
    """`bedrock.yaml`."""

    vendor: Literal["bedrock"]
    checked_on: date
    sources: dict[str, str]
    prefixes: Words
    vendors: Words
    geographic: tuple[ProfilesRow, ...]
    global_: tuple[GlobalRow, ...] = Field(alias="global")
    guardrails: tuple[ProfilesRow, ...]
    in_region: tuple[InRegionRow, ...]
    legacy: Words


@dataclass(frozen=True, slots=True)
class Profile:
    """A cross-region profile: source region → where it may run, all by AWS region name."""

    id: str
    routes: Mapping[str, tuple[str, ...]]
    source: str


@dataclass(frozen=True, slots=True)
class InRegion:
    """Where a model's bare id is answered, by AWS region name."""

    runtime: frozenset[str] = frozenset()
    mantle: frozenset[str] = frozenset()
    apis: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BedrockFacts:
    """All the catalog knows of Bedrock.

    Attributes:
        profiles: geographic profiles by id.
        global_sources: global profile id → regions it was seen callable from.
        guardrails: guardrail profiles by id.
        models: bare model id → where it is answered.
        sources: name of a statement → its source.
    """

    checked_on: date
    prefixes: frozenset[str]
    vendors: frozenset[str]
    profiles: Mapping[str, Profile]
    global_sources: Mapping[str, frozenset[str]]
    guardrails: Mapping[str, Profile]
    models: Mapping[str, InRegion]
    legacy: frozenset[str]
    sources: Mapping[str, str] = field(default_factory=dict)


def bedrock_facts(file: BedrockFile) -> BedrockFacts:
    """The compiled form of `bedrock.yaml`."""
    return BedrockFacts(
        checked_on=file.checked_on,
        prefixes=frozenset(file.prefixes),
        vendors=frozenset(file.vendors),
        profiles=_profiles(file.geographic, file.sources),
        global_sources={p: frozenset(r.sources) for r in file.global_ for p in r.profiles},
        guardrails=_profiles(
            tuple(row.model_copy(update={"source": "guardrails"}) for row in file.guardrails),
            file.sources,
        ),
        models={
            model: InRegion(frozenset(row.runtime), frozenset(row.mantle), row.apis)
            for row in file.in_region
            for model in row.models
        },
        legacy=frozenset(file.legacy),
        sources=dict(file.sources),
    )


def _profiles(rows: tuple[ProfilesRow, ...], sources: Mapping[str, str]) -> dict[str, Profile]:
    profiles: dict[str, Profile] = {}
    for row in rows:
        routes = {source: route.to for route in row.routes for source in route.sources}
        for profile_id in row.profiles:
            profiles[profile_id] = Profile(profile_id, routes, sources[row.source])
    return profiles
