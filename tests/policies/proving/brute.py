"""Every request to a small world, one by one, and what comes of it, to check proofs against.

Nothing here uses `policies.proving`: requests come from `gather`, verdicts from the engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, combinations, product

from policies.attributes import (
    CLASSIFIER,
    AttributeRefused,
    Attributes,
    State,
    Supplied,
    Truth,
    gather,
)
from policies.conditions import Candidate, Is
from policies.eligibility import Eligible, judge
from policies.engine import Ask, Decision, decide
from policies.model import Policy
from policies.statements import Ensure, Statement
from regions.model import Call, Endpoint, Footprint
from regions.places import Area, Elsewhere, Region
from tests.policies.proving.small import Small


@dataclass(frozen=True)
class Asked:
    """One request: how many values it says at least, and whether one per attribute will do."""

    ask: Ask
    size: int
    terse: bool


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
            for purpose in _purposes(policy):
                unusual = (app is not None) + (purpose != "interactive")
                yield Asked(Ask(tenant, app, attributes, purpose), size + unusual, terse)


def _purposes(policy: Policy) -> tuple[str, ...]:
    """Those that may differ: what no condition names is like any other."""
    conditions = [rule.condition for rule in policy.rules]
    conditions += [one.condition for one in policy.statements]
    conditions += [one.condition for one in policy.ensures]
    leaves = [leaf for condition in conditions for leaf in condition.leaves()]
    if any(isinstance(leaf, Is) and leaf.attribute == "purpose" for leaf in leaves):
        return ("interactive", "batch", "shadow")
    return ("interactive", "batch")


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
        way for way in plain if way.candidate.endpoint in mine.tiers.get(way.candidate.tier, ())
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
