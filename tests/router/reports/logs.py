"""Logs to report on: entries as the router writes them, from a list of what happened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from router.audit.entry import Entry, Interned, Json
from router.audit.log import AuditLog
from router.audit.receipt import Receipt
from router.cli.init import CONFIG
from router.entries.recipients import SELF
from router.snapshot import Snapshot
from tests.router.audit.logbox import LogBox
from tests.router.folders import write

BASELINE = """\
version: 1
regions:
  self:fra1: {country: DE, lat: 50.11, lon: 8.68}
  self:par1: {country: FR, lat: 48.86, lon: 2.35}
  self:iad1: {country: US, lat: 38.95, lon: -77.45}
  self:nowhere1: {country: SE}
tenants:
  clinic: {grant: {process: EU, retain: EU}, models: [assistant]}
  shop: {grant: {process: worldwide}}
  bank: {grant: {process: worldwide}}
models:
  assistant: {tiers: {large: [fra, par, iad, sonnet, far]}}
endpoints:
  fra: {kind: vllm, region: self:fra1, url: "http://127.0.0.1:1", model: l, operate: [DE],
        retain: nothing}
  par: {kind: vllm, region: self:par1, url: "http://127.0.0.1:2", model: l, operate: [FR],
        retain: nothing}
  iad: {kind: vllm, region: self:iad1, url: "http://127.0.0.1:3", model: l, operate: [US],
        retain: nothing,
        assurances: [{name: scc, evidence: contracts/iad.pdf, approved_by: dpo}]}
  far: {kind: vllm, region: self:nowhere1, url: "http://127.0.0.1:4", model: l, operate: [SE],
        retain: nothing}
  sonnet: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6,
           credentials: instance-role, retention_mode: none,
           assurances: [{name: dpa, evidence: contracts/aws-dpa.pdf, approved_by: dpo,
                         until: 2027-01-20}]}
attributes:
  data_class: {values: [public, internal, health], default: internal}
"""
RULES = """\
version: 1
rules:
  - {name: health-in-eu, when: {data_class: health}, process_within: EU,
     because: "GDPR Art. 9, 44"}
  - {name: only-france, when: {data_class: internal}, process_within: FR,
     dry_run: {until: 2031-01-01}}
