"""The configuration under measurement: 100 rules, eight endpoints in three regions, N tenants."""

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
    _dump(whole, _router(port, shape.workers))
    return whole


def _router(port: int, workers: int) -> dict[str, object]:
    router: dict[str, object] = {
        "id": "bench-1",
        "region": "self:fra1",
        "listen": f"127.0.0.1:{port}",
        "admin": f"127.0.0.1:{port + 1}",
    }
    if workers > 1:
        router["workers"] = workers
    return {
        "version": 1,
        "router": router,
        "keys": {"file": "keys.yaml"},
        "policies": {"baseline": ["baseline/*.yaml"], "rules": ["rules/*.yaml"]},
        "log": {"dir": "log", "signing_key": "file:log.key"},
    }


def _baseline(shape: Shape, upstream: str) -> dict[str, object]:
    projects = [f"p{n}" for n in range(max(1, shape.rules))]
    classes = {"values": ["public", "internal", "health"], "default": "internal"}
    names = [f"e{n}" for n in range(shape.endpoints)]
    return {
        "version": 1,
        "regions": {name: {"country": country} for name, country in REGIONS.items()},
        "tenants": {
            f"t{n}": {"grant": {"process": "EU", "retain": "EU"}, "models": [MODEL]}
            for n in range(shape.tenants)
        },
        "models": {MODEL: {"grade": "observe", "tiers": _tiers(names)}},
        "endpoints": {name: _endpoint(n, upstream) for n, name in enumerate(names)},
        "attributes": {
            "project": {"values": projects, "default": projects[0]},
            "data_class": classes,
        },
    }


def _tiers(names: list[str]) -> dict[str, list[str]]:
    return {"large": names}


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
