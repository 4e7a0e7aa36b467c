"""A large policy as text: 1,000 rules, 200 endpoints, the catalog's regions, many tenants."""

from __future__ import annotations

from random import Random

import yaml

from regions.catalog import Catalog
from regions.places import Region

GRANTS = ("EU", "EEA", "US + EU", "CA + EU", "EU + CH", "worldwide", "worldwide")
# Each contains the EU, so that rules narrow and something is left.
BOUNDS = ("EU", "EEA", "EU + CH", "EU + GB", "EEA + CH + GB", "EU + US", "EU + JP + CA",
          "worldwide", "worldwide - US", "worldwide - (CA + JP)")  # fmt: skip


def large(rules: int = 1000, endpoints: int = 200, tenants: int = 100, seed: int = 0) -> str:
    rnd = Random(seed)
    regions = [r for r in Catalog.load().atlas.regions if r.partition.is_open]
    names = [f"e{n}" for n in range(endpoints)]
    content = {
        "attributes": {
            "data": {"values": [f"d{n}" for n in range(40)], "default": "d0"},
            "user": {"format": "country", "from": ["header", "key"]},
            "sector": {"values": ["health", "bank", "none"], "from": ["tenant", "key"]},
            "consent": {"values": ["yes", "no"], "default": "no", "from": ["token"]},
            "topic": {"values": [f"t{n}" for n in range(20)], "from": ["classifier:topic"]},
        },
        "tenants": {f"tenant-{n}": _tenant(rnd) for n in range(tenants)},
        "models": {
            f"m{n}": {"tiers": {"large": names[n * 8 : n * 8 + 8]}} for n in range(endpoints // 8)
        },
        "endpoints": {name: _endpoint(rnd, regions, name) for name in names},
        "rules": [_rule(rnd, n, tenants) for n in range(rules)],
        "assert": [
            {"never": {"data": "d1", "processed_outside": "EU"}},
            {"never": {"tenant": "tenant-1", "processed_outside": "EEA + CH + GB"}},
            {"only": {"sector": "health", "processed_within": "EU + US", "retained_within": "EU"}},
            {"never": {"consent": "no", "operated_outside": "EU + US + GB + CA + JP + CH"}},
        ],
        "ensure": [{"for": {"tenant": "tenant-2"}, "survives": "region", "models": ["m1"]}],
    }
    return yaml.safe_dump(content)


def _tenant(rnd: Random) -> dict[str, object]:
    process = rnd.choice(GRANTS)
    return {
        "grant": {"process": process},
        "attributes": {"sector": rnd.choice(["health", "bank", "none"])},
    }


def _endpoint(rnd: Random, regions: list[Region], name: str) -> dict[str, object]:
    where = rnd.choice(regions).id
    return {
        "kind": "vllm", "region": where, "operate": [rnd.choice(["DE", "US", "FR"])],
        "retain": "nothing", "model": rnd.choice(["a", "b", "c"]),
        "replicas": {"dns": f"{name}:8000"},
    }  # fmt: skip


def _rule(rnd: Random, n: int, tenants: int) -> dict[str, object]:
    when: dict[str, object] = {}
    for name, values in (
        ("data", [f"d{k}" for k in range(40)]),
        ("user", ["DE", "FR", "US", "JP", "CA", "GB"]),
        ("topic", [f"t{k}" for k in range(20)]),
        ("tenant", [f"tenant-{k}" for k in range(tenants)]),
        ("tier", ["large"]),
    ):
        if rnd.random() < 0.4:
            when[name] = rnd.sample(values, min(len(values), rnd.randint(1, 3)))
    rule: dict[str, object] = {"name": f"rule-{n}", "when": when or {"data": "d1"}}
    if rnd.random() < 0.2:
        rule["unless"] = {"consent": "yes"}
    rule["process_within"] = rnd.choice(BOUNDS)
    if rnd.random() < 0.1:
        rule["retain_within"] = rnd.choice(BOUNDS)
    if rnd.random() < 0.1:
        rule["operated_by"] = ["DE", "FR", "US"]
    return rule
