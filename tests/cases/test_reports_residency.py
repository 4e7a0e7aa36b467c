"""Residency reports of `reports.yaml`, through a router built from real files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from policies.model import Policy
from regions.document import DocumentErrors
from router.settings.checking import check
from router.snapshot import Snapshot
from router.steps import TwelveSteps
from tests.cases.built import BASELINE, ENVIRONMENT, RULES, Files, built, entries, now
from tests.cases.built import outcomes as outcomes_of
from tests.router.scripted import (
    JSON,
    FakeExchange,
    Reply,
    answer,
    failure,
    lost,
    refused,
    silent,
)

INSIDE = ("fra1", "par1")
Made = Callable[[], Reply | Exception]


def good(host: str, number: int) -> Reply:
    return answer()


def error_of(done: FakeExchange) -> dict[str, object]:
    found = json.loads(done.written)["error"]
    assert isinstance(found, dict)
    return found


def excluded(done: FakeExchange) -> dict[str, list[str]]:
    reasons = error_of(done)["reasons"]
    assert isinstance(reasons, list)
    return {one["endpoint"]: one["excluded"] for one in reasons if "excluded" in one}


# --- residency-01 -----------------------------------------------------------------------------

FAILURES: dict[str, Made] = {
    "unavailable": lambda: failure(503),
    "limit": lambda: failure(429, retry_after="3"),
    "overloaded": lambda: failure(529),
    "internal": lambda: failure(500),
    "credential": lambda: failure(401),
    "missing": lambda: failure(404),
    "redirect": lambda: Reply(302, ((b"location", b"http://iad1/"),)),
    "refused": refused,
    "lost": lost,
    "silent": silent,
    "html": lambda: Reply(200, ((b"content-type", b"text/html"),), [b"<html>"]),
    "empty": lambda: Reply(200, JSON, [b"{}"]),
    "half": lambda: Reply(200, JSON, [b'{"choices":[', lost()]),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("streaming", [False, True])
async def test_residency_01_no_failure_leaves_the_boundary(
    tmp_path: Path, name: str, streaming: bool
) -> None:
    def script(host: str, number: int) -> Reply | Exception:
        return FAILURES[name]() if host in INSIDE else answer()

    async with built(tmp_path, script) as world:
        for _ in range(6):
            done = await world.ask("eu", stream=streaming)
            assert 500 <= done.status < 600
            assert done.sent["x-domicile-policy"]
            assert "`eu`" in str(error_of(done)["message"])
            assert excluded(done) == {"iad": ["process_outside"]}
        assert world.transport.at("iad1") == 0
        assert (await world.ask("world", stream=False)).status == 200
    assert {"fra", "par"} == {
        one["endpoint"]
        for outcome in outcomes_of(tmp_path)[:6]
        for one in outcome["attempts"]  # type: ignore[attr-defined]
    }
    decision = next(one.body for one in entries(tmp_path) if one.kind == "decision")
    assert '"iad": ["process_outside: self:iad1"]' in json.dumps(decision["candidates"])


# --- residency-03, residency-15 ---------------------------------------------------------------

ALMOST = ["eu", "Eu", "eu-only", "EuropeanUnion", "Europe", "us", "USA", "usa-only", "de", "XX",
          "aws:eu-central-9", "self:nowhere", "EU1", "EU EEA", "", "none", "global"]  # fmt: skip


@pytest.mark.parametrize("word", ALMOST)
def test_residency_03_an_unknown_word_for_a_place_does_not_load(tmp_path: Path, word: str) -> None:
    grant = BASELINE.replace("us: {grant: {process: US}}", f'us: {{grant: {{process: "{word}"}}}}')
    rule = RULES.replace("process_within: DE", f'process_within: "{word}"')
    for files in (Files(baseline=grant), Files(rules=rule)):
        with pytest.raises(DocumentErrors) as caught:
            files.load(tmp_path)
        assert ".yaml:" in str(caught.value)


async def test_residency_03_every_request_lands_inside_its_own_boundary(tmp_path: Path) -> None:
    allowed = {
        "eu": {"fra1", "par1"},
        "us": {"iad1"},
        "de": {"fra1"},
        "world": {"fra1", "par1", "iad1"},
    }
    home = Files(main=Files().main.replace("region: self:fra1", "region: self:iad1"))
    for tenant, hosts in allowed.items():
        folder = tmp_path / tenant
        folder.mkdir()
        async with built(folder, good, home if tenant == "us" else None) as world:
            for _ in range(200):
                done = await world.ask(tenant)
                assert done.code == "ok"
                assert done.sent["x-domicile-region"].removeprefix("self:") in hosts
            assert len(world.transport.sent) == 200
            assert {one.origin.host for one in world.transport.sent} <= hosts


@pytest.mark.parametrize("word", ["eu", "eu-only", "EuropeanUnion"])
def test_residency_15_the_right_spelling_is_suggested(tmp_path: Path, word: str) -> None:
    rules = Files(rules=RULES.replace("process_within: DE", f"process_within: {word}"))
    with pytest.raises(DocumentErrors, match="did you mean `EU`"):
        rules.load(tmp_path)
    Files(rules=RULES.replace("process_within: DE", "process_within: EU")).load(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("data_class: Health", "health"), ("data_class: healht", "health"),
     ("data_clas: health", "data_class"), ("DATA_CLASS: health", "data_class")],
)  # fmt: skip
def test_residency_15_a_condition_that_could_never_match_does_not_load(
    tmp_path: Path, wrong: str, right: str
) -> None:
    with pytest.raises(DocumentErrors, match=right):
        Files(rules=RULES.replace("data_class: health", wrong)).load(tmp_path)


def test_residency_15_a_rule_that_never_applies_is_reported(tmp_path: Path) -> None:
    never = RULES + "  - {name: ghost, when: {all: [{tenant: eu}, {tenant: de}]}, require: [baa]}\n"
    path = Files(rules=never).write(tmp_path)
    found = check(path, ENVIRONMENT, now())
    told = "\n".join([*found.problems, *(str(one) for one in found.findings)])
    assert "ghost" in told
    assert "rule_never" in told


# --- residency-04 -----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 410, 405])
@pytest.mark.parametrize("streaming", [False, True])
async def test_residency_04_a_model_that_is_missing_inside_is_not_looked_for_outside(
    tmp_path: Path, status: int, streaming: bool
) -> None:
    def script(host: str, number: int) -> Reply:
        return failure(status) if host in INSIDE else answer()

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", stream=streaming)
        assert (done.status, done.code) == (502, "model_not_available")
        assert "not available inside the boundary" in str(error_of(done)["message"])
        assert (world.transport.at("fra1"), world.transport.at("par1")) == (1, 1)
        assert world.transport.at("iad1") == 0


async def test_residency_04_bedrock_too(tmp_path: Path) -> None:
    told = b'{"message":"The provided model identifier is invalid."}'

    def script(host: str, number: int) -> Reply:
        return Reply(400, (*JSON, (b"x-amzn-errortype", b"ValidationException")), [told])

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", model="sonnet")
        assert (done.status, done.code) == (502, "model_not_available")
        assert [one.target for one in world.transport.sent] == [
            "/model/eu.anthropic.claude-sonnet-4-6/converse"
        ]


# --- residency-07, residency-10 ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "prefix"),
    [("us-east-1", "eu."), ("us-west-2", "apac."), ("eu-central-1", "us."),
     ("ap-northeast-1", "eu."), ("eu-west-1", "jp."), ("eu-central-1", "xx.")],
)  # fmt: skip
async def test_residency_07_prefix_and_region_that_do_not_fit(
    tmp_path: Path, source: str, prefix: str
) -> None:
    line = f"source: {source}, model: {prefix}"
    files = Files(baseline=BASELINE.replace("source: eu-central-1, model: eu.", line))
    found = check(files.write(tmp_path), ENVIRONMENT, now())
    told = [one for one in found.problems if "`sonnet-eu`" in one and "footprint_unknown" in one]
    assert told
    async with built(tmp_path, good, files) as world:
        done = await world.ask("eu", model="sonnet")
        assert (done.status, done.code) == (403, "no_endpoint_inside_boundary")
        assert any("process_unknown" in one for one in excluded(done)["sonnet-eu"])
        assert world.transport.sent == []


async def test_residency_10_a_worldwide_profile_is_worldwide_wherever_it_is_called(
    tmp_path: Path,
) -> None:
    only = BASELINE.replace("[sonnet-eu, sonnet-global]", "[sonnet-global]")
    for source in ("eu-central-1", "eu-west-1"):
        files = Files(baseline=only.replace("source: eu-central-1,\n", f"source: {source},\n"))
        folder = tmp_path / source
        folder.mkdir()
        async with built(folder, good, files) as world:
            for tenant in ("eu", "de"):
                done = await world.ask(tenant, model="sonnet")
                assert (done.status, done.code) == (403, "no_endpoint_inside_boundary")
                assert "process_outside: elsewhere:aws" in excluded(done)["sonnet-global"]
            assert world.transport.sent == []
            await world.ask("world", model="sonnet")
            assert len(world.transport.sent) == 1


# --- residency-11 -----------------------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stream": {"stream": True},
    "no messages": {"messages": []},
    "messages null": {"messages": None},
    "image": {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]}]},
    "image by url": {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}]}]},
    "audio": {"messages": [{"role": "user", "content": [
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}]}]},
    "audio out": {"modalities": ["text", "audio"], "audio": {"voice": "a", "format": "wav"}},
    "file": {"messages": [{"role": "user", "content": [
        {"type": "file", "file": {"file_id": "f-1"}}]}]},
    "tools": {"tools": [{"type": "function", "function": {"name": "f"}}]},
    "hosted tool": {"tools": [{"type": "web_search"}]},
    "stored": {"store": True},
    "many": {"n": 4},
    "no output": {"max_tokens": 1},
    "unknown": {"surprise": {"deep": [1]}},
    "empty content": {"messages": [{"role": "user", "content": ""}]},
    "null content": {"messages": [{"role": "user", "content": None}]},
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
async def test_residency_11_the_boundary_holds_for_every_kind_of_request(
    tmp_path: Path, name: str
) -> None:
    # Nothing optional is on: no classifier, no grading, no limits of the tenant's, no rules.
    bare = Files(rules="version: 1\nrules: []\n")
    async with built(tmp_path, good, bare) as world:
        done = await world.ask("eu", model="outside", **KINDS[name])
        assert done.status in (400, 403)
        assert done.status == 400 or done.code == "no_endpoint_inside_boundary"
        await world.ask("eu", **KINDS[name])
        await world.ask("eu", model="openai", **KINDS[name])
        assert {one.origin.host for one in world.transport.sent} <= set(INSIDE)


def test_residency_11_no_step_has_a_switch() -> None:
    """The filter is one of twelve steps that every request walks, and takes no options."""
    assert list(inspect.signature(TwelveSteps.filter).parameters) == ["self", "graded"]
    assert list(inspect.signature(TwelveSteps.decide).parameters) == ["self", "classified"]


# --- residency-12 -----------------------------------------------------------------------------


async def test_residency_12_each_endpoint_has_its_host_and_its_place(tmp_path: Path) -> None:
    # OpenAI's European processing includes the EEA and Switzerland.
    europe = BASELINE.replace("us: {grant: {process: US}}", "us: {grant: {process: EEA + CH + DE}}")
    async with built(tmp_path, good, Files(baseline=europe)) as world:
        assert (await world.ask("us", model="openai")).code == "ok"
        assert [one.origin.host for one in world.transport.sent] == ["eu.api.openai.com"]
        assert (await world.ask("eu", model="openai")).code == "no_endpoint_inside_boundary"
        assert len(world.transport.sent) == 1
        assert dict(world.transport.sent[0].headers)[b"authorization"] == b"Bearer sk-eu-secret"

    def script(host: str, number: int) -> Reply:
        return failure(503) if host.startswith("eu.") else answer()

    folder = tmp_path / "failing"
    folder.mkdir()
    async with built(folder, script, Files(baseline=europe)) as world:
        assert (await world.ask("us", model="openai")).status == 503
        assert world.transport.at("api.openai.com") == 0
        # Whoever may go anywhere is served by the other host, with the other host's key.
        assert (await world.ask("world", model="openai")).code == "ok"
        assert dict(world.transport.sent[-1].headers)[b"authorization"] == b"Bearer sk-world-secret"


# --- residency-14 -----------------------------------------------------------------------------


async def test_residency_14_without_a_policy_nothing_is_sent(tmp_path: Path) -> None:
    async with built(tmp_path, good) as world:
        done = await world.ask("nobody")
        assert (done.status, done.code) == (403, "no_grant")
        live = world.router.live
        policy = live.snapshot.policy
        live.snapshot = replace(live.snapshot, policy=replace(policy, tenants={}))
        for tenant in ("eu", "world"):
            done = await world.ask(tenant)
            assert (done.status, done.code) == (403, "no_grant")
        assert world.transport.sent == []
    refusals = [one.body["code"] for one in entries(tmp_path) if one.kind == "refusal"]
    assert refusals == ["no_grant"] * 3


async def test_residency_14_a_core_called_without_a_policy_refuses(tmp_path: Path) -> None:
    """Types rule it out; a caller that ignores them is refused, and nothing is sent."""
    async with built(tmp_path, good) as world:
        live = world.router.live
        live.snapshot = replace(live.snapshot, policy=None)  # type: ignore[arg-type]
        for stream in (False, True):
            done = await world.ask("world", stream=stream)
            assert (done.status, done.code) == (403, "no_policy")
        assert world.transport.sent == []


def test_residency_14_the_policy_can_not_be_left_out() -> None:
    policy = next(one for one in fields(Snapshot) if one.name == "policy")
    assert policy.type == "Policy"
    assert Policy.__name__ == "Policy"
    with pytest.raises(TypeError):
        Snapshot(digest="", content=b"")  # type: ignore[call-arg]
