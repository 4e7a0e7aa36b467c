"""Configuration folders for tests: written by `init`, then changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from router.cli.init import BASELINE, RULES
from router.cli.init import CONFIG as WRITTEN
from router.settings.loading import load_snapshot
from router.snapshot import Snapshot

AT = 1_796_000_000.0  # 2026-11-29
CONFIG = WRITTEN.replace(", cases: [cases/*.yaml]", "")  # these are of the policy that init writes

# One router in Frankfurt, peers in Virginia; two fleets in the EU, one in the US, two tenants.
TWO_CONTINENTS = """\
version: 1
regions:
  self:fra1: {country: DE}
  self:par1: {country: FR}
  self:iad1: {country: US}
apps: {crm: {trusted: [data_class, zone]}}
tenants:
  clinic: {grant: {process: EU, retain: EU}, models: [assistant]}
  shop: {grant: {process: worldwide}}
  american: {grant: {process: US}}
  nobody: {}
models:
  assistant: {grade: "on", grading: {accept_prior: true},
              tiers: {small: [fra-small], large: [fra-large, par-large, iad-large]}}
  abroad: {tiers: {large: [iad-large]}}
endpoints:
  fra-small: {kind: vllm, region: self:fra1, url: "http://127.0.0.1:1", model: s, operate: [DE],
              retain: nothing, features: [tools]}
  fra-large: {kind: vllm, region: self:fra1, url: "http://127.0.0.1:2", model: l, operate: [DE],
              retain: nothing, context: 1000}
  par-large: {kind: vllm, region: self:par1, url: "http://127.0.0.1:3", model: l, operate: [FR],
              retain: nothing, features: [tools]}
  iad-large: {kind: vllm, region: self:iad1, url: "http://127.0.0.1:4", model: l, operate: [US],
              retain: nothing, features: [tools]}
attributes:
  data_class: {values: [public, internal, health], default: internal}
  zone: {values: [blue, red]}
  staff: {values: [yes, no], from: [key]}
"""
TWO_RULES = """\
version: 1
rules:
  - {name: health-in-germany, when: {data_class: health}, process_within: DE, because: "Art. 9"}
  - {name: red-in-france, when: {zone: red}, process_within: FR + DE, because: "red zone"}
  - {name: trial, when: {data_class: internal}, process_within: FR, dry_run: {until: 2031-01-01}}
"""
ROUTER = CONFIG.replace("self:local", "self:fra1").replace(
    "  admin:",
    "  peers: [{region: self:iad1, url: https://us.llm.example.com}]\n  admin:",
)


@dataclass(frozen=True, slots=True)
class Box:
    """A folder with a configuration."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "domicile.yaml"

    def snapshot(self, environment: Mapping[str, str] | None = None, at: float = AT) -> Snapshot:
        return load_snapshot(self.config, environment or {}, at)


def write(root: Path, baseline: str = BASELINE, rules: str = RULES, config: str = CONFIG) -> Box:
    """A folder with these files, no keys, and a signing key."""
    from router.audit.note import create_signing_key

    for name, text in (
        ("domicile.yaml", config),
        ("baseline/main.yaml", baseline),
        ("rules/example.yaml", rules),
        ("keys.yaml", "version: 1\nkeys: []\n"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    if not (root / "log.key").exists():
        create_signing_key(root / "log.key")
    return Box(root)


def two_continents(root: Path, rules: str = TWO_RULES) -> Box:
    """The larger of the two worlds."""
    return write(root, TWO_CONTINENTS, rules, ROUTER)


def sound(root: Path) -> Box:
    """The larger world without what lint refuses: tenants this router can't serve."""
    lines = TWO_CONTINENTS.splitlines(keepends=True)
    left = ("american", "nobody", "abroad")
    kept = "".join(line for line in lines if not any(word in line for word in left))
    return write(root, kept, TWO_RULES, ROUTER)
