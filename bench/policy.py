"""What deciding costs: `python -m bench.policy [--asks N] [--json]`.

Microseconds for `decide` and the filter (every endpoint of the model judged), p50 and p99, each
request timed alone, after 200 decisions of which each is compared with the readable engine.

* *cold*: a combination of attributes not seen before, five attributes of 40 values each; the
  tenant was seen before;
* *told*: cold, and then the rules that applied are put in words, as the region log has them;
* *cpu*: cold by CPU time, the least mean of batches of 100: what is left on a busy machine;
* *warm*: one of 200 combinations that come again and again;
* 10 to 10,000 rules; about 10 or 100 of them apply; models of 8 or 200 endpoints; 1 to 10,000
  tenants.

Goal: at most 15 µs, p50, cold, for 1,000 rules of which at most 10 apply, 8 endpoints, 1,000
tenants. Beside it cedarpy, when it is installed, on the same work: one batch of questions, one for
each endpoint, with parsed policies; it has neither unknown attributes nor reasons for an exclusion.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import importlib.util
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random

from policies.attributes import Attributes, Declaration, State
from policies.compiled import Compiled
from policies.conditions import AllOf, Candidate, Condition, Is
from policies.eligibility import judge
from policies.engine import Ask, decide
from policies.judging import Judge, Place
from policies.model import Grant, Policy, Rule, Tenant
from policies.timed import always
from regions.catalog import Catalog
from regions.countries import Countries
from regions.model import Endpoint, Footprint, Retention, Tier
from regions.places import Boundary

NOW = 1_800_000_000.0
NAMES = ("data", "user", "sector", "consent", "project")
VALUES = tuple(f"v{n}" for n in range(40))
GOAL = 15.0


@dataclass(frozen=True)
class World:
    """One size of the problem."""

    rules: int
    applying: int
    endpoints: int
    tenants: int


@dataclass(frozen=True)
class Measured:
    """Microseconds; `applied` is the median number of rules that applied, `fit` of endpoints in."""

    world: World
    cold_p50: float
    cold_p99: float
    told_p50: float
    cold_cpu: float
    warm_p50: float
    warm_p99: float
    applied: float
    fit: float
    compile_ms: float


SIZES = (
    *(World(rules, min(rules, 9), 8, 1000) for rules in (10, 100, 1_000, 10_000)),
    *(World(1_000, 9, 8, tenants) for tenants in (1, 100, 10_000)),
    World(1_000, 100, 8, 1000),
    World(1_000, 9, 200, 1000),
    World(1_000, 100, 200, 1000),
)


# -- the world ---------------------------------------------------------------------------


def bounds(catalog: Catalog) -> list[Boundary]:
    """Boundaries as operators write them; each leaves something of Europe."""
    atlas = catalog.atlas
    europe = atlas.jurisdiction("EU")
    more = [atlas.country(code) for code in ("CH", "GB", "US", "CA", "JP")]
    return [europe, *(europe | one for one in more), atlas.worldwide()]


def policy_of(world: World, catalog: Catalog, rnd: Random) -> Policy:
    """Rules that ask for two or three things; `applying` of them ask for what every request has."""
    within = bounds(catalog)
    tenants = {
        f"tenant-{n}": Tenant(f"tenant-{n}", Grant.within(always(rnd.choice(within[1:]))))
        for n in range(world.tenants)
    }
    rules = [
        Rule(f"rule-{n}", condition(n < world.applying, world, rnd), always(rnd.choice(within)),
             because="a contract")
        for n in range(world.rules)
    ]  # fmt: skip
    rnd.shuffle(rules)
    declared = {name: Declaration(name, frozenset(VALUES), frozenset({"v0"})) for name in NAMES}
    return Policy(catalog.atlas, "bench", declared, tenants=tenants, rules=tuple(rules))


def condition(applies: bool, world: World, rnd: Random) -> Condition:
    if applies:
        return AllOf(
            (Is(rnd.choice(NAMES), frozenset(VALUES)), Is("purpose", frozenset({"interactive"})))
        )
    chosen = rnd.sample(NAMES, 2)
    parts = [Is(name, frozenset(rnd.sample(VALUES[1:], rnd.randint(1, 2)))) for name in chosen]
    if rnd.random() < 0.5:
        parts.append(Is("tenant", frozenset({f"tenant-{rnd.randrange(world.tenants)}"})))
    return AllOf(tuple(parts))


def places_of(world: World, catalog: Catalog, rnd: Random) -> tuple[Place, ...]:
    """Endpoints in one to three regions each, half of them in the EU."""
    atlas = catalog.atlas
    everywhere = [r for r in atlas.regions if r.partition.is_open]
    inside = [r for r in everywhere if r.country in atlas.jurisdictions["EU"]]
    found: list[Place] = []
    for n in range(world.endpoints):
        chosen = rnd.sample(inside if n % 2 else everywhere, rnd.randint(1, 3))
        where = atlas.place(*(r.id for r in chosen))
        kept = Retention.nothing("contract")
        footprint = Footprint(where, kept, Countries.of({r.country for r in chosen}))
        endpoint = Endpoint(f"e{n}", "vllm", "self", "m", source=chosen[0].id)
        found.append((Candidate(endpoint.name, "m", "self", Tier.LARGE), endpoint, footprint))
    return tuple(found)


def asks_of(world: World, count: int, rnd: Random) -> list[Ask]:
    """Requests whose attribute combinations all differ: three settled values, two claimed."""
    seen: set[tuple[str, ...]] = set()
    found: list[Ask] = []
    while len(found) < count:
        values = tuple(rnd.choice(VALUES[1:]) for _ in NAMES)
        if values in seen:
            continue
        seen.add(values)
        states = {
            name: State(frozenset({value} if n < 3 else {"v0", value}), closed=True)
            for n, (name, value) in enumerate(zip(NAMES, values, strict=True))
        }
        tenant = f"tenant-{rnd.randrange(world.tenants)}"
        found.append(Ask(tenant, None, Attributes(states)))
    return found


# -- measuring ---------------------------------------------------------------------------


def timed(act: Callable[[Ask], object], asks: Sequence[Ask]) -> list[float]:
    """Microseconds of each, sorted; the clock's own cost is taken off."""
    clock = time.perf_counter_ns
    empty = statistics.median(-(clock() - clock()) for _ in range(1000))
    times = []
    gc.collect()
    for ask in asks:
        began = clock()
        act(ask)
        times.append((clock() - began - empty) / 1000.0)
    return sorted(times)


