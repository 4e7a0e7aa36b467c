"""Small generated worlds, and every request to them, one by one: what proofs are checked against.

Nothing here uses `policies.proving`: requests come from `gather`, verdicts from the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, product
from random import Random

from policies.attributes import (
    CLASSIFIER,
    AttributeRefused,
    Attributes,
    Declaration,
    State,
    Supplied,
    Truth,
    gather,
)
from policies.conditions import (
    ALWAYS,
    AllOf,
    AnyOf,
    Candidate,
    CandidateIs,
    Condition,
    Is,
    Not,
)
from policies.eligibility import Eligible, judge
from policies.engine import Ask, Decision, decide
from policies.model import App, Model, Policy, Rule, Tenant
from policies.statements import Ensure, Statement
from regions.atlas import Atlas
from regions.footprints.base import PLAIN_CALL
from regions.model import Call, Endpoint, Footprint, Tier
from regions.places import Area, Elsewhere, Region
from tests.laws.worlds import (
    APPS,
    NOWS,
    TENANTS,
    chance,
    make_atlas,
    make_bound,
    make_operate,
    make_place,
    make_policy,
    make_rule,
    some,
)

DECLARED = (
    Declaration("data", frozenset("xyz"), frozenset("x"), frozenset({"header", "key"})),
    Declaration("kind", frozenset("xy"), sources=frozenset({"body", "app", "classifier:a"})),
    Declaration("sector", frozenset("xyz"), sources=frozenset({"key", "tenant", "app"})),
    Declaration("consent", frozenset("xy"), frozenset("y"), frozenset({"token", "app"})),
    Declaration("pii", frozenset("xy"), frozenset("y"), frozenset({"classifier:a", "key"})),
)
PURPOSES = ("interactive", "batch")
STORED = replace(PLAIN_CALL, movers=frozenset({"stored"}))
Kinds = Mapping[str, tuple[tuple[Call, Footprint], ...]]


@dataclass(frozen=True)
class Small:
    policy: Policy
    kinds: Kinds
    routers: tuple[str, ...]
    now: float

    def facts(self, endpoint: Endpoint, now: float) -> tuple[tuple[Call, Footprint], ...]:
        return self.kinds[endpoint.name]


@dataclass(frozen=True)
class Asked:
    """One request: how many values it says at least, and whether one per attribute will do."""

    ask: Ask
    size: int
    terse: bool


# -- making ------------------------------------------------------------------------------


def make_small(rnd: Random) -> Small:
    atlas = make_atlas(rnd)
    base, _ = make_policy(rnd, atlas)
    declared = {d.name: d for d in some(rnd, DECLARED, 1, 2)}
    places = [make_place(rnd, atlas, f"endpoint-{n}") for n in range(rnd.randint(1, 3))]
    endpoints = {p.endpoint.name: _located(rnd, atlas, p.endpoint) for p in places}
    rules = tuple(_make_rule(rnd, atlas, f"rule-{n}", declared) for n in range(rnd.randint(0, 5)))
    policy = replace(
        base,
        declared=declared,
        tenants={n: _carrying(rnd, t, declared) for n, t in base.tenants.items()},
        apps={n: _app(rnd, n, declared) for n in APPS[: rnd.randint(0, 2)]},
        endpoints=endpoints,
        models=_make_models(rnd, list(endpoints)),
        rules=rules,
        statements=tuple(_make_statement(rnd, atlas, declared) for _ in range(2)),
    )
    ensures = tuple(_make_ensure(rnd, policy, declared) for _ in range(2))
    kinds = {p.endpoint.name: _make_calls(rnd, atlas, p.footprint) for p in places}
    routers = tuple(r.id for r in some(rnd, atlas.regions, 1, 2)) if chance(rnd, 30) else ()
    return Small(replace(policy, ensures=ensures), kinds, routers, rnd.choice(NOWS[:-1]))


def _located(rnd: Random, atlas: Atlas, endpoint: Endpoint) -> Endpoint:
    return replace(endpoint, source=rnd.choice(atlas.regions).id) if chance(rnd, 50) else endpoint


def _make_calls(
    rnd: Random, atlas: Atlas, plain: Footprint
) -> tuple[tuple[Call, Footprint], ...]:
    plain = replace(plain, good_until=None)
    if chance(rnd, 60):
        return ((PLAIN_CALL, plain),)
    more = atlas.place(rnd.choice(atlas.regions).id).mask
    kept = replace(plain.retain, mask=plain.retain.mask | more)
    return ((PLAIN_CALL, plain), (STORED, replace(plain, retain=kept)))


def _carrying(rnd: Random, tenant: Tenant, declared: Mapping[str, Declaration]) -> Tenant:
    carried = {}
    if "sector" in declared and chance(rnd, 50):
        carried["sector"] = frozenset(some(rnd, "xyz", 1, 2))
    models = frozenset({"assistant"}) if chance(rnd, 30) else None
    return replace(tenant, attributes=carried, models=models)


def _app(rnd: Random, name: str, declared: Mapping[str, Declaration]) -> App:
    carried = {}
    if "consent" in declared and chance(rnd, 30):
        carried["consent"] = frozenset(some(rnd, "xy", 1, 2))
    return App(name, frozenset(some(rnd, declared, 0, 2)), carried)


def _make_models(rnd: Random, endpoints: list[str]) -> dict[str, Model]:
    found = {}
    for name in ("assistant", "draft")[: rnd.randint(1, 2)]:
        tiers: dict[Tier, tuple[str, ...]] = {}
        for endpoint in some(rnd, endpoints, 1, 3):
            tier = rnd.choice((Tier.SMALL, Tier.LARGE))
            tiers[tier] = (*tiers.get(tier, ()), endpoint)
        found[name] = Model(name, tiers)
    return found


def _make_rule(
    rnd: Random, atlas: Atlas, name: str, declared: Mapping[str, Declaration]
) -> Rule:
    rule, _ = make_rule(rnd, atlas, name)
    condition = make_condition(rnd, declared) if chance(rnd, 85) else ALWAYS
    return replace(rule, condition=condition)


def make_condition(
    rnd: Random, declared: Mapping[str, Declaration], depth: int = 2, free: bool = False
) -> Condition:
    """`free`: for statements, which may negate anything."""
    if depth == 0 or chance(rnd, 40):
        return _leaf(rnd, list(declared.values()))
    how = rnd.randrange(4)
    if how == 0:
        usable = {n: d for n, d in declared.items() if free or not d.claimable}
        return Not(make_condition(rnd, usable, depth - 1, free))
    parts = tuple(make_condition(rnd, declared, depth - 1, free) for _ in range(2))
    return AnyOf(parts) if how == 1 else AllOf(parts)


def _leaf(rnd: Random, declared: list[Declaration]) -> Condition:
    which = rnd.randrange(12)
    if which == 0 or not declared:
        return Is("tenant", frozenset({rnd.choice(TENANTS)}))
    if which == 1:
        return Is("purpose", frozenset({rnd.choice(PURPOSES)}))
    if which == 2:
        return Is("app", frozenset({rnd.choice(APPS)}))
    if which == 3:
        return CandidateIs("tier", frozenset({rnd.choice(("small", "large"))}))
    if which == 4:
        return CandidateIs("provider", frozenset(some(rnd, ("aws", "azure", "self"), 1, 2)))
    one = rnd.choice(declared)
    return Is(one.name, frozenset(some(rnd, sorted(one.values), 1, 2)))


def _make_statement(
    rnd: Random, atlas: Atlas, declared: Mapping[str, Declaration]
) -> Statement:
    return Statement(
        make_condition(rnd, declared, free=True) if chance(rnd, 70) else ALWAYS,
        make_bound(rnd, atlas).timed if chance(rnd, 80) else None,
        make_bound(rnd, atlas).timed if chance(rnd, 30) else None,
        make_operate(rnd).timed if chance(rnd, 30) else None,
        "a statement",
    )


def _make_ensure(rnd: Random, policy: Policy, declared: Mapping[str, Declaration]) -> Ensure:
    return Ensure(
        make_condition(rnd, declared, 1, free=True) if chance(rnd, 50) else ALWAYS,
        rnd.choice(("nothing", "region", "provider", "operator", "country")),
        rnd.choice((1, 1, 1, 2)),
        0.0,
        frozenset(some(rnd, policy.models, 1, 1)) if chance(rnd, 30) else frozenset(),
        "an ensure",
    )


# -- every request -----------------------------------------------------------------------


def requests(policy: Policy) -> Iterator[Asked]:
    names = sorted(policy.declared)
    for tenant, app in product(sorted(policy.tenants), (None, *sorted(policy.apps))):
        if policy.tenants[tenant].grant is None:
            continue
        states = [_states(policy, tenant, app, name) for name in names]
        for chosen in product(*(s.items() for s in states)):
            attributes = Attributes({n: s for n, (s, _) in zip(names, chosen, strict=True)})
            size = sum(least for _, (least, _) in chosen)
            terse = all(brief for _, (_, brief) in chosen)
            for purpose in PURPOSES:
                yield Asked(Ask(tenant, app, attributes, purpose), size, terse)


@cache
def _subsets(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[tuple[str, str], ...], ...]:
    sizes = range(len(pairs) + 1)
    return tuple(chain.from_iterable(combinations(pairs, size) for size in sizes))


def _states(
    policy: Policy, tenant: str, app: str | None, name: str
) -> dict[State, tuple[int, bool]]:
    """Each state it can have → the fewest things said for it, and whether one (or none) do."""
    declared = policy.declared[name]
    carried = policy.tenants[tenant].attributes.get(name, frozenset())
    records = [Supplied(name, (v,), "tenant") for v in carried]
    if app is not None:
        own = policy.apps[app].attributes.get(name, frozenset())
        records += [Supplied(name, (v,), "app") for v in own]
    sources = ("header", "body", "key", "token", "operator", "classifier:a")
    pairs = [(s, v) for s in sources for v in sorted(declared.values) if _may(policy, app, name, s)]
    may_open = any(s.startswith(CLASSIFIER) for s in declared.sources)
    found: dict[State, tuple[int, bool]] = {}
    for said in _subsets(tuple(pairs)):
        for opened in ((), (name,)) if may_open else ((),):
            supplied = [*records, *(Supplied(name, (v,), s) for s, v in said)]
            state = gather({name: declared}, supplied, policy.trusted(app), opened)[name]
            least, terse = found.get(state, (99, False))
            found[state] = min(least, len(said) + len(opened)), terse or len(said) <= 1
    return found


def _may(policy: Policy, app: str | None, name: str, source: str) -> bool:
    one = Supplied(name, (min(policy.declared[name].values),), source)
    try:
        gather(policy.declared, [one], policy.trusted(app))
    except AttributeRefused:
        return False
    return True


# -- every verdict -----------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    candidate: Candidate
    models: frozenset[str]
    endpoint: Endpoint
    call: Call
    footprint: Footprint
    router: str | None


def ways(small: Small) -> list[Way]:
    policy = small.policy
    models: dict[Candidate, set[str]] = {}
    for name, model in policy.models.items():
        for tier, endpoints in model.tiers.items():
            for one in endpoints:
                e = policy.endpoints[one]
                models.setdefault(Candidate(one, e.model, e.provider, tier), set()).add(name)
    return [
        Way(candidate, frozenset(names), policy.endpoints[candidate.endpoint], call, where, router)
        for candidate, names in models.items()
        for call, where in small.kinds[candidate.endpoint]
        for router in small.routers or (None,)
    ]


def eligible(decision: Decision, way: Way, now: float) -> bool:
    if way.router is not None:
        router = way.router
        found = judge(decision, way.candidate, way.endpoint, way.footprint, router, now)
        return isinstance(found, Eligible)
    atlas = way.footprint.process.atlas
    region = atlas.regions[0].id
    found = judge(decision, way.candidate, way.endpoint, way.footprint, region, now)
    return isinstance(found, Eligible) or set(found.codes) == {"router_outside"}


def may_use(policy: Policy, tenant: str, models: frozenset[str]) -> bool:
    known = policy.tenants[tenant].models
    return known is None or bool(known & models)


def without_trials(policy: Policy, now: float) -> Policy:
    return replace(policy, rules=tuple(r for r in policy.rules if not r.is_dry(now)))


def with_trials(policy: Policy) -> Policy:
    return replace(policy, rules=tuple(replace(r, dry_run_until=None) for r in policy.rules))


def is_outside(statement: Statement, way: Way, now: float) -> bool:
    atlas = way.footprint.process.atlas
    process = way.footprint.process.mask
    if way.router is not None:
        process |= atlas.place(way.router).mask
    return (
        (statement.process is not None and bool(process & ~statement.process.at(now).sure))
        or (
            statement.retain is not None
            and bool(way.footprint.retain.mask & ~statement.retain.at(now).sure)
        )
        or (
            statement.operate is not None
            and bool(way.footprint.operate.mask & ~statement.operate.at(now).mask)
        )
    )


def breaks_statement(small: Small, statement: Statement) -> tuple[int | None, bool]:
    """The size of the smallest request that breaks it, and whether any reaches anything."""
    now = small.now
    policy = without_trials(small.policy, now)
    least: int | None = None
    reached = False
    for asked in requests(policy):
        decision = decide(policy, asked.ask, now)
        for way in ways(small):
            truth = statement.condition.truth(decision.facts, way.candidate)
            if truth is Truth.FALSE or not may_use(policy, asked.ask.tenant, way.models):
                continue
            if eligible(decision, way, now):
                reached = True
                if is_outside(statement, way, now):
                    least = asked.size if least is None else min(least, asked.size)
    return least, reached


def breaks_ensure(small: Small, ensure: Ensure) -> tuple[bool, bool]:
    """Whether some request breaks it, and whether any request matches at all."""
    policy = with_trials(small.policy)
    names_purpose = any(
        isinstance(x, Is) and x.attribute == "purpose" for x in ensure.condition.leaves()
    )
    plain = [way for way in ways(small) if not way.call.movers]
    matched = False
    for asked in requests(policy):
        if asked.ask.purpose != "interactive" and not names_purpose:
            continue
        decision = decide(policy, asked.ask, small.now)
        if ensure.condition.truth(decision.facts, None) is Truth.FALSE:
            continue
        for model in ensure.models or policy.models:
            if not may_use(policy, asked.ask.tenant, frozenset({model})):
                continue
            matched = True
            if _lacks(policy, small.now, ensure, asked, decision, model, plain):
                return True, True
    return False, matched


def _lacks(
    policy: Policy,
    now: float,
    ensure: Ensure,
    asked: Asked,
    decision: Decision,
    model: str,
    plain: list[Way],
) -> bool:
    mine = policy.models[model]
    floor = min(mine.highest, decision.common.obligations.tiers.ceiling)
    here = [
        way
        for way in plain
        if way.candidate.endpoint in mine.tiers.get(way.candidate.tier, ())
    ]
    serving = [w for w in here if w.candidate.tier >= floor and eligible(decision, w, now)]
    if not asked.terse and not serving:
        return False
    units = {unit for way in here for unit in _touched(ensure.unit, way)}
    for lost in (None, *units):
        left = {
            w.candidate.endpoint
            for w in serving
            if lost is None or lost not in _touched(ensure.unit, w)
        }
        if len(left) < ensure.least:
            return True
    return False


def _touched(unit: str, way: Way) -> set[str]:
    """What the endpoint goes down with."""
    found = way.footprint
    if unit == "operator":
        return {c for c in found.operate.codes if c != "unknown"} or {"unknown"}
    if unit == "nothing":
        return set()
    touched = {way.endpoint.provider} if unit == "provider" else set()
    if way.endpoint.source is not None:
        touched |= {_named(unit, found.process.atlas.region(way.endpoint.source)) or ""}
    names = {_named(unit, atom) for atom in found.process}
    if len(names) == 1:
        touched |= {name for name in names if name}
    return touched


def _named(unit: str, atom: object) -> str | None:
    if unit == "region":
        return atom.id if isinstance(atom, Region) else None
    if unit == "country":
        return atom.country if isinstance(atom, Region | Area) else None
    return atom.partition.provider if isinstance(atom, Region | Area | Elsewhere) else None
