"""A router from real files over a fleet that can be broken, and a client that keeps what it heard.

In the EU two regions with two replicas each, outside it one, and Bedrock with a profile on either
side. The endpoints outside are written first, so that only the boundary keeps them from being
chosen.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import orjson

from regions.catalog import Catalog, epoch
from router.app import Clocks, Router
from router.server import Serving, bind
from router.settings.loading import load_snapshot, log_settings
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from router.transport.client import HttpTransport
from router.transport.messages import Origin, OutboundRequest, Timeouts, TransportError, read_body
from tests.router.house import signing_key

EU_REPLICAS = ("self:fra1/0", "self:fra1/1", "self:par1/0", "self:par1/1")
REPLICAS = (*EU_REPLICAS, "self:iad1/0")
OUTSIDE = frozenset({"iad", "sonnet-us"})
SONNET_EU, SONNET_US = "eu.anthropic.claude-sonnet-4-6", "us.anthropic.claude-sonnet-4-6"
EU_ROUTES = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
US_ROUTES = ("us-east-1", "us-east-2", "us-west-2")
ENGINE = EngineSpec(step_floor=0.001, per_sequence=0.00001, prefill_rate=100_000)
DEADLINE = 6.0

# tenant → grant of `process`; the one without is known and may do nothing.
TENANTS = {"clinic": "EU", "games": "worldwide", "bank": "US", "island": "JP", "nobody": None}
KEYS = {name: f"dom-{name}" for name in (*TENANTS, "narrow")}

HASTY = "first_token: 300ms, answer: 400ms, idle: 300ms"
PATIENT = "first_token: 4s, answer: 5s, idle: 4s"
"""Limits of one attempt; the second for tests in which only what is broken may be late."""
_MAIN = """\
version: 1
router:
  id: eu-1
  region: self:fra1
  listen: 127.0.0.1:{listen}
  admin: 127.0.0.1:{admin}
  peers: [{{region: self:iad1, url: "https://us.example.com"}}]
  limits: {{{limits}, connect: 1s, deadline: {deadline}}}
keys: {{file: keys.yaml}}
policies: {{baseline: [baseline.yaml], rules: [rules.yaml]}}
log: {{dir: log, signing_key: "file:log.key"}}
"""
_ENDPOINT = "  {name}: {{kind: vllm, region: {region}, urls: {urls}, model: tiny, {stated}}}\n"
_BEDROCK = (
    '  {name}: {{kind: bedrock, source: {source}, model: {model}, url: "{url}",\n'
    '    credentials: "file:aws.json", retention_mode: none}}\n'
)
_RULES = """\
version: 1
rules:
  - {name: health-in-germany, when: {data_class: health}, process_within: DE, because: "a test"}
  - {name: phi-needs-baa, when: {data_class: phi}, require: [baa], because: "a test"}
