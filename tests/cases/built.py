"""A router built from real configuration files, over a scripted outside.

Two self-operated fleets in the EU and one in the US, OpenAI's European host and its worldwide
one, Bedrock through a European and a worldwide profile.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from regions.catalog import DAY, Catalog, epoch
from router.app import Clocks, Router
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.settings.loading import load_snapshot, log_settings
from router.snapshot import Snapshot
from router.transport.messages import (
    OutboundRequest,
    OutboundResponse,
    Timeouts,
    Transport,
)
from tests.router.house import KEYS, signing_key
from tests.router.scripted import Script, Scripted, ScriptedTransport, refused

MAIN = """\
version: 1
router:
  id: eu-1
  region: self:fra1
  limits: {first_token: 2s, answer: 2s, idle: 2s, connect: 1s, deadline: 20s, attempts: 8}
keys: {file: keys.yaml}
policies: {baseline: [baseline.yaml], rules: [rules.yaml]}
log: {dir: log, signing_key: "file:log.key"}
"""

BASELINE = """\
version: 1
regions:
  self:fra1: {country: DE}
  self:par1: {country: FR}
  self:iad1: {country: US}
tenants:
  eu: {grant: {process: EU, retain: EU}}
  us: {grant: {process: US}}
  de: {grant: {process: DE}}
  world: {grant: {process: worldwide}}
  nobody: {}
models:
  assistant: {tiers: {large: [fra, par, iad]}}
  outside: {tiers: {large: [iad]}}
  openai: {tiers: {large: [openai-eu, openai-world]}}
  sonnet: {tiers: {large: [sonnet-eu, sonnet-global]}}
  claude: {tiers: {large: [sonnet-eu, fra]}}
endpoints:
  fra: {kind: vllm, region: self:fra1, url: "http://fra1", model: tiny, operate: [DE],
        retain: nothing, features: [tools, json_schema, images, stream_usage]}
  par: {kind: vllm, region: self:par1, url: "http://par1", model: tiny, operate: [FR],
        retain: nothing, features: [tools, json_schema, images, stream_usage]}
  iad: {kind: vllm, region: self:iad1, url: "http://iad1", model: tiny, operate: [US],
        retain: nothing, features: [tools, json_schema, images, stream_usage]}
  openai-eu: {kind: openai, url: "https://eu.api.openai.com/v1", model: gpt,
              project_residency: eu, retention: zdr, credentials: "env:OPENAI_EU"}
  openai-world: {kind: openai, url: "https://api.openai.com/v1", model: gpt,
                 credentials: "env:OPENAI_WORLD"}
  sonnet-eu: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6,
              credentials: "file:aws.json", retention_mode: none}
  sonnet-global: {kind: bedrock, source: eu-central-1,
                  model: global.anthropic.claude-sonnet-4-6,
                  credentials: "file:aws.json", retention_mode: none}
attributes:
  data_class: {values: [public, health], default: public}
"""

RULES = """\
version: 1
rules:
  - {name: health-in-germany, when: {data_class: health}, process_within: DE, because: "Art. 9"}
"""

ENVIRONMENT: Mapping[str, str] = {"OPENAI_EU": "sk-eu-secret", "OPENAI_WORLD": "sk-world-secret"}
TENANTS = ("eu", "us", "de", "world", "nobody")
BEDROCK = "bedrock-runtime.eu-central-1.amazonaws.com"


def key_of(tenant: str) -> str:
    """A tenant's key."""
    return KEYS.get(tenant, f"dom-{tenant}")


@dataclass(frozen=True)
class Files:
    """The configuration files, to be changed by a test."""

    main: str = MAIN
    baseline: str = BASELINE
    rules: str = RULES
    environment: Mapping[str, str] = field(default_factory=lambda: ENVIRONMENT)

    def write(self, folder: Path) -> Path:
        """Write them; gives the path of the main one."""
        lines = [
            f"  - {{id: key-{name}, tenant: {name}, "
            f"sha256: {hashlib.sha256(key_of(name).encode()).hexdigest()}}}\n"
            for name in TENANTS
            if f"  {name}: {{" in self.baseline
        ]
        keys = "version: 1\nkeys:\n" + "".join(lines)
        aws = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "aws-secret"}
        for name, text in (
            ("domicile.yaml", self.main),
            ("baseline.yaml", self.baseline),
            ("rules.yaml", self.rules),
            ("keys.yaml", keys),
            ("aws.json", json.dumps(aws)),
        ):
            (folder / name).write_text(text)
        signing_key(folder)
        return folder / "domicile.yaml"

    def load(self, folder: Path) -> Snapshot:
        """Write and load them."""
        return load_snapshot(self.write(folder), self.environment, now())


def now() -> float:
    """One day after the catalog's date: facts age."""
    return epoch(Catalog.load({}).date) + DAY


class Outside(ScriptedTransport):
    """Scripts inference only; what the router looks up by itself finds nobody there."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        if request.method != "POST" and request.target not in ("/health", "/metrics"):
            raise refused()
        return await super().send(request, timeouts)


@asynccontextmanager
async def built(
    folder: Path, script: Script, files: Files | None = None, transport: Transport | None = None
) -> AsyncIterator[Scripted]:
    """The router of these files; its calls go to the script, or to a transport of your own."""
    loop = asyncio.get_running_loop()
    began, start = loop.time(), now()
    clocks = Clocks(lambda: start + loop.time() - began, loop.time, os.urandom)
    shot = (files or Files()).load(folder)
    scripted = Outside(script)
    settings = log_settings(shot.config, folder)
    router = await Router.open(shot, settings, clocks, transport or scripted)
    try:
        yield Scripted(router, scripted, clocks)
    finally:
        await router.close(0.5)


def entries(folder: Path) -> list[Shown]:
    """Every entry of the region log, after the router has closed."""
    return list(LogReader(Folder(folder / "log").log("eu-1")).entries())


def outcomes(folder: Path) -> list[Mapping[str, object]]:
    """The bodies of the outcome entries."""
    return [entry.body for entry in entries(folder) if entry.kind == "outcome"]


async def until(condition: Callable[[], object], within: float = 5.0) -> None:
    """Wait until something holds that no event tells; fail when it takes longer."""
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
