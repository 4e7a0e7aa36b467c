"""Reports of `reports.yaml` about policies, facts, reloads and Bedrock's ids: the whole kind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.diff import diff
from regions.catalog import Catalog
from regions.document import DocumentErrors
from regions.footprints.bedrock import Form, read_identifier
from regions.footprints.question import question
from regions.model import Endpoint
from router.decisions.hypothetical import Question, consider
from router.providers.base import Ask, AwsKeys, Target
from router.providers.bedrock import Bedrock
from router.settings.checking import check
from router.settings.reload_files import fingerprint
from tests.cases.built import BASELINE, BEDROCK, ENVIRONMENT, Files, built, entries, now, outcomes
from tests.router.cli.conftest import Domicile, domicile
from tests.router.folders import ROUTER, TWO_CONTINENTS, TWO_RULES, sound, write
from tests.router.providers.test_bedrock import FORMS, expected_signature
from tests.router.reloading import watched
from tests.router.scripted import JSON, Reply, answer

__all__ = ["domicile"]

FACTS = Catalog.load({}).bedrock
GLOBAL_ONLY = sorted(
    name.removeprefix("global.")
    for name in FACTS.global_sources
    if f"eu.{name.removeprefix('global.')}" not in FACTS.profiles
)


# --- residency-06 -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", GLOBAL_ONLY)
def test_residency_06_a_missing_profile_is_no_reason_for_a_wider_one(
    tmp_path: Path, model: str
) -> None:
    source = min(FACTS.global_sources[f"global.{model}"], key=lambda s: not s.startswith("eu-"))
    baseline = BASELINE.replace("sonnet-eu, fra]}}", "new]}}").replace(
        "endpoints:\n",
        f"endpoints:\n  new: {{kind: bedrock, source: {source}, model: global.{model}, "
        'credentials: "file:aws.json", retention_mode: none}\n',
    )
    files = Files(baseline=baseline)
    problems = check(files.write(tmp_path), ENVIRONMENT, now()).problems
    named = [one for one in problems if f"`global.{model}`" in one and "tenant `eu`" in one]
    [told] = named
    assert "(open_ended_in_boundary)" in told
    line = 1 + baseline.splitlines().index("  eu: {grant: {process: EU, retain: EU}}")
    assert "elsewhere:aws" in told
    assert f"at baseline.yaml:{line}:" in told
    asked = consider(files.load(tmp_path), Question("eu", now(), "claude"))
    assert asked.error is not None
    assert asked.error.code == "no_endpoint_inside_boundary"
    assert asked.order == ()


# --- residency-08 -----------------------------------------------------------------------------

WITHOUT_GEOGRAPHY = [
    "bedrock-mantle:anthropic.claude-sonnet-4-6@", "azure:DataZoneStandard@", "vertex:gemini@",
    "anthropic:omitted", "openai:api.openai.com", "openai:eu.api.openai.com",
    "mistral:api.mistral.ai", "openrouter:openrouter.ai", "cohere:api.cohere.com",
    "azure:acme.openai.azure.com",
]  # fmt: skip


@pytest.mark.parametrize("selector", WITHOUT_GEOGRAPHY)
@pytest.mark.parametrize("within", ["EU", "US", "EEA + CH + GB"])
def test_residency_08_what_says_no_place_is_inside_none(selector: str, within: str) -> None:
    answer_ = question(selector, Catalog.load({}), now(), within)
    assert answer_.exit_code in (3, 4)


@pytest.mark.parametrize(
    ("field", "without"),
    [
        ("{grant: {process: EU, retain: EU}}", "{grant: {retain: EU}}"),
        ("self:fra1: {country: DE}", "self:fra1: {}"),
        ("kind: bedrock, source: eu-central-1,", "kind: bedrock,"),
    ],
)
def test_residency_08_no_place_is_a_default(tmp_path: Path, field: str, without: str) -> None:
    problems = check(
        Files(baseline=BASELINE.replace(field, without, 1)).write(tmp_path), ENVIRONMENT, now()
    ).problems
    assert problems


def test_residency_08_a_wider_version_is_told_and_stops(domicile: Domicile, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    sound(old)
    box = sound(new)
    text = (new / "baseline" / "main.yaml").read_text()
    (new / "baseline" / "main.yaml").write_text(text.replace("process: EU", "process: worldwide"))
    ran = domicile("policy", "diff", old, new, "--fail-on-widening", "--at", "2026-11-29")
    assert ran.code == 3
    assert "WIDER" in ran.out
    assert "aws:us-east-1" in ran.out or "more" in ran.out
    before, after = sound(old).snapshot().policy, box.snapshot().policy
    assert not diff(after, before, now()).widens


# --- residency-16 -----------------------------------------------------------------------------


def test_residency_16_every_setting_has_a_source_and_none_is_read_nowhere(tmp_path: Path) -> None:
    path = Files().write(tmp_path)
    found = check(path, ENVIRONMENT, now())
    told = {one.name: one.source for one in found.settings}
    assert told["router.region"].startswith(f"{path}:")
    assert told["router.workers"] == "default"
    for name in ("DOMICILE_REGION", "DOMICILE_PREFIX", "DOMICILE_WORKERS", "DOMICILE_ANYTHING"):
        problems = check(path, {**ENVIRONMENT, name: "eu"}, now()).problems
        assert any(f"`{name}` is read nowhere" in one for one in problems)
    odd = Files(main=Files().main.replace("router:\n", "router:\n  prefix: eu\n"))
    assert any("prefix" in one for one in check(odd.write(tmp_path), ENVIRONMENT, now()).problems)


# --- residency-19 -----------------------------------------------------------------------------


def test_residency_19_the_trade_between_two_profiles_is_told(
    domicile: Domicile, tmp_path: Path
) -> None:
    path = Files().write(tmp_path)
    pair = [
        f"bedrock:{geo}.anthropic.claude-sonnet-4-6@eu-west-1?retention_mode=none"
        for geo in ("eu", "global")
    ]
    day = Catalog.load({}).date.isoformat()
    words = ("footprint", *pair, "--within", "EU", "--config", path, "--at", day)
    told = domicile(*words, "--json").json["answers"]
    assert isinstance(told, list)
    eu, everywhere = told
    assert set(eu["process"]) >= {"aws:eu-central-1", "aws:eu-west-1"}
    assert everywhere["process"] == ["elsewhere:aws"]
    assert "no surcharge" in eu["price"]["said"]
    assert "10% below" in everywhere["price"]["said"]
    open_to = [{n for n, codes in one["tenants"].items() if not codes} for one in told]
    assert open_to == [{"eu", "world"}, {"world"}]
    shown = domicile(*words)
    assert shown.code == 3
    for word in ("compared", "price", "open to", "tenant eu: process_outside"):
        assert word in shown.out


# --- config-02 to config-05 ---------------------------------------------------------------------


async def test_config_02_a_request_has_one_version_from_start_to_end(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        for number in range(3):
            held = asyncio.create_task(world.ask())
            world.change("rules/example.yaml", "red ", f"red {number} ")
            await world.settle()
            assert (await held).status == 200
            assert (await world.ask()).status == 200
        decisions = world.entries("decision")
        for entry in decisions:
            who = entry.body["who"]
            assert isinstance(who, dict)
            assert isinstance(entry.body["snapshot"], str)
            assert who["policy"]
        assert len({str(entry.body["snapshot"]) for entry in decisions}) == 4
        assert decisions[-1].body["snapshot"] == world.router.live.snapshot.digest


async def test_config_03_status_tells_whether_an_edit_is_in_force(tmp_path: Path) -> None:
    box = sound(tmp_path)
    async with watched(box) as world:
        files = world.router.live.files
        assert files.active == fingerprint(box.config)
        world.change("rules/example.yaml", "red zone", "red area")
        await world.reloader.look()
        assert files.on_disk == fingerprint(box.config) != files.active
        await world.reloader.look()
        assert files.on_disk == files.active == fingerprint(box.config)
        assert files.looked_at


@pytest.mark.parametrize("name", ["token", "keys.yaml", "log.key"])
def test_config_04_the_fingerprint_covers_what_is_referred_to(tmp_path: Path, name: str) -> None:
    box = sound(tmp_path)
    path = tmp_path / "baseline" / "main.yaml"
    named = '{kind: vllm, credentials: "file:token", region: self:par1'
    path.write_text(path.read_text().replace("{kind: vllm, region: self:par1", named))
    (tmp_path / "token").write_text("a")
    before = fingerprint(box.config)
    (tmp_path / name).write_text("rotated")
    assert fingerprint(box.config) != before


def _left_out(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return ["".join(lines[:n] + lines[n + 1 :]) for n in range(len(lines))]


@pytest.mark.parametrize("part", ["domicile.yaml", "baseline/main.yaml", "rules/example.yaml"])
def test_config_05_any_line_may_be_missing_and_nothing_crashes(tmp_path: Path, part: str) -> None:
    box = write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)
    for text in _left_out((tmp_path / part).read_text()):
        (tmp_path / part).write_text(text)
        found = check(box.config, {}, now())
        assert found.snapshot is not None or found.problems


# --- bedrock-02 -------------------------------------------------------------------------------

KEYS = AwsKeys("AKIDEXAMPLE", "secret")
PARTS = st.from_regex(r"[a-z0-9](?:[a-z0-9.-]{0,8}[a-z0-9])?", fullmatch=True)
IDS = st.one_of(
    st.sampled_from(sorted(FORMS)),
    st.builds("anthropic.{}-v{}:{}".format, PARTS, st.integers(1, 9), st.integers(0, 9)),
    st.builds(
        "arn:aws:bedrock:eu-central-1:123456789012:{}/{}".format,
        st.sampled_from(["inference-profile", "application-inference-profile", "prompt-router",
                         "provisioned-model"]), PARTS),
)  # fmt: skip


@given(IDS, st.booleans())
def test_bedrock_02_an_id_is_encoded_once_and_signed_as_sent(model: str, stream: bool) -> None:
    endpoint = Endpoint("e", "bedrock", "aws", model, source="aws:eu-central-1")
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    ask = Ask("chat.completions", body, json.dumps(body).encode(), stream, "m", "r1")
    request = Bedrock().encode(ask, endpoint, Target(credential=KEYS), 1_796_000_000.0)
    [path] = [request.target.removeprefix("/model/").rpartition("/")[0]]
    assert unquote(path) == model
    assert "/" not in path
    signed = dict(request.headers)[b"authorization"].decode()
    assert signed == expected_signature(request, KEYS, "eu-central-1")


# --- bedrock-03 -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("streaming", [False, True])
async def test_bedrock_03_an_error_as_json_is_read_as_json(
    tmp_path: Path, status: int, streaming: bool
) -> None:
    kind = (b"x-amzn-errortype", b"AccessDeniedException")
    body = json.dumps({"message": "You don't have access to the model."}).encode()

    def script(host: str, number: int) -> Reply | Exception:
        return Reply(status, (*JSON, kind), [body]) if host == BEDROCK else answer()

    only = Files(baseline=BASELINE.replace("[sonnet-eu, sonnet-global]", "[sonnet-eu]"))
    async with built(tmp_path, script, only) as world:
        done = await world.ask("eu", model="sonnet", stream=streaming)
        assert done.status >= 400
        assert "json" in done.sent["content-type"]
        error = json.loads(done.written)["error"]
        assert "checksum" not in str(error).lower()
        assert "crc" not in str(error).lower()
    [outcome] = outcomes(tmp_path)
    attempts = outcome["attempts"]
    assert isinstance(attempts, list)
    assert {one["status"] for one in attempts} == {status}
    assert "AccessDeniedException" in json.dumps(outcome)


# --- bedrock-04 -------------------------------------------------------------------------------

NEEDS = "amazon.nova-2-lite-v1:0"


async def test_bedrock_04_a_plain_id_that_needs_a_profile_is_told_which(tmp_path: Path) -> None:
    plain = Files(
        baseline=BASELINE.replace("[sonnet-eu, sonnet-global]", "[sonnet-eu]").replace(
            "eu.anthropic.claude-sonnet-4-6", NEEDS
        )
    )
    found = check(plain.write(tmp_path), ENVIRONMENT, now()).findings
    [told] = [one.message for one in found if one.code == "needs_profile"]
    assert f"`eu.{NEEDS}`" in told
    body = json.dumps(
        {"message": f"Invocation of model ID {NEEDS} with on-demand throughput isn't supported."}
    ).encode()
    kind = (b"x-amzn-errortype", b"ValidationException")

    def script(host: str, number: int) -> Reply | Exception:
        return Reply(400, (*JSON, kind), [body])

    async with built(tmp_path, script, plain) as world:
        eu = json.loads((await world.ask("eu", model="sonnet")).written)["error"]
        world_ = json.loads((await world.ask("world", model="sonnet")).written)["error"]
    assert eu["code"] == "model_not_available"
    assert f"as `eu.{NEEDS}`" in eu["message"]
    assert "global." not in eu["message"], "the policy does not allow it"
    assert f"`eu.{NEEDS}` or `global.{NEEDS}`" in world_["message"]
    assert len([one for one in entries(tmp_path) if one.kind == "outcome"]) == 2


# --- bedrock-06 -------------------------------------------------------------------------------


@pytest.mark.parametrize("geo", ["us", "eu", "apac", "jp", "au", "ca", "in", "us-gov", "global"])
@pytest.mark.parametrize("vendor", ["anthropic", "amazon", "meta", "openai"])
def test_bedrock_06_a_prefix_is_a_geography_and_no_vendor(geo: str, vendor: str) -> None:
    found = read_identifier(f"{geo}.{vendor}.x-v1:0", FACTS)
    assert found.form is (Form.GLOBAL if geo == "global" else Form.GEOGRAPHIC)
    assert read_identifier(f"{vendor}.x-v1:0", FACTS).form is Form.BARE


@pytest.mark.parametrize(
    "model",
    ["zz.anthropic.x", "emea.amazon.y", "EU.anthropic.x", "eu", "eu.", "anthropic", ".eu.x", "",
     "eu-central-1.anthropic.x", "us_gov.meta.z", "newvendor.model-v1"],
)  # fmt: skip
def test_bedrock_06_an_unknown_prefix_is_nowhere(model: str) -> None:
    assert read_identifier(model, FACTS).form is Form.UNKNOWN
    if model:
        answer_ = question(f"bedrock:{model}@eu-central-1", Catalog.load({}), now(), "worldwide")
        assert answer_.exit_code == 4


def test_residency_08_documents_say_where(tmp_path: Path) -> None:
    missing = BASELINE.replace("self:fra1: {country: DE}", "self:fra1: {}")
    with pytest.raises(DocumentErrors, match=r"baseline\.yaml:3"):
        Files(baseline=missing).load(tmp_path)
