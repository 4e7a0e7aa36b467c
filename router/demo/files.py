"""The demo's own configuration: real files, as an operator would write them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from router.simulator.bedrock import TEST_KEY, TEST_SECRET

ROUTERS: Final[Mapping[str, str]] = {"eu-1": "self:fra1", "us-1": "self:iad1"}
TENANTS: Final = ("clinic", "bank-us", "games")
KEYS: Final[Mapping[str, str]] = {tenant: f"dom-demo-{tenant}" for tenant in TENANTS}
MODEL: Final = "assistant"
SONNET_EU: Final = "eu.anthropic.claude-sonnet-4-6"
SONNET_US: Final = "us.anthropic.claude-sonnet-4-6"

_MAIN: Final = """\
version: 1
router:
  id: {router}
  region: {region}
  listen: 127.0.0.1:{listen}
  admin: 127.0.0.1:{admin}
  peers: [{{region: {peer_region}, url: "http://127.0.0.1:{peer_port}"}}]
  limits: {{first_token: 1s, answer: 2s, idle: 2s, connect: 1s, deadline: 20s}}
keys: {{file: keys.yaml}}
policies: {{baseline: [baseline.yaml], rules: [rules.yaml]}}
log: {{dir: log-{router}, signing_key: "file:{router}.key"}}
"""

_BASELINE: Final = """\
version: 1
regions:
  self:fra1: {{country: DE, lat: 50.11, lon: 8.68}}
  self:par1: {{country: FR, lat: 48.86, lon: 2.35}}
  self:iad1: {{country: US, subdivision: US-VA, lat: 38.95, lon: -77.45}}
tenants:
  clinic:  {{grant: {{process: EU, retain: EU}}}}
  bank-us: {{grant: {{process: US, retain: US}}}}
  games:   {{grant: {{process: worldwide}}}}
models:
  assistant: {{tiers: {{large: [fra-llama, par-llama, sonnet-eu, iad-llama, sonnet-us]}}}}
endpoints:
  fra-llama: {{kind: vllm, region: self:fra1, url: "{fra}", model: llama,
              operate: [DE], retain: nothing, cache: tenant}}
  par-llama: {{kind: vllm, region: self:par1, url: "{par}", model: llama,
              operate: [FR], retain: nothing, cache: tenant}}
  iad-llama: {{kind: vllm, region: self:iad1, url: "{iad}", model: llama,
              operate: [US], retain: nothing, cache: tenant}}
  sonnet-eu: {{kind: bedrock, source: eu-central-1, model: {sonnet_eu}, url: "{bedrock}",
              credentials: "file:aws.json", retention_mode: none}}
  sonnet-us: {{kind: bedrock, source: us-east-1, model: {sonnet_us}, url: "{bedrock}",
              credentials: "file:aws.json", retention_mode: none}}
attributes:
  data_class: {{values: [public, internal, health, phi], default: internal}}
"""

_RULES: Final = """\
version: 1
rules:
  - name: health-in-germany
    when: {data_class: health}
    process_within: DE
    operated_by: DE
    because: "GDPR Art. 9; clinic's own works agreement"
  - name: phi-needs-baa
    when: {data_class: phi}
    require: [baa]
    because: "45 CFR 164.504(e): a business associate agreement with whoever processes it"
"""


def write(folder: Path, urls: Mapping[str, str], ports: Mapping[str, tuple[int, int]]) -> None:
    """Write every file for the two routers.

    Args:
        urls: where `fra`, `par`, `iad` and `bedrock` listen.
        ports: router id → its public and admin port.
    """
    others = {"eu-1": "us-1", "us-1": "eu-1"}
    for router, region in ROUTERS.items():
        peer = others[router]
        listen, admin = ports[router]
        text = _MAIN.format(
            router=router,
            region=region,
            listen=listen,
            admin=admin,
            peer_region=ROUTERS[peer],
            peer_port=ports[peer][0],
        )
        (folder / f"{router}.yaml").write_text(text)
        _write_key(folder / f"{router}.key")
    text = _BASELINE.format(**urls, sonnet_eu=SONNET_EU, sonnet_us=SONNET_US)
    (folder / "baseline.yaml").write_text(text)
    (folder / "rules.yaml").write_text(_RULES)
    (folder / "keys.yaml").write_text(_keys())
    secret = {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}
    (folder / "aws.json").write_text(json.dumps(secret))


def _keys() -> str:
    lines = [
        f"  - {{id: {tenant}-key, sha256: {hashlib.sha256(key.encode()).hexdigest()}, "
        f"tenant: {tenant}}}"
        for tenant, key in KEYS.items()
    ]
    return "version: 1\nkeys:\n" + "\n".join(lines) + "\n"


def _write_key(path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
