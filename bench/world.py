"""The configuration under measurement: 100 rules, eight endpoints in three regions, N tenants.

Two endpoints more are a small tier, so that every prompt is graded (`observe`: scored, logged and
counted, and served by the eight).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import yaml

from router.audit.note import create_signing_key

MODEL = "gpt-4o-mini"
REGIONS = {"self:fra1": "DE", "self:par1": "FR", "self:iad1": "US"}
ENDPOINTS = 8


@dataclass(frozen=True, slots=True)
class Shape:
    """What is configured; every part is the product's own configuration, no switch of a law."""

    rules: int = 100
    endpoints: int = ENDPOINTS
    tenants: int = 1
    workers: int = 1
    graded: bool = True
    patterns: bool = False
    log: str = "log"


def key(tenant: int) -> str:
    """The API key of one tenant."""
    return f"dom-bench-{tenant}"


def write(folder: Path, shape: Shape, port: int, upstream: str) -> Path:
    """Write a whole configuration; gives `domicile.yaml`."""
    for name in ("baseline", "rules"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    _dump(folder / "baseline" / "main.yaml", _baseline(shape, upstream))
    _dump(folder / "rules" / "rules.yaml", {"version": "1", "rules": _rules(shape.rules)})
    _dump(folder / "keys.yaml", {"version": "1", "keys": [_key(n) for n in range(shape.tenants)]})
    if not (folder / "log.key").exists():
        create_signing_key(folder / "log.key")
    whole = folder / "domicile.yaml"
    _dump(whole, _router(port, shape))
    return whole


def _router(port: int, shape: Shape) -> dict[str, object]:
    router: dict[str, object] = {
        "id": "bench-1",
        "region": "self:fra1",
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{port + 1}",
    }
    if shape.workers > 1:
        router["workers"] = shape.workers
    return {
        "version": 1,
        "router": router,
        "keys": {"file": "keys.yaml"},
        "policies": {"baseline": ["baseline/*.yaml"], "rules": ["rules/*.yaml"]},
        "log": {"dir": shape.log, "signing_key": "file:log.key"},
    }


def _baseline(shape: Shape, upstream: str) -> dict[str, object]:
    projects = [f"p{n}" for n in range(max(1, shape.rules))]
    classes = {"values": ["public", "internal", "health"], "default": "internal"}
    names = [f"e{n}" for n in range(shape.endpoints)]
    small = [f"s{n}" for n in range(2 if shape.graded else 0)]
    attributes: dict[str, object] = {
        "project": {"values": projects, "default": projects[0]},
        "data_class": classes,
    }
    if shape.patterns:
        values = ["none", "health", "email"]
        attributes["contains"] = {
            "values": values, "default": "none", "from": ["classifier:patterns"],
        }  # fmt: skip
    return {
        "version": 1,
        "regions": {name: {"country": country} for name, country in REGIONS.items()},
        "tenants": {
            f"t{n}": {"grant": {"process": "EU + US", "retain": "EU + US"}, "models": [MODEL]}
            for n in range(shape.tenants)
        },
        "models": {MODEL: _model(small, names)},
        "endpoints": {name: _endpoint(n, upstream) for n, name in enumerate([*names, *small])},
        "attributes": attributes,
    }


def _model(small: list[str], large: list[str]) -> dict[str, object]:
    if not small:
        return {"grade": "off", "tiers": {"large": large}}
    return {"grade": "observe", "tiers": {"small": small, "large": large}}


def _endpoint(number: int, upstream: str) -> dict[str, object]:
    region = list(REGIONS)[number % len(REGIONS)]
    return {
        "kind": "vllm",
        "region": region,
        "operate": [REGIONS[region]],
        "retain": "nothing",
        "model": "Qwen/Qwen3-8B",
        "url": upstream,
        "context": 32768,
        "features": ["tools", "json_schema", "stream_usage"],
        "price": {"input": 0.1, "output": 0.4},
    }


def _rules(count: int) -> list[dict[str, object]]:
    return [
        {
            "name": f"project-{n}",
            "when": {"project": f"p{n}"},
            "process_within": "EU",
            "retain_within": "EU",
            "because": "a measurement",
        }
        for n in range(count)
    ]


def _key(tenant: int) -> dict[str, object]:
    digest = hashlib.sha256(key(tenant).encode()).hexdigest()
    return {"id": f"k{tenant}", "sha256": digest, "tenant": f"t{tenant}", "concurrency": 100000}


def _dump(path: Path, value: object) -> None:
    path.write_text(yaml.safe_dump(value, sort_keys=False))
