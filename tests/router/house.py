"""A whole router over a simulated fleet on loopback, built without files: for tests."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from policies.attributes import Declaration
from policies.model import Grant, Model, Policy, Priority, Rule, Tenant
from policies.timed import always
from regions.catalog import Catalog, OwnRegion
from regions.model import Burst, Endpoint, Tier
from router.app import Clocks, Router
from router.audit.settings import LogSettings
from router.auth import KeyRing, Principal, StoredKey
from router.capacity.priority import PrioritiesSection
from router.config import Config, KeysSection, Limits, Peer, PoliciesSection, RouterSection
from router.providers.base import Target
from router.providers.registry import load
from router.server import Serving
from router.settings.config_log import LogSection
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from router.snapshot import Snapshot

OWN = {
    "self:fra1": OwnRegion("DE"),
    "self:par1": OwnRegion("FR"),
    "self:lon1": OwnRegion("GB"),
    "self:iad1": OwnRegion("US"),
}
KEYS = {name: f"dom-{name}" for name in ("eu", "us", "world", "nobody")}


@dataclass(frozen=True)
class Plan:
    """What to build: replicas by region, rules, limits, classes, burst budgets by
    region; `settings` of every endpoint, and whether engines tell of their load.

    With `priorities`, every tenant may ask for the most urgent class.
    """

    regions: Sequence[str] = ("self:fra1", "self:par1", "self:iad1")
    rules: tuple[Rule, ...] = ()
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    limits: Limits = field(
        default_factory=lambda: Limits.model_validate(
            {"first_token": "2s", "answer": "4s", "idle": "2s", "connect": "1s", "deadline": "20s"}
        )
    )
    region: str = "self:fra1"
    peers: tuple[Peer, ...] = ()
    context: int | None = None
    priorities: PrioritiesSection | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    engine: EngineSpec = field(default_factory=EngineSpec)
    metrics: bool = True
    bursts: Mapping[str, Burst] = field(default_factory=dict)


class House:
    """A running router, its fleet, and its address."""

    def __init__(
        self, router: Router, fleet: SimulatedFleet, public: str, admin: str, log: Path
    ) -> None:
        self.router = router
        self.fleet = fleet
        self.url = public
        self.admin = admin
        self.log = log

    def hits(self, region: str) -> int:
        """Clients' requests that reached a region's replicas; canaries hold nothing of theirs."""
        seen = [hit for replica in self.fleet.in_region(region) for hit in replica.seen]
        return sum(1 for hit in seen if hit.request_id != "probe")


def signing_key(folder: Path) -> Path:
    """A fresh log key as PEM."""
    path = folder / "log.key"
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def snapshot(plan: Plan, urls: Mapping[str, str], folder: Path) -> Snapshot:
    """The snapshot of a plan over replicas at these URLs, by region."""
    catalog = Catalog.load(OWN)
    endpoints = {
        region.partition(":")[2]: _endpoint(region, url, plan) for region, url in urls.items()
    }
    policy = Policy(
        catalog.atlas,
        "p" * 64,
        declared=plan.declared,
        tenants=_tenants(catalog, None if plan.priorities is None else Priority.INTERACTIVE),
        models={"assistant": Model("assistant", {Tier.LARGE: tuple(endpoints)})},
        endpoints=endpoints,
        rules=plan.rules,
    )
    ring = KeyRing(
        StoredKey(hashlib.sha256(key.encode()).digest(), Principal(f"key-{name}", name))
        for name, key in KEYS.items()
    )
    content = b"{}"
    return Snapshot(
        hashlib.sha256(content).hexdigest(),
        content,
        _config(plan, folder),
        policy,
        catalog,
        ring,
        {"vllm": load("vllm")},
        {name: {name: Target(e.urls[0])} for name, e in endpoints.items()},
        0.0,
    )


def _endpoint(region: str, url: str, plan: Plan) -> Endpoint:
    return Endpoint(
        region.partition(":")[2],
        "vllm",
        "self",
        "tiny",
        region,
        (url,),
        operate=("DE",),
        retain="nothing",
        settings=plan.settings,
        context_tokens=plan.context,
        features=frozenset({"tools", "json_schema", "images", "stream_usage"}),
        self_operated=True,
        burst=plan.bursts.get(region),
    )


def _tenants(catalog: Catalog, most: Priority | None) -> dict[str, Tenant]:
    atlas = catalog.atlas
    grants = {
        "eu": Grant.within(always(atlas.jurisdiction("EU"))),
        "us": Grant.within(always(atlas.country("US"))),
        "world": Grant.within(always(atlas.worldwide())),
    }
    tenants = {name: Tenant(name, grant, priority=most) for name, grant in grants.items()}
    tenants["nobody"] = Tenant("nobody")
    return tenants


def _config(plan: Plan, folder: Path) -> Config:
    section = RouterSection.model_construct(
        id="eu-1",
        region=plan.region,
        listen=("127.0.0.1", 0),
        admin=("127.0.0.1", 0),
        workers=1,
        peers=plan.peers,
        limits=plan.limits,
        priorities=plan.priorities,
    )
    return Config(
        version="1",
        router=section,
        keys=KeysSection(file="keys.yaml"),
        policies=PoliciesSection(baseline=("baseline.yaml",)),
        log=LogSection(dir=str(folder), signing_key="file:log.key"),
    )


def listening() -> socket.socket:
    """A listening socket on a free port."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.bind(("127.0.0.1", 0))
    found.listen(1024)
    return found


@asynccontextmanager
async def house(folder: Path, plan: Plan | None = None) -> AsyncIterator[House]:
    """A router with its fleet, from start to drained stop."""
    plan = plan or Plan()
    loop = asyncio.get_running_loop()
    spec = ReplicaSpec(engine=plan.engine, metrics=plan.metrics)
    async with SimulatedFleet(dict.fromkeys(plan.regions, spec)) as fleet:
        urls = {replica.region: replica.url for replica in fleet}
        settings = LogSettings(folder / "log", "eu-1", signing_key(folder))
        clocks = Clocks(time.time, loop.time, os.urandom)
        router = await Router.open(snapshot(plan, urls, folder), settings, clocks)
        public, private = listening(), listening()
        serving = Serving(router, public, private)
        await serving.start()
        try:
            yield House(
                router,
                fleet,
                f"http://127.0.0.1:{public.getsockname()[1]}",
                f"http://127.0.0.1:{private.getsockname()[1]}",
                folder / "log",
            )
        finally:
            await serving.stop(drain=2)