def measured(world: World, count: int, catalog: Catalog) -> Measured:
    """One size: compared with the reference first, then timed."""
    rnd = Random(7)
    policy, places = policy_of(world, catalog, rnd), places_of(world, catalog, rnd)
    region = "aws:eu-central-1"
    began = time.perf_counter()
    compiled, judges = Compiled(policy), Judge(catalog.atlas, region)
    compiled.decide(Ask("nobody"), NOW)
    compile_ms = (time.perf_counter() - began) * 1000.0
    asks = asks_of(world, 3 * count + 400, rnd)
    applied, fit = compared(policy, compiled, judges, places, asks[:200], region)

    def act(ask: Ask) -> object:
        return judges.judge_all(compiled.decide(ask, NOW), places, NOW)

    for tenant in policy.tenants:  # cold is a combination of attributes, not a tenant
        compiled.decide(Ask(tenant), NOW)

    def told(ask: Ask) -> object:
        decision = compiled.decide(ask, NOW)
        return judges.judge_all(decision, places, NOW), decision.applied

    cold = timed(act, asks[400 : 400 + count])
    telling = timed(told, asks[400 + count : 400 + 2 * count])
    least = batches(act, asks[400 + 2 * count :])
    repeated = asks[200:400]
    timed(act, repeated)
    warm = timed(act, [rnd.choice(repeated) for _ in range(count)])
    (cold_p50, cold_p99), (warm_p50, warm_p99) = quantiles(cold), quantiles(warm)
    return Measured(
        world, cold_p50, cold_p99, quantiles(telling)[0], least, warm_p50, warm_p99, applied, fit,
        compile_ms,
    )  # fmt: skip


def batches(act: Callable[[Ask], object], asks: Sequence[Ask], size: int = 100) -> float:
    """CPU microseconds of one, the least mean of all batches."""
    means = []
    for n in range(0, len(asks) - size + 1, size):
        began = time.process_time_ns()
        for ask in asks[n : n + size]:
            act(ask)
        means.append((time.process_time_ns() - began) / 1000.0 / size)
    return round(min(means), 2)


def quantiles(times: Sequence[float]) -> tuple[float, float]:
    return round(statistics.median(times), 2), round(times[int(len(times) * 0.99)], 2)


def compared(
    policy: Policy,
    compiled: Compiled,
    judges: Judge,
    places: tuple[Place, ...],
    asks: Sequence[Ask],
    region: str,
) -> tuple[float, float]:
    """Ends when the fast engine differs from the readable one; gives how much there was to do."""
    applied: list[int] = []
    fit: list[int] = []
    for ask in asks:
        wanted, found = decide(policy, ask, NOW), compiled.decide(ask, NOW)
        verdicts = judges.judge_all(found, places, NOW)
        expected = [judge(wanted, c, e, f, region, NOW) for c, e, f in places]
        if found != wanted or verdicts != expected:
            raise SystemExit(f"the engines differ about {ask}")
        applied.append(len(wanted.common.applied))
        fit.append(sum(not hasattr(one, "reasons") for one in expected))
    return statistics.median(applied), statistics.median(fit)


