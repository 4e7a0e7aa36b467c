"""A router's traffic over some hours, seeded, as its own log and as its providers record it.

`Traffic` decides what is asked; `logged` writes the region log with the real writer; `Trail` writes
CloudTrail's files with digests signed by a test key, as AWS lays them out. Tests change something
in between, and know what must be found.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from router.audit.entry import Entry, Interned, Json
from router.audit.layout import Folder
from router.ids import Ids
from router.reconcile.digests import Keys
from router.reconcile.model import Facts
from router.simulator.cloudtrail import Invocation, Record, records
from tests.router.audit.logbox import START, LogBox

ACCOUNT = "123456789012"
EU = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-west-1", "eu-west-3")
ALLOWED: list[Json] = [*(f"aws:{region}" for region in EU), "self:fra1", "azure:swedencentral",
                       "gcp:europe-west4"]  # fmt: skip
PROFILE = "eu.anthropic.claude-sonnet-4-6"
NOVA = "amazon.nova-lite-v1:0"
HOUR = 3600


@dataclass(frozen=True)
class Made:
    """An endpoint of the generated router."""

    name: str
    facts: Facts
    footprint: tuple[str, ...]

    @property
    def ran(self) -> Interned:
        told: dict[str, Json] = {
            "provider": self.facts.provider, "model": self.facts.model, "source": self.facts.source,
            "process": list(self.footprint), "retain": "nothing", "operate": ["DE"],
        }  # fmt: skip
        return Interned({"endpoint": self.name, "ran": told, "place": "not observable"})


SONNET = Made("sonnet-eu", Facts("bedrock", "aws", PROFILE, "aws:eu-central-1", False),
              tuple(f"aws:{region}" for region in EU))  # fmt: skip
LOCAL = Made("nova", Facts("bedrock", "aws", NOVA, "aws:eu-west-1", False), ("aws:eu-west-1",))
FRA = Made("fra", Facts("vllm", "self", "Qwen/Qwen3-8B", "self:fra1", True), ("self:fra1",))
GPT = Made("gpt-se", Facts("azure", "azure", "prod-chat", "azure:swedencentral", False),
           ("azure:swedencentral",))  # fmt: skip
GEMINI = Made("gemini", Facts("vertex", "gcp", "gemini-2.5-pro", "gcp:europe-west4", False),
              ("gcp:europe-west4",))  # fmt: skip
ENDPOINTS = {made.name: made for made in (SONNET, LOCAL, FRA, GPT, GEMINI)}


def facts(folder: Folder, snapshot: str) -> dict[str, Facts]:
    return {name: made.facts for name, made in ENDPOINTS.items()}


@dataclass
class Asked:
    """One attempt: what the router did, and what the provider knows of it."""

    at: float
    made: Made
    call_id: str
    result: str = "ok"
    stream: bool = False
    place: str = ""
    listed: bool = True
    error: str = ""

    @property
    def invocation(self) -> Invocation:
        """As the simulator tells CloudTrail of it."""
        region = self.made.facts.source.partition(":")[2]
        name = "ConverseStream" if self.stream else "Converse"
        return Invocation(
            self.at + 0.2, name, region, self.made.facts.model, self.call_id, ACCOUNT, "AKIDROUTER",
            f"bedrock-runtime.{region}.amazonaws.com", self.stream, self.place, 3, 5, self.error,
        )  # fmt: skip


@dataclass
class Request:
    """One request: its attempts in order."""

    id: str
    attempts: list[Asked]
    record: str = ""


@dataclass
class Traffic:
    """Requests over `hours`, drawn from a seed: streams, retries, throttles, lost answers."""

    seed: int
    count: int = 40
    hours: int = 3
    endpoints: Sequence[Made] = (SONNET, LOCAL)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        times = sorted(self.random.uniform(5, self.hours * HOUR - 600) for _ in range(self.count))
        self.requests = [self._request(START + at) for at in times]

    def _request(self, at: float) -> Request:
        failed: list[Asked] = []
        if self.random.random() < 0.2:
            failed.append(self._failed(at))
        last = self.attempt(at + len(failed))
        id_ = Ids(lambda: at, self.random.randbytes, 1)()
        return Request(id_, [*failed, last])

    def attempt(self, at: float, made: Made | None = None) -> Asked:
        """One that is answered."""
        made = made or self.random.choice(self.endpoints)
        place = ""
        if made is SONNET:
            place = self.random.choice(EU)
        stream = self.random.random() < 0.5
        return Asked(at, made, str(self.uuid()), stream=stream, place=place)

    def _failed(self, at: float) -> Asked:
        made = self.random.choice(self.endpoints)
        kind = self.random.choice(["load", "connect_failed", "timeout_seen", "timeout_unseen"])
        one = Asked(at, made, str(self.uuid()), kind.partition("_")[0])
        if kind == "load":
            return replace(one, error="ThrottlingException")
        if kind == "connect_failed":
            return replace(one, result="connect_failed", call_id="", listed=False)
        # The answer never came: the log has no id of it, the provider may have run it.
        place = self.random.choice(EU) if made is SONNET and kind == "timeout_seen" else ""
        return replace(one, listed=kind == "timeout_seen", place=place)

    def uuid(self) -> UUID:
        return UUID(int=self.random.getrandbits(128), version=4)

    @property
    def attempts(self) -> Iterator[Asked]:
        return (one for request in self.requests for one in request.attempts)

    @property
    def invocations(self) -> list[Invocation]:
        """What the account's CloudTrail knows of it."""
        seen = [one for one in self.attempts if one.listed and one.made.facts.kind == "bedrock"]
        return [one.invocation for one in seen]


