"""The way to Amazon Bedrock, between real processes: client, router, and a stand-in on the wire.

The stand-in checks each signature and keeps what CloudTrail would have recorded; `domicile assess`
and `audit reconcile` then read those records as they read an account's.
"""

from __future__ import annotations

import json
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.simulator.bedrock import TEST_KEY, TEST_SECRET
from tests.e2e.routers import DOMICILE, Served, domicile, serving
from tests.router.reconcile.made import FINGERPRINT, Trail, signing_key

pytestmark = pytest.mark.e2e

PROFILE = "eu.anthropic.claude-sonnet-4-6"
EU = {
    f"aws:{region}"
    for region in (
        "eu-central-1",
        "eu-north-1",
        "eu-south-1",
        "eu-south-2",
        "eu-west-1",
        "eu-west-3",
    )
}
BASELINE = """\
version: 1
regions:
  self:fra1: {{country: DE}}
  self:iad1: {{country: US}}
tenants:
  clinic: {{grant: {{process: EU, retain: EU}}, models: [assistant]}}
  games:  {{grant: {{process: worldwide}}}}
models:
  assistant: {{tiers: {{large: [sonnet-london, sonnet-eu]}}}}
  anywhere: {{tiers: {{large: [sonnet-global]}}}}
endpoints:
  sonnet-eu: {{kind: bedrock, source: eu-central-1, model: {profile}, url: "{stub}",
              credentials: "file:aws.json", retention_mode: none}}
  sonnet-london: {{kind: bedrock, source: eu-west-2, model: {profile}, url: "{stub}",
                  credentials: "file:aws.json", retention_mode: none}}
  sonnet-global: {{kind: bedrock, source: eu-central-1, url: "{stub}",
                  model: global.anthropic.claude-sonnet-4-6,
                  credentials: "file:aws.json", retention_mode: none}}
attributes:
  data_class: {{values: [public, internal, health], default: internal}}
"""


