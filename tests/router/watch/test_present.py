"""What endpoints say of themselves now: well, refused, missing, wider, silent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from policies.findings import Finding, Severity
from router.simulator.bedrock import BedrockStub
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.snapshot import Snapshot
from router.transport.client import HttpTransport
from router.watch.bedrock_reader import BedrockReader
from router.watch.present import Asker
from tests.router.folders import AT, CONFIG, write
from tests.router.watch.test_drift import SIX, folder, now_lists, stub

__all__ = ["stub"]

VLLM = """\
version: 1
regions: {{self:fra1: {{country: DE}}}}
tenants: {{acme: {{grant: {{process: EU}}}}}}
models: {{chat: {{tiers: {{large: [fra]}}}}}}
endpoints:
  fra: {{kind: {kind}, region: self:fra1, {where}, model: {model}, operate: [DE], retain: nothing,
        credentials: "file:token"}}
"""


async def said(snapshot: Snapshot) -> list[Finding]:
    loop_time, transport = asyncio.get_running_loop().time, HttpTransport()
    reader = BedrockReader(transport, lambda: AT, loop_time)
    asker = Asker(snapshot, transport, reader, None, AT, loop_time)
    try:
        return [one async for one in asker.findings()]
    finally:
        await transport.close()


def own(root: Path, where: str, model: str = "tiny", token: str = "right") -> Snapshot:
    (root / "token").write_text(token)
    config = CONFIG.replace("self:local", "self:fra1")
    baseline = VLLM.format(kind="vllm", where=where, model=model)
    return write(root, baseline, "version: 1\nrules: []\n", config).snapshot()


@pytest.mark.parametrize(
    ("model", "token", "code", "word"),
    [
        ("tiny", "right", "live_present", "`fra` has its model"),
        ("tiny", "wrong", "live_credential_refused", "(401)"),
        ("other", "right", "live_model_missing", "no model `other`; it has tiny"),
    ],
)
async def test_a_server_of_ones_own(
    tmp_path: Path, model: str, token: str, code: str, word: str
) -> None:
    async with SimulatedFleet({"self:fra1": ReplicaSpec(api_key="right")}) as fleet:
        [replica] = fleet
        snapshot = own(tmp_path, f'url: "{replica.url}"', model, token)
        [found] = await said(snapshot)
    assert found.code == code
    assert word in found.message
    assert (found.severity is Severity.NOTE) == (code == "live_present")


async def test_nobody_there_and_nobody_found_yet(tmp_path: Path) -> None:
    [found] = await said(own(tmp_path, 'url: "http://127.0.0.1:1"'))
    assert (found.code, found.severity) == ("live_unreachable", Severity.ERROR)
    [found] = await said(own(tmp_path, "replicas: {kubernetes: llm/large}"))
    assert (found.code, found.severity) == ("live_not_asked", Severity.NOTE)


async def test_bedrock_runs_where_the_footprint_says(tmp_path: Path, stub: BedrockStub) -> None:
    [found] = await said(folder(tmp_path, stub).snapshot())
    assert (found.code, found.severity) == ("live_present", Severity.NOTE)


async def test_a_profile_with_another_member_is_an_error(tmp_path: Path, stub: BedrockStub) -> None:
    snapshot = folder(tmp_path, stub).snapshot()
    now_lists(stub, *SIX, "eu-west-2")
    [found] = await said(snapshot)
    assert (found.code, found.severity) == ("live_wider", Severity.ERROR)
    assert "aws:eu-west-2" in found.message or "and 1 more" in found.message
    now_lists(stub, *SIX[:3])
    [found] = await said(snapshot)
    assert (found.code, found.severity) == ("live_narrower", Severity.WARNING)


async def test_retention_that_is_not_as_stated_is_an_error(
    tmp_path: Path, stub: BedrockStub
) -> None:
    stub.retention["eu-west-1"] = "default"
    [found] = await said(folder(tmp_path, stub).snapshot())
    assert (found.code, found.severity) == ("live_wider", Severity.ERROR)
    assert "retain: " in found.message


@pytest.mark.parametrize(
    "model", ["eu.anthropic.claude-haiku-4-5-20251001-v1:0", "amazon.nova-lite-v1:0",
              "global.anthropic.claude-sonnet-4-6"]
)  # fmt: skip
async def test_a_model_that_is_not_there(tmp_path: Path, stub: BedrockStub, model: str) -> None:
    [found] = await said(folder(tmp_path, stub, model).snapshot())
    assert (found.code, found.severity) == ("live_model_missing", Severity.ERROR)


async def test_a_credential_that_aws_refuses(tmp_path: Path, stub: BedrockStub) -> None:
    box = folder(tmp_path, stub)
    wrong = {"aws_access_key_id": "A" * 20, "aws_secret_access_key": "wrong"}
    (tmp_path / "aws.json").write_text(json.dumps(wrong))
    [found] = await said(box.snapshot())
    assert (found.code, found.severity) == ("live_credential_refused", Severity.ERROR)


async def test_without_any_credential_nobody_is_asked(tmp_path: Path, stub: BedrockStub) -> None:
    box = folder(tmp_path, stub)
    path = tmp_path / "baseline" / "main.yaml"
    path.write_text(path.read_text().replace('"file:aws.json"', "instance-role"))
    [found] = await said(box.snapshot())
    assert found.code == "live_credential_refused"
    assert "no credential" in found.message
