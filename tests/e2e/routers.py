"""A real `domicile serve` over files that an operator would write, made by `domicile` itself."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

DOMICILE = Path(sys.executable).with_name("domicile")
TENANTS = ("clinic", "bank-us", "games")

AT_HOME = {"home_region": "self:iad1", "home_url": "https://us.llm.example.com"}

MAIN = """\
version: 1
router:
  id: eu-1
  region: self:fra1
  listen: 127.0.0.1:{listen}
  admin: 127.0.0.1:{admin}
  peers: [{{region: self:iad1, url: "https://us.llm.example.com"}}]
  limits: {{first_token: 12s, answer: 40s, idle: 12s, connect: 2s, deadline: 90s, drain: 5s}}
keys: {{file: keys.yaml}}
policies: {{baseline: [baseline/*.yaml], rules: [rules/*.yaml]}}
log: {{dir: log, signing_key: "file:log.key"}}
"""

BASELINE = """\
version: 1
regions:
  self:fra1: {{country: DE, lat: 50.11, lon: 8.68}}
  self:par1: {{country: FR, lat: 48.86, lon: 2.35}}
  self:iad1: {{country: US, subdivision: US-VA, lat: 38.95, lon: -77.45}}
tenants:
  clinic:  {{grant: {{process: EU, retain: EU}}}}
  games:   {{grant: {{process: worldwide}}}}
models:
  assistant: {{tiers: {{large: [fra, par, iad]}}}}
endpoints:
  fra: {{kind: vllm, region: self:fra1, url: "{fra}", model: smollm2,
        operate: [DE], retain: nothing, features: [tools]}}
  par: {{kind: vllm, region: self:par1, url: "{par}", model: tiny,
        operate: [FR], retain: nothing, features: [tools]}}
  iad: {{kind: vllm, region: self:iad1, url: "{iad}", model: tiny,
        operate: [US], retain: nothing, features: [tools], probe: health}}
attributes:
  data_class: {{values: [public, internal, health], default: internal}}
"""

RULES = """\
version: 1
rules:
  - name: health-in-germany
    when: {data_class: health}
    process_within: DE
    because: "GDPR Art. 9"
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A running router: its addresses, the tenants' keys, its process."""

    folder: Path
    url: str
    admin: str
    keys: Mapping[str, str]
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        """The folder of its region log."""
        return self.folder / "log"

    def checkpoint(self) -> str:
        """The newest signed tree head, as an auditor would fetch and keep it."""
        found = httpx.get(f"{self.admin}/status", timeout=5).json()["checkpoint"]
        assert isinstance(found, str)
        return found

    def canaries(self, endpoint: str) -> int:
        """The canaries that it sent `endpoint` and that ended, by its own count."""
        text = httpx.get(f"{self.admin}/metrics", timeout=5).text
        families = text_string_to_metric_families(text)
        probes = [s for f in families for s in f.samples if s.name == "domicile_probes_total"]
        wanted = {"endpoint": endpoint, "probe": "canary"}
        return round(sum(s.value for s in probes if wanted.items() <= s.labels.items()))

    def stop(self) -> int:
        """Ask it to end, as an operator does; its exit status."""
        self.process.terminate()
        return self.process.wait(20)


def domicile(*arguments: str | Path) -> str:
    """What `domicile ARGUMENTS` prints; an exit status other than 0 fails the test."""
    done = subprocess.run([DOMICILE, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(folder: Path, baseline: str, listen: int, admin: int) -> Mapping[str, str]:
    """Write the configuration over what `domicile init` made; gives the tenants' keys."""
    domicile("init", "--force", folder)
    (folder / "domicile.yaml").write_text(MAIN.format(listen=listen, admin=admin))
    (folder / "baseline" / "main.yaml").write_text(baseline)
    (folder / "rules" / "example.yaml").write_text(RULES)
    keys, lines = {}, []
    for tenant in TENANTS:
        made = json.loads(domicile("keys", "new", "--id", tenant, "--tenant", tenant, "--json"))
        keys[tenant] = made["key"]
        line = made["line"]
        if tenant == "bank-us":  # of this tenant the router knows only where it belongs
            line = {"id": line["id"], "sha256": line["sha256"], **AT_HOME}
        lines.append(line)
    (folder / "keys.yaml").write_text(json.dumps({"version": "1", "keys": lines}))
    return keys


@contextlib.contextmanager
def serving(folder: Path, baseline: str, listen: int, admin: int) -> Iterator[Served]:
    """A router with this baseline, ready; what else is in `folder` stays there."""
    keys = write(folder, baseline, listen, admin)
    config = folder / "domicile.yaml"
    domicile("check", "--config", config)
    with (folder / "stderr").open("wb") as out:
        process = subprocess.Popen([DOMICILE, "serve", "--config", config], stderr=out, stdout=out)
    served = Served(
        folder, f"http://127.0.0.1:{listen}", f"http://127.0.0.1:{admin}", keys, process
    )
    try:
        _wait(served)
        yield served
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def _wait(served: Served) -> None:
    give_up = time.monotonic() + 60
    while not _ready(served.url):
        if served.process.poll() is not None or time.monotonic() > give_up:
            raise AssertionError((served.folder / "stderr").read_text()[-2000:])
        time.sleep(0.1)


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False
