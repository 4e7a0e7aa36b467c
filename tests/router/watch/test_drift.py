"""A profile that runs elsewhere than its footprint says: found, vetoed, recorded, accepted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from policies.gathered import PolicyFile
from policies.signatures import sign as sign_baseline
from router.audit.verify import verify
from router.narrowing.accepted import sign
from router.simulator.bedrock import TEST_KEY, TEST_SECRET, BedrockSpec, BedrockStub
from router.simulator.bedrock_control import ControlPlane
from router.simulator.bedrock_world import BedrockWorld, Guardrail
from router.transport.client import HttpTransport
from router.watch.bedrock_reader import NotRead
from tests.router.folders import AT, ROUTER, Box, write
from tests.router.reloading import World, watched
from tests.router.settings.test_reload import keyed

EU = "eu.anthropic.claude-sonnet-4-6"
SIX = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
BASELINE = """\
version: 1
regions:
  self:fra1: {{country: DE}}
tenants:
  clinic: {{grant: {{process: EU, retain: EU}}}}
  games: {{grant: {{process: worldwide}}}}
models:
  assistant: {{tiers: {{large: [sonnet-eu]}}}}
endpoints:
  sonnet-eu: {{kind: bedrock, source: eu-central-1, model: {model}, url: "{url}",
              credentials: "file:aws.json", retention_mode: none{more}}}
