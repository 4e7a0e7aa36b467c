"""The whole path to its two ends, with everything watched that could carry a byte away.

A router from real files, asked over a socket; a self-operated endpoint on either side of the
boundary; Bedrock at its real host names, over TLS, where the stub stands for them. Every name
looked up and every address connected to is kept, and a trap listens where no byte should come.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from regions.footprints.base import footprint
from regions.footprints.parameters import examine
from regions.model import Endpoint, Footprint
from router.app import Clocks, Router
from router.server import Serving, bind
from router.settings.loading import load_snapshot, log_settings
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockCall, BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver
from router.transport.messages import Origin, OutboundRequest, Timeouts, read_body
from tests.chaos.world import ENGINE, EU_ROUTES, SONNET_EU, SONNET_US, US_ROUTES, Clock
from tests.router.house import signing_key
from tests.spike.hosts import HOSTS

EVIL = "evil.example"
KEYS = {"clinic": "dom-clinic", "games": "dom-games"}
ROUTES: dict[str, dict[str, tuple[str, ...]]] = {
    SONNET_EU: {"eu-central-1": EU_ROUTES, "eu-west-1": EU_ROUTES},
    SONNET_US: {"us-east-1": US_ROUTES, "us-west-2": US_ROUTES},
}

_MAIN = """\
version: 1
router: {{id: eu-1, region: "self:fra1", limits: {{deadline: 60s, answer: 30s, first_token: 30s}}}}
keys: {{file: keys.yaml}}
policies: {{baseline: [baseline.yaml]}}
log: {{dir: log, signing_key: "file:log.key"}}
watch: {{scrape: 1h, stale: 2h, probe: 1h}}
"""
_BASELINE = """\
version: 1
regions: {{"self:fra1": {{country: DE}}, "self:iad1": {{country: US}}}}
tenants: {{clinic: {{grant: {{process: EU}}}}, games: {{grant: {{process: worldwide}}}}}}
models:
  own: {{tiers: {{large: [iad, fra]}}}}
  sonnet: {{tiers: {{large: [sonnet-us, sonnet-eu]}}}}
endpoints:
  fra: {{kind: vllm, probe: "off", region: "self:fra1", url: "{fra}", model: tiny, operate: [DE],
        retain: nothing, features: [{features}]}}
  iad: {{kind: vllm, probe: "off", region: "self:iad1", url: "{iad}", model: tiny, operate: [US],
        retain: nothing, features: [{features}]}}
  sonnet-eu: {{kind: bedrock, source: eu-central-1, model: {eu}, credentials: "file:aws.json",
              features: [{features}], retention_mode: none}}
  sonnet-us: {{kind: bedrock, source: us-east-1, model: {us}, credentials: "file:aws.json",
              features: [{features}], retention_mode: none}}
