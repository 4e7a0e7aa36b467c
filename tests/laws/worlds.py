"""Generated worlds: an atlas, a policy, a request, endpoints with footprints, and a time.

Everything comes from one `random.Random`. Under Hypothesis it is a shrinking one, in long
sweeps and against mutants a seeded one. Boundaries are made twice: as `Timed` values by
the code under test, and as plain functions of the time, evaluated naively, for the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.attributes import Attributes, Declaration, Supplied, gather
from policies.conditions import AllOf, AnyOf, Candidate, CandidateIs, Condition, Is, Not
from policies.engine import Ask
from policies.model import App, Grant, Policy, Prefer, Rule, Tenant
from policies.obligations import (
    KINDS,
    AnyObligation,
    InRegion,
    MaxPrice,
    NoBatch,
    NoGlobal,
    NoStore,
    RecordRetention,
    Redact,
    TierRange,
    ZeroRetention,
)
from policies.timed import UNKNOWN_TIME, Timed, always, combined, ending
from regions.atlas import Atlas
from regions.countries import Countries
from regions.model import Assurance, Endpoint, Footprint, Price, Retention, Tier
from regions.places import Area, Boundary, Partition, PartitionKind, PlaceSet, Region

T = TypeVar("T")
Law = Callable[[Random], None]

TIMES = (100.0, 200.0, 300.0, 400.0)
NOWS = (50.0, 100.0, 150.0, 200.0, 250.0, 350.0, 400.0, 500.0, UNKNOWN_TIME)
AWS = Partition("aws", "aws")
EUSC = Partition("aws", "aws-eusc", PartitionKind.SOVEREIGN)
GOV = Partition("aws", "aws-us-gov", PartitionKind.GOVERNMENT)
AZURE = Partition("azure", "azure")
SELF = Partition("self", "self")
REGIONS = (
    Region("aws:eu-central-1", AWS, "DE"),
    Region("aws:eu-west-3", AWS, "FR"),
    Region("aws:us-east-1", AWS, "US", "US-VA"),
    Region("aws:ca-central-1", AWS, "CA", "CA-QC"),
    Region("aws:eusc-de-east-1", EUSC, "DE"),
    Region("aws:us-gov-west-1", GOV, "US"),
    Region("azure:swedencentral", AZURE, "SE"),
    Region("azure:canadaeast", AZURE, "CA"),
    Region("self:fra1", SELF, "DE"),
    Region("self:zrh1", SELF, "CH"),
)
JURISDICTIONS = {"EU": frozenset({"DE", "FR", "SE"}), "AMERICAS": frozenset({"US", "CA"})}
COUNTRIES = ("DE", "FR", "SE", "CH", "US", "CA")
ASSURANCES = ("baa", "dpa", "zdr")
TENANTS = ("clinic", "bank")
APPS = ("crm", "chat")
PURPOSES = ("interactive", "batch", "shadow", "probe")
CLASSIFIERS = ("classifier:pii", "classifier:topic")

DECLARED: Mapping[str, Declaration] = {
    d.name: d
    for d in (
        Declaration("data", frozenset("xyz"), frozenset("x")),
        Declaration("kind", frozenset("xyz")),
        Declaration("sector", frozenset("xyz"), sources=frozenset({"key", "tenant", "app"})),
        Declaration("consent", frozenset("xyz"), frozenset("y"), frozenset({"token", "app"})),
        Declaration("pii", frozenset("xyz"), frozenset("z"), frozenset({"app", *CLASSIFIERS})),
        Declaration("user", frozenset(COUNTRIES), frozenset(), frozenset({"header", "key"})),
    )
}


@lru_cache(maxsize=64)
def atlas_of(chosen: tuple[int, ...]) -> Atlas:
    regions = [REGIONS[n] for n in chosen]
    return Atlas(regions, [Area(AWS, "FR")], [Partition("openai", "openai")], JURISDICTIONS)


@dataclass(frozen=True)
class Made:
    """A boundary, twice: by the code under test and as a plain function of the time."""

    timed: Timed[Boundary]
    naive: Callable[[float], Boundary]


@dataclass(frozen=True)
class MadeOperate:
    timed: Timed[Countries]
    naive: Callable[[float], Countries]


Axes = tuple[Made | None, Made | None, MadeOperate | None]


@dataclass(frozen=True)
class Place:
    """One endpoint of the world, as rules see it, with the footprint of the call."""

    candidate: Candidate
    endpoint: Endpoint
    footprint: Footprint


@dataclass(frozen=True)
class World:
    atlas: Atlas
    policy: Policy
    bounds: Mapping[str, Axes]
    tenant: str
    app: str | None
    supplied: tuple[Supplied, ...]
    opened: frozenset[str]
    purpose: str
    places: tuple[Place, ...]
    router: str
    now: float

    @property
    def attributes(self) -> Attributes:
        trusted = self.policy.trusted(self.app)
        return gather(self.policy.declared, self.supplied, trusted, self.opened)

    @property
    def ask(self) -> Ask:
        return Ask(self.tenant, self.app, self.attributes, self.purpose)

    def with_rules(self, rules: Iterable[Rule]) -> World:
        return replace(self, policy=replace(self.policy, rules=tuple(rules)))


def law(check: Law) -> Callable[[], None]:
    """The law as a test: for every generated world."""
    calm = settings(deadline=None, suppress_health_check=list(HealthCheck))
    test: Callable[[], None] = calm(given(st.randoms(use_true_random=False))(check))
    return test


def chance(rnd: Random, percent: int) -> bool:
    return rnd.randrange(100) < percent


def some(rnd: Random, choices: Iterable[T], least: int = 0, most: int = 3) -> list[T]:
    pool = list(choices)
    return rnd.sample(pool, rnd.randint(least, min(most, len(pool))))


# -- places ------------------------------------------------------------------------------


def make_atlas(rnd: Random) -> Atlas:
    keep = {0, *some(rnd, range(len(REGIONS)), 3, len(REGIONS))}
    return atlas_of(tuple(sorted(keep)))


def make_term(rnd: Random, atlas: Atlas) -> Boundary:
    which = rnd.randrange(12)
    if which < 3:
        return atlas.jurisdiction(rnd.choice(("EU", "AMERICAS")))
    if which < 6:
        return atlas.country(rnd.choice(COUNTRIES))
    if which < 9:
        return atlas.worldwide()
    if which == 9:
        return atlas.one_region(rnd.choice(atlas.regions).id)
    if which == 10:
        return atlas.subdivision(rnd.choice(("CA-QC", "US-VA")))
    return rnd.choice((atlas.partition(rnd.choice(atlas.partitions).id), atlas.provider("aws")))


def make_bound(rnd: Random, atlas: Atlas, depth: int = 2, ends: bool = True) -> Made:
    if depth == 0 or chance(rnd, 40):
        return _make_member(rnd, atlas, ends)
    how = rnd.randrange(3)
    one = make_bound(rnd, atlas, depth - 1, ends)
    other = make_bound(rnd, atlas, depth - 1, ends and how != 2)
    if how == 0:
        timed = combined(one.timed, other.timed, lambda a, b: a | b)
        return Made(timed, lambda now: one.naive(now) | other.naive(now))
    if how == 1:
        timed = combined(one.timed, other.timed, lambda a, b: a & b)
        return Made(timed, lambda now: one.naive(now) & other.naive(now))
    timed = combined(one.timed, other.timed, lambda a, b: a - b)
    return Made(timed, lambda now: one.naive(now) - other.naive(now))


def _make_member(rnd: Random, atlas: Atlas, ends: bool) -> Made:
    term = make_term(rnd, atlas)
    if not ends or chance(rnd, 60):
        return Made(always(term), lambda _: term)
    until = rnd.choice(TIMES)
    timed = ending(term, until, atlas.nowhere())
    return Made(timed, lambda now: term if now < until else atlas.nowhere())


def _constant(bound: Boundary) -> Made:
    return Made(always(bound), lambda _: bound)


def make_operate(rnd: Random) -> MadeOperate:
    countries = Countries.any() if chance(rnd, 30) else Countries.of(some(rnd, COUNTRIES, 1, 4))
    if chance(rnd, 60):
        return MadeOperate(always(countries), lambda _: countries)
    until = rnd.choice(TIMES)
    timed = ending(countries, until, Countries(0))
    return MadeOperate(timed, lambda now: countries if now < until else Countries(0))


# -- rules -------------------------------------------------------------------------------


def make_condition(rnd: Random, depth: int = 2, under_not: bool = False) -> Condition:
    if depth == 2 and chance(rnd, 15):
        decided = Is("consent", frozenset(rnd.choice("xyz")))
        return Not(decided if chance(rnd, 50) else _make_leaf(rnd, under_not=True))
    if depth == 0 or chance(rnd, 45):
        return _make_leaf(rnd, under_not)
    how = rnd.randrange(4)
    if how == 0:
        return Not(make_condition(rnd, depth - 1, under_not=True))
    parts = tuple(make_condition(rnd, depth - 1, under_not) for _ in range(rnd.randint(1, 2)))
    return AnyOf(parts) if how == 1 else AllOf(parts)


def _make_leaf(rnd: Random, under_not: bool) -> Condition:
    which = rnd.randrange(10)
    if which == 0:
        return Is("tenant", frozenset({rnd.choice(TENANTS)}))
    if which == 1:
        return Is("purpose", frozenset(some(rnd, PURPOSES, 1, 2)))
    if which == 2:
        return CandidateIs("tier", frozenset(some(rnd, ("small", "medium", "large"), 1, 2)))
    if which == 3:
        return CandidateIs("provider", frozenset(some(rnd, ("aws", "azure", "self"), 1, 2)))
    names = [n for n, d in DECLARED.items() if not (under_not and d.claimable)]
    declared = DECLARED[rnd.choice(names)]
    return Is(declared.name, frozenset(some(rnd, sorted(declared.values), 1, 2)))


def make_obligation(rnd: Random, kinds: Iterable[str] = KINDS) -> AnyObligation:
    tiers = sorted((rnd.choice(list(Tier)), rnd.choice(list(Tier))))
    most = rnd.choice((None, 4.0, 9.0))
    made: tuple[AnyObligation, ...] = (
        ZeroRetention(),
        Redact(frozenset(some(rnd, ("email", "iban", "name"), 1, 2))),
        NoBatch(),
        NoStore(),
        TierRange(tiers[0], tiers[1]),
        MaxPrice(rnd.choice((None, 1.0, 2.0)), rnd.choice((None, 1.0, 2.0))),
        InRegion(),
        NoGlobal(),
        RecordRetention(rnd.choice((0.0, 3.0, 4.0) if most else (0.0, 3.0, 5.0, 10.0)), most),
    )
    return rnd.choice([one for one in made if one.kind in kinds])


def make_rule(rnd: Random, atlas: Atlas, name: str) -> tuple[Rule, Axes]:
    process = make_bound(rnd, atlas) if chance(rnd, 75) else None
    retain = make_bound(rnd, atlas) if chance(rnd, 30) else None
    operate = make_operate(rnd) if chance(rnd, 30) else None
    prefer = None
    if chance(rnd, 20):
        prefer = Prefer((make_term(rnd, atlas), make_term(rnd, atlas)))
    rule = Rule(
        name,
        make_condition(rnd) if chance(rnd, 85) else AllOf(),
        process.timed if process else None,
        retain.timed if retain else None,
        operate.timed if operate else None,
        frozenset(some(rnd, ASSURANCES, 0, 1)) if chance(rnd, 30) else frozenset(),
        tuple(make_obligation(rnd) for _ in range(rnd.choice((0, 0, 1, 2)))),
        prefer,
        dry_run_until=rnd.choice(TIMES) if chance(rnd, 15) else None,
    )
    if chance(rnd, 5):
        at_odds = (TierRange(Tier.SMALL, Tier.SMALL), TierRange(Tier.LARGE, Tier.LARGE))
        rule = replace(rule, obligations=(*rule.obligations, *at_odds))
    return rule, (process, retain, operate)


def make_policy(rnd: Random, atlas: Atlas) -> tuple[Policy, dict[str, Axes]]:
    bounds: dict[str, Axes] = {}
    tenants: dict[str, Tenant] = {}
    for name in TENANTS:
        process, retain, operate = make_bound(rnd, atlas), make_bound(rnd, atlas), make_operate(rnd)
        if chance(rnd, 50):
            everywhere = atlas.worldwide()
            process = retain = _constant(everywhere)
        bounds[f"grant:{name}"] = (process, retain, operate)
        grant = Grant(process.timed, retain.timed, operate.timed) if chance(rnd, 90) else None
        tenants[name] = Tenant(name, grant)
    rules = []
    for n in range(rnd.randint(0, 5)):
        rule, axes = make_rule(rnd, atlas, f"rule-{n}")
        bounds[rule.name] = axes
        rules.append(rule)
    apps = {"crm": App("crm", frozenset({"data", "consent", "pii"})), "chat": App("chat")}
    policy = Policy(atlas, "digest", DECLARED, tenants=tenants, apps=apps, rules=tuple(rules))
    return policy, bounds


# -- requests and endpoints ----------------------------------------------------------------


def make_supplied(rnd: Random, trusted: frozenset[str]) -> tuple[Supplied, ...]:
    supplied = []
    for declared in DECLARED.values():
        sources = sorted(
            declared.sources | ({"header", "body"} if declared.name in trusted else set())
        )
        for source in some(rnd, sources, 0, 2):
            values = tuple(some(rnd, sorted(declared.values), 1, 2))
            supplied.append(Supplied(declared.name, values, source))
    return tuple(supplied)


def make_places(rnd: Random, atlas: Atlas, *kinds: str) -> PlaceSet:
    regions = [r.id for r in atlas.regions]
    other = ["elsewhere:aws", "area:aws:FR", "elsewhere:openai"]
    ids = some(rnd, regions, 1, 3) if chance(rnd, 80) else some(rnd, other, 1, 2)
    places = atlas.place(*ids)
    return places | atlas.unknown if chance(rnd, 8) else places


def make_footprint(rnd: Random, atlas: Atlas) -> Footprint:
    kept = rnd.randrange(4)
    if kept == 0:
        retain = Retention.within(make_places(rnd, atlas), "contract")
    elif kept == 1 and chance(rnd, 40):
        retain = Retention.within(atlas.unknown, "not documented")
    else:
        retain = Retention.nothing("contract")
    operate = Countries.of(some(rnd, COUNTRIES, 1, 2))
    if chance(rnd, 10):
        operate |= Countries.unknown()
    until = rnd.choice(TIMES) if chance(rnd, 15) else None
    return Footprint(make_places(rnd, atlas), retain, operate, (), ("a fact",), until)


def make_place(rnd: Random, atlas: Atlas, name: str) -> Place:
    provider = rnd.choice(("aws", "azure", "self"))
    model = rnd.choice(("llama", "eu.claude", "global.claude"))
    prices = [rnd.choice((None, 0.5, 1.0, 1.5, 3.0)) for _ in range(2)]
    held = tuple(
        Assurance(a, "contract", "dpo", rnd.choice((None, *TIMES)))
        for a in some(rnd, ASSURANCES, 0, 3)
    )
    endpoint = Endpoint(
        name, "vllm", provider, model, price=Price(prices[0], prices[1]), assurances=held
    )
    candidate = Candidate(name, model, provider, rnd.choice(list(Tier)))
    return Place(candidate, endpoint, make_footprint(rnd, atlas))


def make_world(rnd: Random) -> World:
    atlas = make_atlas(rnd)
    policy, bounds = make_policy(rnd, atlas)
    app = rnd.choice(("crm", *APPS, None))
    opened = frozenset(some(rnd, ("data", "kind", "pii"), 1, 2)) if chance(rnd, 20) else frozenset()
    return World(
        atlas,
        policy,
        bounds,
        rnd.choice((*TENANTS, "stranger")) if chance(rnd, 10) else rnd.choice(TENANTS),
        app,
        make_supplied(rnd, policy.trusted(app)),
        opened,
        rnd.choice(PURPOSES),
        tuple(make_place(rnd, atlas, f"endpoint-{n}") for n in range(rnd.randint(1, 4))),
        rnd.choice(atlas.regions).id,
        rnd.choice(NOWS),
    )


def make_ask(rnd: Random, world: World, tenant: str | None = None) -> Ask:
    """Another request to the same policy."""
    app = rnd.choice((*APPS, None))
    trusted = world.policy.trusted(app)
    opened = frozenset(some(rnd, ("data", "kind", "pii"), 1, 2)) if chance(rnd, 20) else frozenset()
    attributes = gather(world.policy.declared, make_supplied(rnd, trusted), trusted, opened)
    return Ask(tenant or rnd.choice(TENANTS), app, attributes, rnd.choice(PURPOSES))


def later_than(rnd: Random, now: float) -> float:
    """A time not before `now`."""
    return rnd.choice([t for t in NOWS if t >= now] or [math.inf])