async def logged(traffic: Traffic, root: Path) -> Path:
    """The region log of the traffic, by the real writer; each request learns its record."""
    box = LogBox(root, traffic.seed)
    log = await box.open()
    rans = {made.name: made.ran for made in ENDPOINTS.values()}
    snapshot = hashlib.sha256(b"{}").hexdigest()
    await log.snapshot(snapshot, b"{}")
    common = Interned({"allowed": {"process": ALLOWED}, "snapshot": snapshot})
    for request in traffic.requests:
        box.clock.now = request.attempts[0].at
        plan: list[Json] = [*dict.fromkeys(one.made.name for one in request.attempts)]
        decision = Entry("decision", request.id, box.clock.now, {"plan": plan}, common)
        committed = await log.commit(decision, None)
        request.record = f"{committed.receipt.log}/{committed.receipt.index}"
        box.clock.now = request.attempts[-1].at + 1
        body: dict[str, Json] = {
            "status": "ok",
            "attempts": [_told(one) for one in request.attempts],
        }
        ran = rans[request.attempts[-1].made.name]
        await log.record(Entry("outcome", request.id, box.clock.now, body, ran))
    box.clock.now = START + traffic.hours * HOUR
    await log.close()
    return box.folder


def _told(one: Asked) -> dict[str, Json]:
    told: dict[str, Json] = {"endpoint": one.made.name, "result": one.result, "ms": 900}
    # Of an answer that never came no id is known.
    return {**told, "call": one.call_id} if one.result in ("ok", "load") else told


# -- CloudTrail ----------------------------------------------------------------------------


@cache
def signing_key() -> RSAPrivateKey:
    return generate_private_key(65537, 2048)


FINGERPRINT = "31e8b5433410dfb61a9dc45cc65b22ff"


def keys() -> Keys:
    return {FINGERPRINT: signing_key().public_key()}