"""
_FEATURES = "tools, json_schema, images, audio, files, stream_usage"


@dataclass(slots=True)
class Watch:
    """Names looked up and addresses connected to, by anything in this process."""

    names: list[str] = field(default_factory=list)
    addresses: list[tuple[str, int]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    on: bool = False
    installed: bool = False

    def install(self) -> None:
        """Listen to the interpreter's own audit events, for good."""
        if not self.installed:
            sys.addaudithook(self._heard)
        self.installed = True

    def _heard(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on:
            return
        if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
            address = arguments[1]
            if isinstance(address, tuple):
                self.addresses.append((str(address[0]), int(address[1])))
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
            self.names.append(str(arguments[0]))
        elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"):
            self.started.append(str(arguments[0]))

    def clear(self) -> None:
        """Forget."""
        self.names.clear()
        self.addresses.clear()
        self.started.clear()


WATCH = Watch()


def papers(folder: Path) -> Path:
    """A certificate for every host of `HOSTS`, its own authority, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(h) for h in HOSTS]), False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    form, pem = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    file = folder / "papers.pem"
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    file.write_bytes(secret + made.public_bytes(pem))
    return file


def write(folder: Path, fra: str, iad: str) -> Path:
    """The router's files; Bedrock has no URL: the region alone says the host."""
    import hashlib

    texts = {"fra": fra, "iad": iad, "eu": SONNET_EU, "us": SONNET_US, "features": _FEATURES}
    (folder / "baseline.yaml").write_text(_BASELINE.format(**texts))
    keys = "version: 1\nkeys:\n"
    for name, key in KEYS.items():
        digest = hashlib.sha256(key.encode()).hexdigest()
        keys += f"  - {{id: {name}-key, sha256: {digest}, tenant: {name}}}\n"
    (folder / "keys.yaml").write_text(keys)
    secret = {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}
    (folder / "aws.json").write_text(json.dumps(secret))
    signing_key(folder)
    main = folder / "domicile.yaml"
    main.write_text(_MAIN.format())
    return main


class Trap:
    """A listener that no byte should ever reach; counts who came."""

    def __init__(self) -> None:
        self.caught = 0
        self.port = 0

    @asynccontextmanager
    async def set(self) -> AsyncIterator[Trap]:
        """Listen on a free port."""

        def came(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.caught += 1
            writer.close()

        server = await asyncio.start_server(came, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()


@dataclass(slots=True)
class Ends:
    """The two ends of the path, and the files of a router between."""

    folder: Path
    main: Path
    fleet: SimulatedFleet
    bedrock: BedrockStub
    trap: Trap
    clock: Clock

    @property
    def allowed(self) -> set[tuple[str, int]]:
        """Every address that a router may connect to."""
        ports = [one.port for one in self.fleet] + [self.bedrock.port]
        return {("127.0.0.1", port) for port in ports}


@asynccontextmanager
async def ends(folder: Path) -> AsyncIterator[Ends]:
    """Start the ends."""
    clock = Clock()
    pem = papers(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    spec = BedrockSpec(BedrockWorld.of(ROUTES), engine=ENGINE, keep_bodies=True)
    kept = ReplicaSpec(engine=ENGINE, keep_bodies=True)
    specs = dict.fromkeys(("self:fra1", "self:iad1"), kept)
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(SimulatedFleet(specs))
        bedrock = BedrockStub(spec, tls=tls, wall=clock)
        await stack.enter_async_context(bedrock)
        bedrock.retention.update(dict.fromkeys((*EU_ROUTES, *US_ROUTES), "none"))
        trap = await stack.enter_async_context(Trap().set())
        main = write(folder, fleet["fra1"].url, fleet["iad1"].url)
        yield Ends(folder, main, fleet, bedrock, trap, clock)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it ended, and everything it set off."""

    tenant: str
    status: int
    code: str
    body: Mapping[str, object]
    selves: tuple[tuple[str, bytes], ...]
    calls: tuple[BedrockCall, ...]
    addresses: frozenset[tuple[str, int]]
    names: tuple[str, ...]
    started: tuple[str, ...]

    @property
    def sent(self) -> bool:
        """Whether anything left the router."""
        return bool(self.selves or self.calls or self.addresses)


class Way:
    """A router between the ends, and a client of it."""

    def __init__(self, world: Ends, router: Router, port: int) -> None:
        self.world, self.router, self._port = world, router, port

    async def ask(self, tenant: str, body: Mapping[str, object]) -> Asked:
        """One request, watched; our own connection to the router is no part of it."""
        world = self.world
        for replica in world.fleet:
            replica.seen.clear()
        world.bedrock.calls.clear()
        with watched():
            status, answer = await ask(self._port, tenant, body)
            heard = frozenset(WATCH.addresses) - {("127.0.0.1", self._port)}
            names, started = tuple(WATCH.names), tuple(WATCH.started)
        code = "ok" if status == 200 else orjson.loads(answer)["error"]["code"]
        selves = tuple((one.region, hit.body) for one in world.fleet for hit in one.seen)
        calls = tuple(call for call in world.bedrock.calls if call.method == "POST")
        return Asked(tenant, status, code, body, selves, calls, heard, names, started)

    def footprint(self, name: str, body: Mapping[str, object]) -> tuple[Endpoint, Footprint]:
        """What an endpoint's footprint for this body is, computed without a router."""
        snapshot = self.router.live.snapshot
        endpoint = snapshot.policy.endpoints[name]
        call = examine("chat.completions", body)
        return endpoint, footprint(endpoint, call, snapshot.catalog, self.world.clock())


async def ask(port: int, tenant: str, body: Mapping[str, object]) -> tuple[int, bytes]:
    """One request to a router; status and body of its answer."""
    headers = (
        (b"authorization", b"Bearer " + KEYS[tenant].encode()),
        (b"content-type", b"application/json"),
    )
    origin, target = Origin("http", "127.0.0.1", port), "/v1/chat/completions"
    request = OutboundRequest(origin, "POST", target, headers, orjson.dumps(body))
    until = asyncio.get_running_loop().time() + 60
    client = HttpTransport()
    try:
        response = await client.send(request, Timeouts(until))
        return response.status, await read_body(response, 1 << 22, until)
    finally:
        await client.close()


@contextmanager
def watched() -> Iterator[None]:
    """Listen while inside."""
    WATCH.clear()
    WATCH.on = True
    try:
        yield
    finally:
        WATCH.on = False


@asynccontextmanager
async def path(world: Ends) -> AsyncIterator[Way]:
    """Load the files and run a router; AWS's host names lead to the stub."""
    snapshot = load_snapshot(world.main, os.environ, world.clock())
    settings = log_settings(snapshot.config, world.folder)
    clocks = Clocks(world.clock, asyncio.get_running_loop().time, os.urandom)
    stub = ("127.0.0.1", world.bedrock.port)
    transport = HttpTransport(SystemResolver(dict.fromkeys(HOSTS, stub)))
    router = await Router.open(snapshot, settings, clocks, transport)
    public, private = (bind(("127.0.0.1", 0), what) for what in ("listen", "admin"))
    serving = Serving(router, public, private)
    await serving.start()
    try:
        await looked(router)
        yield Way(world, router, port_of(public))
    finally:
        await serving.stop(drain=1)


async def looked(router: Router) -> None:
    """Wait until the drift check has asked about both endpoints: its calls are not a request's.
    One it could not read is noted, and asked about again later."""
    assert router.watches is not None
    give_up = asyncio.get_running_loop().time() + 20
    while len(router.watches.drift.newest) < 2 and "watch:drift" not in router.live.notes:
        assert asyncio.get_running_loop().time() < give_up, router.live.notes
        await asyncio.sleep(0.01)


def port_of(door: socket.socket) -> int:
    """Its port."""
    port: int = door.getsockname()[1]
    return port


def inside(way: Way, asked: Asked) -> Iterator[str]:
    """What of a request's traces lies outside the footprint computed for it, in words."""
    if asked.started:
        yield f"started {asked.started}"
    if asked.names:
        yield f"looked up {asked.names}"
    if not asked.addresses <= way.world.allowed:
        yield f"connected to {asked.addresses - way.world.allowed}"
    if way.world.trap.caught:
        yield "somebody came to the trap"
    for region, body in asked.selves:
        name = {"self:fra1": "fra", "self:iad1": "iad"}[region]
        yield from _held(way, asked, name, {region})
        # What nobody knows may pass to a server of one's own; a URL in it, or a place, may not.
        if f"://{EVIL}".encode() in body.lower():
            yield f"{name} was sent a url of {EVIL}"
    for call in asked.calls:
        yield from _bedrock(way, asked, call)


def _held(way: Way, asked: Asked, name: str, observed: set[str]) -> Iterator[str]:
    _, where = way.footprint(name, asked.body)
    policy = way.router.live.snapshot.policy
    grant = policy.tenants[asked.tenant].grant
    if not where.process.is_known:
        yield f"{name} was asked though it is unknown where: {where.missing}"
    elif not observed <= set(where.process.ids):
        yield f"{name}: {observed - set(where.process.ids)} is outside {where.process.ids}"
    assert grant is not None
    if not grant.process.at(way.world.clock()).contains(where.process):
        yield f"{name} is outside the grant of {asked.tenant}"


def _bedrock(way: Way, asked: Asked, call: BedrockCall) -> Iterator[str]:
    name = {"eu-central-1": "sonnet-eu", "us-east-1": "sonnet-us"}.get(call.region)
    if name is None:
        yield f"Bedrock was called at {call.host}"
        return
    endpoint, _ = way.footprint(name, asked.body)
    ran = {f"aws:{region}" for region in (call.region, call.signed_region, call.actual) if region}
    yield from _held(way, asked, name, ran)
    verb = "converse-stream" if asked.body.get("stream") is True else "converse"
    expected = {
        "host": f"bedrock-runtime.{call.region}.amazonaws.com",
        "signed_region": call.region, "signed_service": "bedrock", "credential": "sigv4",
        "key_id": TEST_KEY, "target": endpoint.model, "path": f"/model/{endpoint.model}/{verb}",
        "guardrail": "", "guardrail_profile": "", "project": "", "method": "POST",
    }  # fmt: skip
    for what, value in expected.items():
        if getattr(call, what) != value:
            yield f"{name}: {what} is {getattr(call, what)!r}, not {value!r}"
    if EVIL.encode() in call.body:
        yield f"{name} was sent {EVIL}"
    document = orjson.loads(call.body)
    known = {"messages", "system", "inferenceConfig", "toolConfig", "requestMetadata",
             "additionalModelRequestFields", "outputConfig", "serviceTier"}  # fmt: skip
    if not set(document) <= known:
        yield f"{name} was sent {set(document) - known}"
    if set(document.get("requestMetadata", {})) - {"domicile-record"}:
        yield f"{name} was sent {document['requestMetadata']}"
