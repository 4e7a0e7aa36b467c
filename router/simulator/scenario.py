"""What is simulated: regions with their fleets, what the network between them costs, who asks.

The snapshot is a real one, built without files: tenants have real grants, and which endpoints
a request may use is computed by the real decision and the real filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import acos, cos, radians, sin
from typing import Final

from policies.model import Grant, Model, Policy, Tenant
from policies.timed import always
from regions.catalog import Catalog, OwnRegion
from regions.model import Endpoint, Price, Tier
from router.auth import KeyRing
from router.capacity.priority import PrioritiesSection
from router.config import Config, KeysSection, Limits, PoliciesSection, RouterSection
from router.decisions.hypothetical import Question, consider
from router.providers.base import Target
from router.providers.registry import load
from router.settings.config_log import LogSection
from router.simulator.layout import ALL, DECODE, ONE, POOLED, PREFILL, Layout
from router.simulator.timing import EngineSpec
from router.snapshot import Snapshot
from router.types import Candidacy

MODEL: Final = "assistant"
ANY: Final = "any"
"""The tenant that may be served everywhere."""
ONLY: Final = "only-"
"""How the tenants are named that may be served in one region's country only."""

PLACES: Final[Mapping[str, OwnRegion]] = {
    "self:fra1": OwnRegion("DE", lat=50.1, lon=8.7),
    "self:par1": OwnRegion("FR", lat=48.9, lon=2.4),
    "self:lon1": OwnRegion("GB", lat=51.5, lon=-0.1),
    "self:sto1": OwnRegion("SE", lat=59.3, lon=18.1),
    "self:iad1": OwnRegion("US", lat=38.9, lon=-77.4),
    "self:sfo1": OwnRegion("US", lat=37.6, lon=-122.4),
    "self:gru1": OwnRegion("BR", lat=-23.4, lon=-46.5),
    "self:nrt1": OwnRegion("JP", lat=35.8, lon=140.4),
    "self:sin1": OwnRegion("SG", lat=1.4, lon=104.0),
    "self:syd1": OwnRegion("AU", lat=-33.9, lon=151.2),
}
"""Regions to simulate in, by airport."""

FREE: Final = Price(0.0, 0.0)
_EARTH: Final = 6371.0
_FIBRE: Final = 130_000.0
"""Kilometres a second there and back over real routes: two thirds of light, a half more way."""
_INSIDE: Final = 0.001
"""Seconds there and back within a region."""


@dataclass(frozen=True, slots=True)
class Part:
    """One endpoint of a region: its name, what it is for, its replicas and their engines."""

    endpoint: str
    kind: str
    replicas: int
    engine: EngineSpec