@dataclass(frozen=True, slots=True)
class Stub:
    """A running stand-in for Bedrock and its control port."""

    url: str
    control: str

    def kept(self, what: str) -> list[dict[str, object]]:
        """`calls`: what came over the wire; `trail`: what CloudTrail would hold of it."""
        found = httpx.get(f"{self.control}/bedrock/{what}", timeout=5).json()
        assert isinstance(found, list)
        return found


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    command = [
        str(DOMICILE),
        "simulate",
        "fleet",
        "self:fra1",
        "--bedrock",
        "--speed",
        "50",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line == "}\n":
                break
        try:
            told = json.loads(said)
            yield Stub(told["bedrock"], told["control"])
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def router(
    stub: Stub, free_port: Callable[[], int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    selector = f"bedrock:{PROFILE}@eu-central-1?retention_mode=none"
    known = subprocess.run(
        [DOMICILE, "footprint", selector, "--within", "EU"], capture_output=True, check=False
    )
    if known.returncode == 4:
        pytest.skip("Bedrock's facts are older than 90 days: check them again")
    folder = tmp_path_factory.mktemp("bedrock")
    secret = {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}
    (folder / "aws.json").write_text(json.dumps(secret))
    baseline = BASELINE.format(profile=PROFILE, stub=stub.url)
    with serving(folder, baseline, free_port(), free_port()) as served:
        yield served


@pytest.fixture(scope="module")
def clinic(router: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        base_url=f"{router.url}/v1", api_key=router.keys["clinic"], max_retries=0
    ) as client:
        yield client


def conversations(stub: Stub) -> list[dict[str, object]]:
    """Calls that carry a prompt; the drift watch asks about profiles beside them."""
    return [call for call in stub.kept("calls") if str(call["op"]).startswith("Converse")]


def test_only_the_profile_inside_the_boundary_is_called(
    clinic: openai.OpenAI, stub: Stub, tmp_path: Path
) -> None:
    """Written first is the same profile called from London, which is one of its regions then."""
    asked = clinic.chat.completions.with_raw_response
    question: openai.types.chat.ChatCompletionUserMessageParam = {"role": "user", "content": "hi"}
    whole = asked.create(model="assistant", messages=[question], max_tokens=8)
    assert whole.parse().choices[0].message.content
    stream = asked.create(model="assistant", messages=[question], max_tokens=8, stream=True)
    words = [c.choices[0].delta.content or "" for c in stream.parse() if c.choices]
    assert "".join(words)
    for headers in (whole.headers, stream.headers):
        assert headers["x-domicile-endpoint"] == "sonnet-eu"
        assert set(headers["x-domicile-footprint"].split(",")) == EU

    calls = conversations(stub)
    assert len(calls) == 2
    assert "eu-west-2" not in json.dumps(calls)
    assert "global." not in json.dumps(calls)

    (tmp_path / "trail.json").write_text(json.dumps({"Records": stub.kept("trail")}))
    said = json.loads(domicile("assess", "--cloudtrail", tmp_path, "--within", "EU", "--json"))
    assert (said["calls"], said["exit_code"]) == (2, 0)


def test_a_global_profile_is_not_for_everybody(clinic: openai.OpenAI, stub: Stub) -> None:
    before = len(conversations(stub))
    with pytest.raises(openai.PermissionDeniedError):
        clinic.chat.completions.create(
            model="anywhere", messages=[{"role": "user", "content": "hi"}]
        )
    assert len(conversations(stub)) == before


def test_a_place_parameter_of_a_client_never_arrives(clinic: openai.OpenAI, stub: Stub) -> None:
    before = len(conversations(stub))
    with pytest.raises(openai.BadRequestError):
        clinic.chat.completions.create(
            model="assistant",
            messages=[{"role": "user", "content": "hi"}],
            extra_body={"aws_region_name": "us-east-1"},
        )
    assert len(conversations(stub)) == before


def reconciled(router: Served, trail: Path, *more: str) -> dict[str, object]:
    """What `audit reconcile --json` says of the running router's log."""
    keys = trail.parent / "keys.json"
    der = signing_key().public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)
    listed = [{"Value": b64encode(der).decode(), "Fingerprint": FINGERPRINT}]
    keys.write_text(json.dumps({"PublicKeyList": listed}))
    words = ("audit", "reconcile", router.log, "--cloudtrail", trail, "--digest-keys", keys)
    done = subprocess.run(
        [DOMICILE, *words, "--json", *more], capture_output=True, text=True, check=False
    )
    said: dict[str, object] = json.loads(done.stdout)
    assert said["exit_code"] == done.returncode, done.stderr
    return said


def rows(said: dict[str, object], name: str) -> list[dict[str, object]]:
    found = said[name]
    assert isinstance(found, list)
    return found


def delivered(records: list[dict[str, object]], folder: Path) -> Path:
    """These events as CloudTrail delivers them, digests included, around now."""
    start = time.time() // 3600 * 3600 - 3600
    Trail(folder, records, start, hours=3).write()
    return folder


def test_its_log_agrees_with_the_account_s_trail(
    clinic: openai.OpenAI, stub: Stub, router: Served, tmp_path: Path
) -> None:
    """And says so no longer once one call is told to have run elsewhere."""
    for stream in (False, True):
        question: openai.types.chat.ChatCompletionUserMessageParam = {
            "role": "user",
            "content": "hi",
        }
        answer = clinic.chat.completions.create(
            model="assistant", messages=[question], max_tokens=8, stream=stream
        )
        if isinstance(answer, openai.Stream):
            assert list(answer)
    events = stub.kept("trail")
    said = reconciled(router, delivered(events, tmp_path / "true"))
    assert (said["exit_code"], said["findings"], said["whole"]) == (0, [], True), said
    (covered,) = rows(said, "coverage")
    calls = sum(event["eventType"] == "AwsApiCall" for event in events)
    assert covered["by_id"] == covered["place_told"] == covered["attempts"] == calls

    told = next(event for event in events if "additionalEventData" in event)
    told["additionalEventData"] = {"inferenceRegion": "us-east-1"}
    config = str(router.folder / "domicile.yaml")
    more = ("--quarantine", "--config", config)
    said = reconciled(router, delivered(events, tmp_path / "false"), *more)
    assert (said["exit_code"], said["kinds"]) == (3, {"outside": 1})
    (found,) = rows(said, "findings")
    assert (found["endpoint"], found["place"]) == ("sonnet-eu", "aws:us-east-1")
    with pytest.raises(openai.InternalServerError):
        clinic.chat.completions.create(
            model="assistant", messages=[{"role": "user", "content": "hi"}]
        )


def test_its_log_verifies(router: Served) -> None:
    assert router.stop() == 0
    assert "audit verify: ok" in domicile("audit", "verify", router.log)