# -- cedar -------------------------------------------------------------------------------


def cedar(world: World, count: int, catalog: Catalog) -> Mapping[str, object] | None:
    """The same rules as `forbid`s over the endpoint's places; `None` without cedarpy."""
    if importlib.util.find_spec("cedarpy") is None:
        return None
    cedarpy = importlib.import_module("cedarpy")
    rnd = Random(7)
    policy, places = policy_of(world, catalog, rnd), places_of(world, catalog, rnd)
    asks = asks_of(world, count, rnd)
    began = time.perf_counter()
    text = "permit(principal, action, resource);\n" + "\n".join(map(forbidden, policy.rules))
    parsed = cedarpy.PolicySet.from_str(text)
    entities = cedarpy.Entities.from_json_str(json.dumps(cedar_entities(policy, places)))
    parse_ms = (time.perf_counter() - began) * 1000.0

    def act(ask: Ask) -> object:
        return cedarpy.is_authorized_batch(cedar_asks(ask, places), parsed, entities)

    p50, p99 = quantiles(timed(act, asks))
    return {"p50": round(p50, 1), "p99": round(p99, 1), "parse_ms": round(parse_ms, 1)}


def forbidden(rule: Rule) -> str:
    """A rule in Cedar: forbidden where the endpoint is not in the boundary."""
    parts = rule.condition.parts if isinstance(rule.condition, AllOf) else ()
    asked = [one for one in parts if isinstance(one, Is) and one.attribute != "purpose"]
    tests = [
        f"context.{one.attribute}.containsAny({json.dumps(sorted(one.values))})" for one in asked
    ]
    tests.append(f'!(resource in Boundary::"{boundary_name(rule)}")')
    return f"forbid(principal, action, resource) when {{ {' && '.join(tests)} }};"


def boundary_name(rule: Rule) -> str:
    return "all" if rule.process is None else f"{rule.process.values[0].sure:x}"


def cedar_entities(policy: Policy, places: Sequence[Place]) -> list[object]:
    """Each endpoint below every boundary that contains it: what Cedar is quick at."""
    within = {boundary_name(r): r.process.values[0] for r in policy.rules if r.process is not None}
    found: list[object] = [
        {"uid": {"type": "Boundary", "id": name}, "attrs": {}, "parents": []} for name in within
    ]
    for _, endpoint, footprint in places:
        inside = [name for name, one in within.items() if one.contains(footprint.process)]
        parents = [{"type": "Boundary", "id": name} for name in inside]
        uid = {"type": "Endpoint", "id": endpoint.name}
        found.append({"uid": uid, "attrs": {}, "parents": parents})
    return found


def cedar_asks(ask: Ask, places: Sequence[Place]) -> list[object]:
    context: dict[str, object] = {n: sorted(s.values) for n, s in ask.attributes.states.items()}
    context["tenant"] = [ask.tenant]
    return [
        {"principal": f'Tenant::"{ask.tenant}"', "action": 'Action::"call"',
         "resource": f'Endpoint::"{endpoint.name}"', "context": context}
        for _, endpoint, _ in places
    ]  # fmt: skip


# -- running -----------------------------------------------------------------------------


def run(count: int) -> dict[str, object]:
    catalog = Catalog.load()
    sizes = [measured(world, count, catalog) for world in SIZES]
    return {
        "python": sys.version.split()[0],
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
        "goal_us": GOAL,
        "sizes": [asdict(one) for one in sizes],
        "cedar": cedar(World(1_000, 9, 8, 1000), min(count, 500), catalog),
    }


def show(found: Mapping[str, object]) -> None:
    print(
        "rules  apply  endpoints  tenants | cold p50    p99   told    cpu | warm p50    p99"
        " | compile ms"
    )
    sizes = found["sizes"]
    for one in sizes if isinstance(sizes, list) else ():
        world = one["world"]
        print(
            f"{world['rules']:>5}  {one['applied']:>5.0f}  {world['endpoints']:>9}"
            f"  {world['tenants']:>7} | {one['cold_p50']:>8.1f} {one['cold_p99']:>6.1f}"
            f" {one['told_p50']:>6.1f} {one['cold_cpu']:>6.1f}"
            f" | {one['warm_p50']:>8.1f} {one['warm_p99']:>6.1f} | {one['compile_ms']:>8.1f}"
        )
    print(
        f"goal: {found['goal_us']} µs cold p50 at 1000 rules, 8 endpoints; load {found['load']:.1f}"
    )
    print(f"cedarpy, 1000 rules, 8 endpoints: {found['cedar'] or 'not installed'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="what deciding costs")
    parser.add_argument("--asks", type=int, default=3000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = run(given.asks)
    print(json.dumps(found, indent=2)) if given.json else show(found)


if __name__ == "__main__":
    main()