@dataclass(frozen=True, slots=True)
class Ground:
    """One region of a scenario: its fleet, and the price of its tokens (dollars a million).

    `layout` says how its replicas stand; `engines` of parts whose engine is another one.
    """

    region: str
    replicas: int
    engine: EngineSpec = field(default_factory=EngineSpec)
    price: Price = FREE
    layout: Layout = ONE
    engines: Mapping[str, EngineSpec] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its endpoints. ValueError where it has fewer replicas than its layout has parts."""
        place = self.region.partition(":")[2]
        return tuple(
            Part(
                place if kind in {ALL, DECODE} else f"{place}-{kind}",
                kind, count, self.engines.get(kind, self.engine),
            )
            for kind, count in self.layout.deal(self.replicas).items()
        )  # fmt: skip

    @property
    def phase(self) -> float:
        """Hours its sun is ahead of Greenwich."""
        return (PLACES[self.region].lon or 0.0) / 15


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything but the load and the strategy.

    Attributes:
        weights: further tenants that may be served everywhere, with their weights.
        settings: settings of every endpoint, as in a baseline file.
        classes: the router's `priorities`; without them requests have no class.
        least: prompts with fewer tokens to compute aren't split (`prefill.least`).
        routers: routers per region, which share nothing; requests come to each in turn.
        scrape: seconds between two looks of a router at the engines' metrics.
        target: seconds to the first token that make an answer good.
    """

    grounds: tuple[Ground, ...]
    weights: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    classes: PrioritiesSection | None = None
    least: int = 256
    routers: int = 1
    scrape: float = 1.0
    target: float = 2.0
    seed: int = 0

    def snapshot(self, home: str) -> Snapshot:
        """What a router in the region `home` serves by."""
        catalog = Catalog.load({g.region: PLACES[g.region] for g in self.grounds})
        endpoints = {one.name: one for ground in self.grounds for one in self._endpoints(ground)}
        halves = {one.prefill.name for one in endpoints.values() if one.prefill is not None}
        asked = tuple(name for name in endpoints if name not in halves)
        policy = Policy(
            catalog.atlas,
            "5" * 64,
            tenants=self._tenants(catalog),
            models={MODEL: Model(MODEL, {Tier.LARGE: asked})},
            endpoints=endpoints,
        )
        content = b"{}"
        targets = {
            part.endpoint: {
                f"{part.endpoint}/{n}": Target(f"http://{part.endpoint}-{n}:80")
                for n in range(part.replicas)
            }
            for ground in self.grounds
            for part in ground.parts
        }
        return Snapshot(
            sha256(content).hexdigest(), content, self._config(home), policy, catalog,
            KeyRing(()), {"vllm": load("vllm")}, targets, 0.0,
        )  # fmt: skip

    def _endpoints(self, ground: Ground) -> Iterator[Endpoint]:
        """A region's endpoints, as a baseline file would give them; a prefill half is first."""
        half: Endpoint | None = None
        for part in ground.parts:
            endpoint = self._endpoint(ground, part)
            if part.kind == PREFILL:
                half = endpoint
            elif half is not None:
                said = {"prefill": half.name, "prefill_least": str(self.least)}
                settings = {**endpoint.settings, **said}
                endpoint = replace(endpoint, prefill=half, settings=settings)
            yield endpoint

    def _endpoint(self, ground: Ground, part: Part) -> Endpoint:
        country = PLACES[ground.region].country
        pool = {"pool": part.kind} if part.kind in POOLED else {}
        return Endpoint(
            part.endpoint, "vllm", "self", "simulated", ground.region,
            settings={**self.settings, **pool}, operate=(country,), retain="nothing",
            price=ground.price, self_operated=True,
        )  # fmt: skip

    def _tenants(self, catalog: Catalog) -> dict[str, Tenant]:
        atlas = catalog.atlas
        everywhere = Grant.within(always(atlas.worldwide()))
        found = {ANY: Tenant(ANY, everywhere)}
        for name, weight in self.weights.items():
            found[name] = Tenant(name, everywhere, weight=weight)
        for ground in self.grounds:
            name, country = f"{ONLY}{ground.region}", PLACES[ground.region].country
            found[name] = Tenant(name, Grant.within(always(atlas.country(country))))
        return found

    def _config(self, home: str) -> Config:
        section = RouterSection.model_construct(
            id="simulated", region=home, listen=("127.0.0.1", 0), admin=("127.0.0.1", 0),
            workers=1, peers=(), limits=self.limits, priorities=self.classes,
        )  # fmt: skip
        return Config(
            version="1",
            router=section,
            keys=KeysSection(file="none"),
            policies=PoliciesSection(baseline=("none",)),
            log=LogSection(dir="none", signing_key="file:none"),
        )


def eligible(snapshot: Snapshot, tenant: str) -> tuple[Candidacy, ...]:
    """What a tenant's requests may use, by the real decision and filter; empty when nothing."""
    found = consider(snapshot, Question(tenant, 0.0, MODEL)).filtered
    return () if found is None else found.eligible


def round_trip(one: str, other: str) -> float:
    """Seconds there and back between two regions, by distance."""
    if one == other:
        return _INSIDE
    a, b = PLACES[one], PLACES[other]
    north, south = radians(a.lat or 0.0), radians(b.lat or 0.0)
    apart = radians((a.lon or 0.0) - (b.lon or 0.0))
    angle = acos(min(1.0, sin(north) * sin(south) + cos(north) * cos(south) * cos(apart)))
    return _INSIDE + angle * _EARTH * 2 / _FIBRE


def grounds(
    text: Sequence[str],
    engine: EngineSpec,
    layout: Layout = ONE,
    engines: Mapping[str, EngineSpec] | None = None,
) -> tuple[Ground, ...]:
    """Grounds of `self:fra1=8` and the like.

    Raises:
        ValueError: a region that isn't known here, no number of replicas, or too few of them.
    """
    found: dict[str, Ground] = {}
    for one in text:
        region, equals, count = one.partition("=")
        if region not in PLACES:
            raise ValueError(f"`{region}` is no region to simulate; known: {', '.join(PLACES)}")
        if region in found:
            raise ValueError(f"`{region}` stands twice")
        if equals and not (count.isdecimal() and 0 < int(count) <= 100_000):
            raise ValueError(f"`{one}`: write a region with its replicas as self:fra1=8")
        ground = Ground(region, int(count or 1), engine, layout=layout, engines=engines or {})
        layout.deal(ground.replicas)
        found[region] = ground
    return tuple(found.values())
