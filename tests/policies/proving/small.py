"""Small generated worlds that proofs are checked on: few attributes, values and endpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from policies.attributes import (
    Declaration,
)
from policies.conditions import (
    ALWAYS,
    AllOf,
    AnyOf,
    CandidateIs,
    Condition,
    Is,
    Not,
)
from policies.model import App, Grant, Model, Policy, Rule, Tenant
from policies.statements import Ensure, Statement
from policies.timed import Timed, always
from regions.atlas import Atlas
from regions.footprints.base import PLAIN_CALL
from regions.model import Call, Endpoint, Footprint, Tier
from regions.places import Boundary
from tests.laws.worlds import (
    APPS,
    COUNTRIES,
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


# -- making ------------------------------------------------------------------------------


def make_small(rnd: Random) -> Small:
    atlas = make_atlas(rnd)
    base, _ = make_policy(rnd, atlas)
    declared = {d.name: d for d in some(rnd, DECLARED, 1, 2)}
    places = [make_place(rnd, atlas, f"endpoint-{n}") for n in range(rnd.randint(1, 4))]
    endpoints = {p.endpoint.name: _located(rnd, atlas, p.endpoint) for p in places}
    rules = tuple(_make_rule(rnd, atlas, f"rule-{n}", declared) for n in range(rnd.randint(0, 5)))
    policy = replace(
        base,
        declared=declared,
        tenants={n: _carrying(rnd, atlas, t, declared) for n, t in base.tenants.items()},
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


def _make_calls(rnd: Random, atlas: Atlas, plain: Footprint) -> tuple[tuple[Call, Footprint], ...]:
    plain = replace(plain, good_until=None)
    if chance(rnd, 70):
        inside = [r.id for r in atlas.regions if r.partition.is_open]
        plain = replace(plain, process=atlas.place(*some(rnd, inside, 1, 2)))
    if chance(rnd, 60):
        return ((PLAIN_CALL, plain),)
    more = atlas.place(rnd.choice(atlas.regions).id).mask
    kept = replace(plain.retain, mask=plain.retain.mask | more)
    return ((PLAIN_CALL, plain), (STORED, replace(plain, retain=kept)))


def _carrying(
    rnd: Random, atlas: Atlas, tenant: Tenant, declared: Mapping[str, Declaration]
) -> Tenant:
    carried = {}
    if chance(rnd, 70):
        tenant = replace(tenant, grant=Grant.within(always(atlas.worldwide())))
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
        for endpoint in some(rnd, endpoints, 1, 4):
            tier = rnd.choice((Tier.SMALL, Tier.LARGE))
            tiers[tier] = (*tiers.get(tier, ()), endpoint)
        found[name] = Model(name, tiers)
    return found


def _make_rule(rnd: Random, atlas: Atlas, name: str, declared: Mapping[str, Declaration]) -> Rule:
    rule, _ = make_rule(rnd, atlas, name)
    if chance(rnd, 60):  # most rules only bound a place, so that something is left
        rule = replace(rule, retain=None, operate=None, require=frozenset(), obligations=())
    if rule.process is not None and chance(rnd, 50):
        wide = atlas.worldwide() - atlas.country(rnd.choice(COUNTRIES))
        rule = replace(rule, process=always(wide))
    condition = make_condition(rnd, declared) if chance(rnd, 90) else ALWAYS
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


def _make_statement(rnd: Random, atlas: Atlas, declared: Mapping[str, Declaration]) -> Statement:
    return Statement(
        make_condition(rnd, declared, free=True) if chance(rnd, 70) else ALWAYS,
        _wide_or_not(rnd, atlas) if chance(rnd, 80) else None,
        make_bound(rnd, atlas).timed if chance(rnd, 30) else None,
        make_operate(rnd).timed if chance(rnd, 30) else None,
        "a statement",
    )


def _wide_or_not(rnd: Random, atlas: Atlas) -> Timed[Boundary]:
    if chance(rnd, 60):
        return always(atlas.worldwide() - atlas.country(rnd.choice(COUNTRIES)))
    return make_bound(rnd, atlas).timed


def _make_ensure(rnd: Random, policy: Policy, declared: Mapping[str, Declaration]) -> Ensure:
    return Ensure(
        make_condition(rnd, declared, 1, free=True) if chance(rnd, 50) else ALWAYS,
        rnd.choice(("nothing", "region", "provider", "operator", "country")),
        rnd.choice((1, 1, 1, 2)),
        0.0,
        frozenset(some(rnd, policy.models, 1, 1)) if chance(rnd, 30) else frozenset(),
        "an ensure",
    )