"""


def write(
    folder: Path,
    urls: Mapping[str, str],
    ports: tuple[int, int] = (0, 0),
    bedrock: str = "",
    limits: str = HASTY,
    *,
    deadline: str = f"{int(DEADLINE)}s",
    more: Mapping[str, str] = MappingProxyType({}),
    concurrency: Mapping[str, int] = MappingProxyType({}),
) -> Path:
    """Write a router's files; gives the configuration's path.

    `urls` are those of `REPLICAS`; without a URL of `bedrock` there is no model `sonnet`. `more`
    is by tenant what stands beside its grant; `concurrency` is by key.
    """
    unknown = (more.keys() - TENANTS.keys()) | (concurrency.keys() - KEYS.keys())
    assert not unknown, unknown
    main = folder / "domicile.yaml"
    listen, admin = ports
    main.write_text(_MAIN.format(listen=listen, admin=admin, deadline=deadline, limits=limits))
    (folder / "baseline.yaml").write_text(_baseline(urls, bedrock, more))
    (folder / "rules.yaml").write_text(_RULES)
    keys = [_key(name, concurrency.get(name)) for name in KEYS]
    (folder / "keys.yaml").write_text("version: 1\nkeys:\n" + "".join(keys))
    secret = {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}
    (folder / "aws.json").write_text(json.dumps(secret))
    signing_key(folder)
    return main


def _baseline(urls: Mapping[str, str], bedrock: str, more: Mapping[str, str]) -> str:
    lines = "version: 1\nregions:\n"
    for region, country in (("fra1", "DE"), ("par1", "FR"), ("iad1", "US")):
        lines += f"  self:{region}: {{country: {country}}}\n"
    lines += "tenants:\n"
    for tenant, within in TENANTS.items():
        grant = [f"grant: {{process: {within}}}"] if within else []
        also = [more[tenant]] if tenant in more else []
        lines += f"  {tenant}: {{{', '.join(grant + also)}}}\n"
    lines += "models:\n  assistant: {tiers: {large: [iad, fra, par]}}\n"
    if bedrock:
        lines += "  sonnet: {tiers: {large: [sonnet-us, sonnet-eu]}}\n"
    lines += "endpoints:\n"
    for name, country in (("iad", "US"), ("fra", "DE"), ("par", "FR")):
        region = f"self:{name}1"
        found = json.dumps([url for key, url in urls.items() if key.startswith(f"{region}/")])
        stated = f"operate: [{country}], retain: nothing"
        lines += _ENDPOINT.format(name=name, region=region, urls=found, stated=stated)
    if bedrock:
        for name, source, model in (
            ("sonnet-us", "us-east-1", SONNET_US),
            ("sonnet-eu", "eu-central-1", SONNET_EU),
        ):
            lines += _BEDROCK.format(name=name, source=source, model=model, url=bedrock)
    lines += "attributes:\n  data_class: {values: [internal, health, phi], default: internal}\n"
    return lines


def _key(name: str, concurrency: int | None) -> str:
    tenant, most = ("clinic", concurrency or 1) if name == "narrow" else (name, concurrency)
    more = "" if most is None else f", concurrency: {most}"
    digest = hashlib.sha256(KEYS[name].encode()).hexdigest()
    return f"  - {{id: {name}-key, sha256: {digest}, tenant: {tenant}{more}}}\n"


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds since the epoch, one day after the catalog's date: facts age, a test must not."""

    start: float = field(default_factory=lambda: epoch(Catalog.load({}).date) + 86400)
    began: float = field(default_factory=time.monotonic)

    def __call__(self) -> float:
        return self.at(time.monotonic())

    def at(self, monotonic: float) -> float:
        """The time at a monotonic reading."""
        return self.start + monotonic - self.began


@dataclass(frozen=True, slots=True)
class World:
    """Everything that runs."""

    folder: Path
    fleet: SimulatedFleet
    bedrock: BedrockStub
    router: Router
    url: str
    clock: Clock

    @property
    def log(self) -> Path:
        """The region log's folder."""
        return self.folder / "log"

    @property
    def any_inside(self) -> bool:
        """Whether any replica in the EU is alive."""
        return any(self.fleet[name].alive for name in EU_REPLICAS)


def specs() -> dict[str, ReplicaSpec]:
    """The fleet's replicas."""
    return {name: ReplicaSpec(engine=ENGINE) for name in REPLICAS}