def stamp(at: float, form: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    return datetime.fromtimestamp(at, UTC).strftime(form)


def events(invocations: Sequence[Invocation]) -> list[Record]:
    return [record for call in invocations for record in records(call)]


@dataclass
class Trail:
    """CloudTrail's delivery of some events: hourly digests and log files per region."""

    folder: Path
    events: Sequence[Record]
    start: float = START
    hours: int = 4
    edit: Callable[[dict[str, object]], dict[str, object]] = lambda said: said
    signer: RSAPrivateKey = field(default_factory=signing_key)
    seed: int = 1
    name: str = "main"
    late: str = ""
    files: list[Path] = field(default_factory=list)
    digests: list[Path] = field(default_factory=list)

    def write(self) -> Trail:
        """Write it all; the newest digest's signature lies beside it."""
        regions = sorted({str(one["awsRegion"]) for one in self.events} or {"eu-central-1"})
        for region in regions:
            self._region(region)
        return self

    def _region(self, region: str) -> None:
        random = Random(f"{self.seed} {region}")
        previous: tuple[str, str, str] | None = None
        for hour in range(self.hours):
            begin, end = self.start + hour * HOUR, self.start + (hour + 1) * HOUR
            inside = [one for one in self.events if str(one["awsRegion"]) == region
                      and stamp(begin) <= str(one["eventTime"]) < stamp(end)]  # fmt: skip
            listed = []
            while inside:
                size = random.randint(1, 12)
                listed.append(self._log_file(region, inside[:size], end - 60, random))
                inside = inside[size:]
            previous = self._digest(region, begin, end, listed, previous)

    def _log_file(
        self, region: str, held: Sequence[Record], at: float, random: Random
    ) -> dict[str, object]:
        unique = f"{random.getrandbits(96):024x}"[:16]
        name = f"{ACCOUNT}_CloudTrail_{region}_{stamp(at, '%Y%m%dT%H%MZ')}_{unique}.json.gz"
        content = json.dumps({"Records": list(held)}).encode()
        key = f"AWSLogs/{ACCOUNT}/CloudTrail/{region}/{stamp(at, '%Y/%m/%d')}/{name}"
        self.files.append(self._put(key, content))
        times = sorted(str(one["eventTime"]) for one in held)
        return {
            "s3Bucket": "trail", "s3Object": key, "hashAlgorithm": "SHA-256",
            "hashValue": hashlib.sha256(content).hexdigest(),
            "newestEventTime": times[-1], "oldestEventTime": times[0],
        }  # fmt: skip

    def _digest(
        self, region: str, begin: float, end: float, listed: Sequence[dict[str, object]],
        previous: tuple[str, str, str] | None,
    ) -> tuple[str, str, str]:  # fmt: skip
        when = stamp(end, "%Y%m%dT%H%M%SZ")
        name = (
            f"{ACCOUNT}_CloudTrail-Digest_{region}_{self.name}_{region}_{when}{self.late}.json.gz"
        )
        key = f"AWSLogs/{ACCOUNT}/CloudTrail-Digest/{region}/{stamp(end, '%Y/%m/%d')}/{name}"
        before = previous or (None, None, None)
        said = self.edit({
            "awsAccountId": ACCOUNT, "digestStartTime": stamp(begin), "digestEndTime": stamp(end),
            "digestS3Bucket": "trail", "digestS3Object": key,
            "digestPublicKeyFingerprint": FINGERPRINT, "digestSignatureAlgorithm": "SHA256withRSA",
            "previousDigestS3Bucket": "trail" if previous else None,
            "previousDigestS3Object": before[0], "previousDigestHashValue": before[1],
            "previousDigestHashAlgorithm": "SHA-256", "previousDigestSignature": before[2],
            "logFiles": list(listed),
        })  # fmt: skip
        content = json.dumps(said).encode()
        path = self._put(key, content)
        self.digests.append(path)
        signed = "\n".join((
            str(said["digestEndTime"]), f"trail/{key}", hashlib.sha256(content).hexdigest(),
            str(before[2] or "null"),
        )).encode()  # fmt: skip
        signature = self.signer.sign(signed, PKCS1v15(), SHA256()).hex()
        last = end >= self.start + self.hours * HOUR
        if last:
            path.with_name(path.name + ".signature").write_text(signature)
        return key, hashlib.sha256(content).hexdigest(), signature

    def _put(self, key: str, content: bytes) -> Path:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content, mtime=0))
        return path
