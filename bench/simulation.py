"""Caches, regions, overload and a lost region, simulated: `python -m bench.simulation NAME`.

* `mooncake TRACE [--replicas N] [--compress F] [--first N]`: hit rate and queueing of every
  strategy on Mooncake's conversation trace, with the ideal hit rate of one shared cache of the
  same total size, and what least-load's capacity is (all requests at once, no waiting room);
* `regions`: the fewest replicas in each of three regions, with shifted days, that keep 99 % of
  each one's first tokens within 2 s: each region for itself, and together, all of one size and
  each of its own (`--rate` requests a second of each region, `--least`: where the search begins);
* `overload`: goodput at 0.5 to 3 times the capacity, shares of three tenants, and whether who is
  told to come again is taken then;
* `lost`: a region of four gone for 20 s under 500 requests a second (`--rate`, `--replicas`
  of each region, `--routers` of each), beside what chance and a perfect eye come to; `--short`:
  gone from 6 to 18 s of 24, `--ours`: without the others.

Virtual time, seeded: equal everywhere. One JSON line each.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from bench.lost import EYES, LONG, SHORT, asked, crests, during, eyed, scene
from router.config import Limits
from router.simulator.play import play
from router.simulator.scenario import ANY, ONLY, Ground, Scenario, grounds
from router.simulator.station import Conduct
from router.simulator.tally import shares
from router.simulator.timing import EngineSpec
from router.simulator.traces import Days, Trace, days, ideal_hits, read, shaped

NODE = EngineSpec(
    max_num_seqs=128, prefill_rate=16_000.0, kv_blocks=2048, block_size=512, context=133_120
)
"""A node of eight GPUs with a large model: a million tokens of KV in Mooncake's blocks of 512."""
THREE = ("self:fra1", "self:iad1", "self:nrt1")
WANTED = 0.99
"""The share of each region's own first tokens that must come within the target."""
Row = Mapping[str, object]


def mooncake(options: argparse.Namespace) -> Iterator[Row]:
    """Every strategy on the trace, and the ideal."""
    trace = read(options.trace)
    asks = tuple(replace(ask, tenant=ANY, region="self:fra1") for ask in trace.asks)
    trace = replace(trace, asks=asks[: options.first])
    ground = Ground("self:fra1", options.replicas, NODE)
    scenario = Scenario((ground,), routers=options.routers, seed=options.seed)
    ideal = ideal_hits(trace.asks, 512, 2048 * options.replicas)
    # All at once, and no reading ever makes a replica full: engines queue, and are never idle.
    flood = play(replace(scenario, scrape=1e9), trace.compressed(1e6), Conduct("least-load"))
    capacity = len(trace.asks) / (flood.result.seconds * flood.result.utilisation)
    factor = options.compress or 0.8 * capacity / (len(trace.asks) / trace.seconds)
    yield {"ideal": ideal, "capacity": round(capacity, 3), "compressed": round(factor, 3)}
    for strategy in ("ours", "least-load", "round-robin", "random", "prefix"):
        found = play(scenario, trace.compressed(factor), Conduct(strategy)).result
        yield {**found.row(), "of_ideal": round(found.hit_rate / ideal, 3)}


def regions(options: argparse.Namespace) -> Iterator[Row]:
    """The fewest replicas, each region for itself and all together, of one size and of its own."""
    alone: dict[str, int] = {}
    size = options.least
    while len(alone) < len(THREE):
        row, good = _three(options, dict.fromkeys(THREE, size), spill=False)
        yield row
        # Nothing leaves its region here, so each one's share is as if it were by itself.
        alone |= {name: size for name in THREE if name not in alone and good[name] >= WANTED}
        size += 1
    size, held = options.least - 1, False
    while not held:
        size += 1
        row, good = _three(options, dict.fromkeys(THREE, size), spill=True)
        yield row
        held = min(good.values()) >= WANTED
    own = dict.fromkeys(THREE, size)
    for name in THREE:
        while own[name] > 1:
            fewer = {**own, name: own[name] - 1}
            row, good = _three(options, fewer, spill=True)
            yield row
            if min(good.values()) < WANTED:
                break
            own = fewer
    yield {
        "alone": alone, "together": size, "together_own": own,
        "saved": 1 - size / max(alone.values()),
        "saved_own": 1 - sum(own.values()) / sum(alone.values()),
    }  # fmt: skip