@asynccontextmanager
async def running(
    folder: Path,
    replicas: Mapping[str, ReplicaSpec] | None = None,
    limits: str = HASTY,
    clock: Clock | None = None,
    edit: Callable[[str], str] = lambda baseline: baseline,
) -> AsyncIterator[World]:
    """Start everything on loopback; stop it all at the end.

    Args:
        replicas: others than usual.
        clock: the router's wall clock, if another.
        edit: changes the baseline file's text.
    """
    clock = clock or Clock()
    routes: dict[str, dict[str, tuple[str, ...]]] = {
        SONNET_EU: {"eu-central-1": EU_ROUTES},
        SONNET_US: {"us-east-1": US_ROUTES},
    }
    bedrock = BedrockStub(
        BedrockSpec(BedrockWorld.of(routes), engine=ENGINE, keep_bodies=True), wall=clock
    )
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(SimulatedFleet(replicas or specs()))
        await stack.enter_async_context(bedrock)
        bedrock.retention.update(dict.fromkeys((*EU_ROUTES, *US_ROUTES), "none"))
        public, private = (bind(("127.0.0.1", 0), what) for what in ("listen", "admin"))
        port = public.getsockname()[1]
        urls = {replica.name: replica.url for replica in fleet}
        main = write(folder, urls, (port, private.getsockname()[1]), bedrock.url, limits)
        baseline = folder / "baseline.yaml"
        baseline.write_text(edit(baseline.read_text()))
        clocks = Clocks(clock, asyncio.get_running_loop().time, os.urandom)
        snapshot = load_snapshot(main, {}, clock())
        router = await Router.open(snapshot, log_settings(snapshot.config, folder), clocks)
        serving = Serving(router, public, private)
        await serving.start()
        try:
            yield World(folder, fleet, bedrock, router, f"http://127.0.0.1:{port}", clock)
        finally:
            await serving.stop(drain=2)


@dataclass(frozen=True, slots=True)
class Heard:
    """One request and what came back; status 0: nothing did (`body` says why)."""

    tenant: str
    stream: bool
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float
    inside_alive: bool = True
    left: bool = False

    @property
    def code(self) -> str:
        """The error's code; `ok` for an answer, what went wrong where nothing came."""
        if self.status == 200:
            return "ok"
        if self.status == 0:
            return self.body.partition(b":")[0].decode()
        found = orjson.loads(self.body)["error"]["code"]
        assert isinstance(found, str)
        return found

    @property
    def record(self) -> tuple[int, str]:
        """Index and leaf hash of its receipt."""
        _, index, leaf = self.headers["x-domicile-record"].split("/")
        return int(index), leaf


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask. `patience` is how long until the client leaves; `None`: it waits."""

    key: str
    stream: bool = False
    model: str = "assistant"
    headers: tuple[tuple[str, str], ...] = ()
    patience: float | None = None
    tokens: int = 3
    text: str = "say something"


Answer = tuple[int, dict[str, str], bytes]


class Client:
    """Asks over real sockets, with our own transport: it says exactly what was on the wire."""

    def __init__(self, url: str) -> None:
        self._origin = Origin.parse(url)
        self._transport = HttpTransport()

    async def ask(self, question: Question) -> Heard:
        """One request. It never raises for what a router may do."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        until = began + DEADLINE + 10
        try:
            async with asyncio.timeout(question.patience):
                status, headers, body = await self._exchange(question, until)
        except TimeoutError:
            return Heard(question.key, question.stream, 0, {}, b"", loop.time() - began, left=True)
        except TransportError as error:
            shown = f"{error.code}: {error}".encode()
            return Heard(question.key, question.stream, 0, {}, shown, loop.time() - began)
        return Heard(question.key, question.stream, status, headers, body, loop.time() - began)

    async def _exchange(
        self, question: Question, until: float
    ) -> tuple[int, dict[str, str], bytes]:
        response = await self._transport.send(
            OutboundRequest(
                self._origin, "POST", "/v1/chat/completions", _headers(question), _body(question)
            ),
            Timeouts(until),
        )
        body = await read_body(response, 1 << 20, until)
        return response.status, {k.decode(): v.decode() for k, v in response.headers}, body

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()


def _headers(question: Question) -> tuple[tuple[bytes, bytes], ...]:
    sent: Sequence[tuple[str, str]] = (
        ("authorization", f"Bearer {KEYS[question.key]}"),
        ("content-type", "application/json"),
        *question.headers,
    )
    return tuple((k.encode(), v.encode()) for k, v in sent)


def _body(question: Question) -> bytes:
    return orjson.dumps(
        {
            "model": question.model,
            "messages": [{"role": "user", "content": question.text}],
            "max_tokens": question.tokens,
            "stream": question.stream,
        }
    )