"""


def world_of(members: Sequence[str] = SIX) -> BedrockWorld:
    guardrails = [Guardrail("gr1", "eu-central-1", "2", (), "eu.guardrail.v1:0")]
    return BedrockWorld.of({EU: {"eu-central-1": members}}, guardrails=guardrails)


def now_lists(stub: BedrockStub, *members: str) -> None:
    """From now on AWS runs the profile in these regions."""
    stub.spec = replace(stub.spec, world=world_of(members))
    stub._control = ControlPlane(stub.spec.world, stub.retention)


def folder(root: Path, stub: BedrockStub, model: str = EU, more: str = "") -> Box:
    secret = {"aws_access_key_id": TEST_KEY, "aws_secret_access_key": TEST_SECRET.secret_key}
    (root / "aws.json").write_text(json.dumps(secret))
    rules = "version: 1\nrules: []\n"
    config = ROUTER.replace("self:iad1", "aws:us-east-1")
    baseline = BASELINE.format(model=model, url=stub.url, more=more)
    return write(root, baseline, rules, config)


@pytest.fixture
async def stub() -> AsyncIterator[BedrockStub]:
    async with BedrockStub(BedrockSpec(world_of(), speed=200.0), wall=lambda: AT) as running:
        running.retention.update(dict.fromkeys((*SIX, "us-east-1"), "none"))
        yield running


@asynccontextmanager
async def checked(box: Box) -> AsyncIterator[World]:
    """A router that has looked once."""
    transport = HttpTransport()
    async with watched(box, real=transport) as world:
        await world.watches.drift.check()
        yield world


async def test_what_runs_as_known_is_left_alone(tmp_path: Path, stub: BedrockStub) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        assert world.router.live.snapshot.drifted == {}
        assert world.router.live.degraded() == []
        assert (await world.ask()).status == 200
        assert world.entries("drift") == []


async def test_a_member_outside_stops_the_boundary_it_left(
    tmp_path: Path, stub: BedrockStub
) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        now_lists(stub, *SIX, "eu-west-2")
        await world.watches.drift.check()
        refused = await world.ask()
        assert (refused.status, refused.code) == (403, "no_endpoint_inside_boundary")
        assert b"process_outside: aws:eu-west-2" in refused.written
        [drift] = world.entries("drift")
        assert drift.body["added"] == ["aws:eu-west-2"]
        assert drift.body["tenants"] == ["clinic"]
        [veto] = world.entries("veto")
        assert (veto.body["event"], veto.body["name"]) == ("impose", "sonnet-eu")
        live = world.router.live
        assert live.metrics.value("domicile_drift_total", ("sonnet-eu",)) == 1
        assert any("sonnet-eu" in one for one in live.degraded())
        await world.watches.drift.check()  # told once
        assert len(world.entries("drift")) == 1
    assert verify(tmp_path / "log").ok


async def test_a_plan_made_before_is_vetoed_at_its_next_attempt(
    tmp_path: Path, stub: BedrockStub
) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        live = world.router.live
        commit = live.log.commit

        async def drifting(*given: object) -> object:
            done = await commit(*given)  # type: ignore[arg-type]
            now_lists(stub, *SIX, "us-east-1")
            await world.watches.drift.check()
            return done

        live.log.commit = drifting  # type: ignore[method-assign, assignment]
        calls = len([one for one in stub.calls if one.op.startswith("Converse")])
        late = await world.ask()
        assert late.status == 503
        assert b"vetoed" in late.written
        assert len([one for one in stub.calls if one.op.startswith("Converse")]) == calls


async def test_who_may_go_there_is_served_and_the_log_says_where(
    tmp_path: Path, stub: BedrockStub
) -> None:
    box = folder(tmp_path, stub)
    baseline = tmp_path / "baseline" / "main.yaml"
    baseline.write_text(baseline.read_text().replace("process: EU, retain: EU", "process: EU + UK"))
    async with checked(box) as world:
        now_lists(stub, *SIX, "eu-west-2")
        await world.watches.drift.check()
        assert (await world.ask()).status == 200
    [outcome] = world.entries("outcome")
    assert isinstance(ran := outcome.body["ran"], dict)
    assert "aws:eu-west-2" in str(ran["process"])


async def test_it_survives_a_restart(tmp_path: Path, stub: BedrockStub) -> None:
    box = folder(tmp_path, stub)
    async with checked(box) as world:
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
    stub.kill()  # the control plane is silent after the restart
    async with watched(box, real=HttpTransport()) as world:
        assert (await world.ask()).code == "no_endpoint_inside_boundary"


async def test_going_back_does_not_lift_it_but_an_acceptance_does(
    tmp_path: Path, stub: BedrockStub
) -> None:
    box = folder(tmp_path, stub)
    async with checked(box) as world:
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
        now_lists(stub, *SIX)
        await world.watches.drift.check()
        assert (await world.ask()).status == 403
        _accept(tmp_path, SIX)
        await world.settle()
        assert world.router.live.files.refused == ""
        assert (await world.ask()).status == 200
        assert [e.body["event"] for e in world.entries("veto")] == ["impose", "lift"]
        assert world.router.live.degraded() == []


def _accept(root: Path, members: Sequence[str], key: Ed25519PrivateKey | None = None) -> None:
    file = root / "baseline" / "accepted-drift" / "first.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"version: 1\naccepted:\n  - {{profile: {EU}, source: eu-central-1, "
        f'members: {" ".join(members)}, checked_on: 2026-11-29, because: "a test"}}\n'
    )
    if key is not None:
        signature = sign(PolicyFile("accepted-drift/first.yaml", file.read_bytes()), key)
        (file.parent / "first.yaml.sig").write_bytes(signature)


async def test_accepted_members_outside_stay_outside(tmp_path: Path, stub: BedrockStub) -> None:
    """An acceptance says where it runs; it never lets a request out of its boundary."""
    box = folder(tmp_path, stub)
    baseline = tmp_path / "baseline" / "main.yaml"
    other = "  fra: {kind: vllm, region: self:fra1, model: m, operate: [DE], retain: nothing,"
    text = baseline.read_text().replace("[sonnet-eu]", "[sonnet-eu, fra]")
    baseline.write_text(text + other + ' url: "http://127.0.0.1:1"}\n')  # for lint: nobody there
    async with checked(box) as world:
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
        _accept(tmp_path, (*SIX, "us-east-1"))
        await world.settle()
        assert world.router.live.files.refused == ""
        assert world.router.live.snapshot.drifted == {}
        refused = await world.ask()
        assert refused.status == 503
        assert b'"endpoint":"sonnet-eu","excluded":["process_outside"' in refused.written


async def test_with_compliance_keys_an_acceptance_needs_them(
    tmp_path: Path, stub: BedrockStub
) -> None:
    box = folder(tmp_path, stub)
    key = Ed25519PrivateKey.generate()
    keyed(box, key)
    baseline = (tmp_path / "baseline" / "main.yaml").read_bytes()
    signature = sign_baseline([PolicyFile("baseline/main.yaml", baseline)], key)
    (tmp_path / "baseline" / "main.sig").write_bytes(signature)
    async with checked(box) as world:
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
        now_lists(stub, *SIX)
        await world.watches.drift.check()
        with pytest.raises(ValueError, match="compliance keys are configured"):
            await world.watches.drift.accept("sonnet-eu", "fine", "boss")
        _accept(tmp_path, SIX)
        await world.settle()
        assert "needs 1 signatures" in world.router.live.files.refused
        assert (await world.ask()).status == 403
        _accept(tmp_path, SIX, Ed25519PrivateKey.generate())
        await world.settle()
        assert (await world.ask()).status == 403
        _accept(tmp_path, SIX, key)
        await world.settle()
        assert (await world.ask()).status == 200


async def test_without_keys_an_operator_ends_the_alarm_and_nothing_else(
    tmp_path: Path, stub: BedrockStub
) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        with pytest.raises(ValueError, match="has not drifted"):
            await world.watches.drift.accept("sonnet-eu", "fine", "boss")
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
        await world.watches.drift.accept("sonnet-eu", "AWS told us", "boss")
        assert world.router.live.degraded() == []
        assert (await world.ask()).status == 403
        events = [e.body["event"] for e in world.entries("administration")]
        assert "drift_accepted" in events


async def test_fewer_members_let_nothing_more_through(tmp_path: Path, stub: BedrockStub) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        now_lists(stub, "eu-central-1")
        await world.watches.drift.check()
        assert world.router.live.snapshot.drifted == {}
        [] = world.entries("drift")


async def test_retention_turned_on_in_a_destination_is_drift(
    tmp_path: Path, stub: BedrockStub
) -> None:
    box = folder(tmp_path, stub)
    text = (tmp_path / "baseline" / "main.yaml").read_text()
    narrow = text.replace("retain: EU", "retain: DE")
    (tmp_path / "baseline" / "main.yaml").write_text(narrow)
    async with checked(box) as world:
        assert (await world.ask()).status == 200
        stub.retention["eu-west-1"] = "default"
        await world.watches.drift.check()
        refused = await world.ask()
        assert refused.status == 403
        assert b"retain_outside" in refused.written


async def test_another_guardrail_profile_is_drift(tmp_path: Path, stub: BedrockStub) -> None:
    more = ", guardrail: 'gr1:2', guardrail_profile: none"
    async with checked(folder(tmp_path, stub, "openai.gpt-oss-120b-1:0", more)) as world:
        [drift] = world.entries("drift")
        assert isinstance(added := drift.body["added"], list)
        assert "aws:eu-west-1" in added


async def test_a_silent_control_plane_is_shown_and_changes_nothing(
    tmp_path: Path, stub: BedrockStub
) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        before = world.router.live.snapshot
        stub.spec = replace(stub.spec, denied=frozenset({"eu-central-1"}))
        with pytest.raises(NotRead):
            await world.watches.drift.check()
        [note] = [one for one in world.router.live.degraded() if one.startswith("drift:")]
        assert "403 AccessDeniedException" in note
        assert world.router.live.snapshot is before


async def test_an_endpoint_with_a_new_name_is_asked_about_at_once(
    tmp_path: Path, stub: BedrockStub
) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        now_lists(stub, *SIX, "us-east-1")
        world.change("baseline/main.yaml", "sonnet-eu", "sonnet-de")
        await world.settle()
        assert world.router.live.files.refused == ""
        for _ in range(300):
            if world.router.live.snapshot.drifted:
                break
            await asyncio.sleep(0.01)
        assert set(world.router.live.snapshot.drifted) == {"sonnet-de"}


async def test_a_reload_keeps_what_drifted(tmp_path: Path, stub: BedrockStub) -> None:
    async with checked(folder(tmp_path, stub)) as world:
        now_lists(stub, *SIX, "us-east-1")
        await world.watches.drift.check()
        world.change("baseline/main.yaml", "self:fra1: {country: DE}",
                     "self:fra1: {country: DE}\n  self:par1: {country: FR}")  # fmt: skip
        await world.settle()
        assert world.router.live.files.refused == ""
        assert (await world.ask()).status == 403