"""
EU = (
    "aws:eu-central-1", "aws:eu-north-1", "aws:eu-south-1", "aws:eu-south-2", "aws:eu-west-1",
    "aws:eu-west-3",
)  # fmt: skip
RUNS: dict[str, tuple[str, ...]] = {
    "fra": ("self:fra1",), "par": ("self:par1",), "iad": ("self:iad1",), "sonnet": EU,
    "far": ("self:nowhere1",),
}  # fmt: skip


def snapshot(root: Path) -> Snapshot:
    """The world of these logs, loaded as a router loads it."""
    config = CONFIG.replace("self:local", "self:fra1")
    return write(root / "world", BASELINE, RULES, config).snapshot()


@dataclass(frozen=True, slots=True)
class Did:
    """One request: `endpoint` answered after those in `failed`; empty: nobody did.

    `prefilled`: where another endpoint ran that computed its prompt first.
    """

    tenant: str = "clinic"
    data_class: str = "internal"
    endpoint: str = "fra"
    failed: tuple[str, ...] = ()
    prefilled: tuple[str, ...] = ()
    code: str = ""
    told: str = ""
    status: str = "ok"
    retain: tuple[str, ...] = ("aws:eu-central-1", *RUNS["fra"], *RUNS["par"])
    purpose: str = "interactive"
    apart: float = 10.0
    because: str = "GDPR Art. 9, 44"
    recipients: tuple[str, ...] | None = None  # None: as entries of before were


@dataclass(slots=True)
class Scribbler:
    """Writes what was done into a log, as `router.entries.records` does."""

    log: AuditLog
    box: LogBox
    snapshot: Snapshot
    number: int = 0
    receipts: list[Receipt] = field(default_factory=list)

    async def all(self, done: Iterable[Did]) -> None:
        for one in done:
            await self.one(one)

    async def one(self, did: Did) -> None:
        self.box.clock.now += did.apart
        self.number += 1
        id_ = f"q{self.number}"
        now, common = self.box.clock.now, Interned(self.common(did))
        allowed: dict[str, Json] = {"allowed": Interned(self.allowed(did))}
        if did.code == "misdirected":
            body: dict[str, Json] = {"key": "k", "target": "self:iad1", "when": "early"}
            await self.log.record(Entry("misdirected", id_, now, body))
            return
        if did.code:
            entry = Entry("refusal", id_, now, {"code": did.code, **allowed}, common)
            await self.log.record(entry)
            return
        plan: list[Json] = [*did.failed, *([did.endpoint] if did.endpoint else [])]
        told: dict[str, Json] = {"plan": plan, **allowed}
        if did.prefilled:
            told["prefill"] = {"fra": "pre"}
        entry = Entry("decision", id_, now, told, common)
        self.receipts.append((await self.log.commit(entry, None)).receipt)
        if did.status != "open":
            await self.log.record(self.outcome(did, id_, now))

    def common(self, did: Did) -> dict[str, Json]:
        held: dict[str, Json] = {"values": [did.data_class], "closed": True, "from": []}
        return {
            "who": {
                "tenant": did.tenant, "app": "", "key": f"{did.tenant}-1", "model": "assistant",
                "surface": "chat.completions", "purpose": did.purpose, "clock": "ok",
                "policy": self.snapshot.policy.digest,
                "router": {"id": "eu-1", "region": "self:fra1"},
            },
            "snapshot": self.snapshot.digest,
            "attributes": {"data_class": held},
        }  # fmt: skip

    def allowed(self, did: Did) -> dict[str, Json]:
        rule: dict[str, Json] = {
            "rule": "health-in-eu", "row": "", "because": did.because, "unknown": [],
        }  # fmt: skip
        return {
            "retain": list(did.retain),
            "rules": [rule] if did.data_class == "health" else [],
            "dry_run": ["only-france"] if did.data_class == "internal" else [],
        }

    def outcome(self, did: Did, id_: str, now: float) -> Entry:
        attempts: list[Json] = [
            {"endpoint": one, "result": "unavailable", "ms": 3, "status": 503} for one in did.failed
        ]
        if did.prefilled:
            there: Json = {"process": list(did.prefilled), "recipients": [SELF]}
            attempts.append({"endpoint": "pre", "result": "prefilled", "ms": 3, "ran": there})
        if did.endpoint:
            attempts.append({"endpoint": did.endpoint, "result": "ok", "ms": 40})
        body: dict[str, Json] = {"status": did.status, "attempts": attempts, "millis": 40}
        if not did.endpoint:
            return Entry("outcome", id_, now, body)
        ran: dict[str, Json] = {
            "provider": "aws" if did.endpoint == "sonnet" else "self", "model": "l", "source": "",
            "process": list(RUNS[did.endpoint]), "retain": "nothing", "operate": ["DE"],
        }  # fmt: skip
        if did.recipients is not None:
            ran |= {"recipients": list(did.recipients), "mechanisms": ["scc", "told"]}
        shared: dict[str, Json] = {
            "endpoint": did.endpoint, "ran": ran, "place": did.told or "not observable",
        }  # fmt: skip
        return Entry("outcome", id_, now, body, Interned(shared))


async def opened(box: LogBox, log_id: str = "eu-1") -> Scribbler:
    """A log with its snapshot stored and in force."""
    made = snapshot(box.root)
    log = await box.open(log_id)
    await made.keep(log)
    said: dict[str, Json] = {"from": "", "to": made.digest, "why": "start", "signers": ["dpo"]}
    await log.record(Entry("snapshot", "", box.clock.now, said))
    return Scribbler(log, box, made)