def _three(
    options: argparse.Namespace, sizes: Mapping[str, int], *, spill: bool
) -> tuple[Row, dict[str, float]]:
    """A day of regions with these replicas; and of each one's own clients the share in time."""
    places = grounds([f"{name}={size}" for name, size in sizes.items()], EngineSpec())
    # A tenant for whoever may be served everywhere, of each region: so each one's share is seen.
    free = {name: name.partition(":")[2] for name in THREE}
    scenario = Scenario(places, weights=dict.fromkeys(free.values(), 1), seed=options.seed)
    phases = tuple((ground.region, ground.phase) for ground in places)
    load = Days(phases, options.rate, options.day, day=options.day, bound=0.2)
    trace = days(load, shaped("chat"), seed=options.seed)
    asks = (replace(a, tenant=free[a.region]) if a.tenant == ANY else a for a in trace.asks)
    played = play(scenario, replace(trace, asks=tuple(asks)), Conduct(spill=spill))
    good = {
        name: sum(played.tally.good[one] for one in (tenant, f"{ONLY}{name}"))
        / sum(played.tally.asked[one] for one in (tenant, f"{ONLY}{name}"))
        for name, tenant in free.items()
    }
    told = {name: round(share, 4) for name, share in good.items()}
    return {**played.result.row(), "spill": spill, "sizes": dict(sizes), "in_time": told}, good


CAPACITY = {"capacity_requests": "24"}
WEIGHTS = {"gold": 2, "silver": 1, "bronze": 1}


def crowded(rate: float, seconds: float, until: float = 1e9, calm: float = 0.0) -> Trace:
    """Three tenants that each ask for a third of `rate`; from `until` on only for `calm`."""
    load = days(Days((("self:fra1", 0.0),), rate, seconds, swing=0.0), shaped("chat"), seed=5)
    names = tuple(WEIGHTS)
    kept = (a for n, a in enumerate(load.asks) if a.at < until or (n * 7919) % 1000 < calm * 1000)
    return Trace(tuple(replace(a, tenant=names[n % 3]) for n, a in enumerate(kept)))


def crowd() -> Scenario:
    """Four replicas, a short queue, and a declared capacity."""
    limits = Limits.model_validate({"queue": "1s", "waiting": 256})
    return Scenario(
        grounds(["self:fra1=4"], EngineSpec()), weights=WEIGHTS, settings=CAPACITY, limits=limits
    )


def overload(options: argparse.Namespace) -> Iterator[Row]:
    """Goodput over load, tenants' shares, and coming again."""
    del options
    peak, goodput = 0.0, 0.0
    for rate in (6, 9, 12, 15, 18, 36, 45):
        played = play(crowd(), crowded(rate, 120))
        goodput = played.result.goodput
        peak = max(peak, goodput)
        met = played.tally.good.total() / max(1, played.tally.ttft.count)
        yield {
            **played.result.row(), "rate": rate, "admitted_in_time": round(met, 4),
            "tenants": {name: round(s, 3) for name, s in shares(played.tally.tokens).items()},
        }  # fmt: skip
    yield {"peak": peak, "at_three_times": round(goodput / peak, 3)}
    patient = play(crowd(), crowded(45, 180, until=60, calm=0.15), Conduct(again=3))
    yield {**patient.result.row(), "told": patient.tally.told, "came": patient.tally.came_back}


def lost(options: argparse.Namespace) -> Iterator[Row]:
    """A region goes and comes back: the busiest replica, by our choice, by chance among those that
    our order of regions gives, and by eyes that see all."""
    scenario = scene(options.replicas, options.routers, options.seed)
    end, gone, back = SHORT if options.short else LONG
    trace = asked(options.rate, end, options.seed)
    for strategy in ("ours",) if options.ours else ("ours", "random"):
        played = play(scenario, trace, during(strategy, gone, back))
        yield {
            **played.result.row(), "retried": played.tally.retried, "broken": played.tally.broken,
            "above_mean": crests(played.samples, gone, back),
        }  # fmt: skip
    for eye in () if options.ours else EYES:
        samples = eyed(eye, scenario, trace, during(eye, gone, back).outages[0])
        yield {"eye": eye, "above_mean": crests(samples, gone, back)}


NAMES: Mapping[str, Callable[[argparse.Namespace], Iterator[Row]]] = MappingProxyType(
    {"mooncake": mooncake, "regions": regions, "overload": overload, "lost": lost}
)

RATES: Mapping[str, float] = MappingProxyType({"regions": 12.0, "lost": 500.0})


def main(arguments: list[str]) -> int:
    """Run one of them."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("trace", nargs="?", type=Path)
    parser.add_argument("--replicas", type=int, default=8)
    parser.add_argument("--compress", type=float, default=None)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--routers", type=int, default=1)
    parser.add_argument("--rate", type=float, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--day", type=float, default=1200.0)
    parser.add_argument("--least", type=int, default=4)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--ours", action="store_true")
    options = parser.parse_args(arguments)
    options.rate = options.rate or RATES.get(options.name, 0.0)
    if options.name == "mooncake" and options.trace is None:
        parser.error("mooncake needs its trace")
    for row in NAMES[options.name](options):
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
