"""The residency traps that no selector can ask: records, prices, failover, stores."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from policies.findings import Severity
from regions.catalog import Catalog
from regions.footprints.prices import relative_price
from regions.footprints.selectors import parse_selector
from regions.model import Endpoint
from router.assess.trail import assess_folder
from router.settings.checking import check
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built, entries, now, outcomes
from tests.router.assess.configs import call, stream
from tests.router.scripted import JSON, Reply, answer, failure

GIVEN = (
    "01 02 03 05 07 08 09 10 11 13 14 15 17 18 20 21 22 23 24 26 27 29 31 32 33 34 35 37 38 39 40 "
    "43 45 46 47 50 51"
)
SELECTED = Path(__file__).with_name("residency-traps.yaml")


def test_every_trap_given_is_a_case_or_a_test() -> None:
    asked = set(re.findall(r"id: T(\d\d)", SELECTED.read_text()))
    tested = set(re.findall(r"def test_t(\d\d)_", Path(__file__).read_text()))
    assert set(GIVEN.split()) <= asked | tested
    assert not asked & tested


async def test_t22_a_converse_answer_does_not_tell_where_it_ran(tmp_path: Path) -> None:
    told = {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
            "stopReason": "end_turn", "metrics": {"latencyMs": 1},
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}  # fmt: skip
    reply = Reply(200, JSON, [json.dumps(told).encode()])
    async with built(tmp_path, lambda host, number: reply) as world:
        done = await world.ask("eu", model="sonnet")
    assert "x-domicile-region" not in done.sent
    assert len(done.sent["x-domicile-footprint"].split(",")) > 1
    [outcome] = outcomes(tmp_path)
    assert outcome["place"] == "not observable"


def test_t23_a_stream_is_one_call_though_cloudtrail_writes_two_events(tmp_path: Path) -> None:
    records = [call(1), *stream(2, "eu-north-1"), *stream(3, "us-east-1"), call(4)]
    (tmp_path / "log.json").write_text(json.dumps({"Records": records}))
    found = assess_folder(tmp_path, Catalog.load(), "EU", now())
    assert (found.events, found.calls) == (6, 4)
    assert found.exit_code == 3, "the service event tells that one of them left"


def test_t24_calls_through_mantle_are_in_no_management_event(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"Records": [call(1)]}))
    found = assess_folder(tmp_path, Catalog.load(), "EU", now())
    assert any("bedrock-mantle" in note for note in found.notes)
    assert "eu-north-1" in str(found.rows), "nothing is concluded from what is not there"


@pytest.mark.parametrize("source", ["eu-west-1", "us-east-1", "ap-northeast-1"])
def test_t46_a_plain_id_has_not_the_price_of_the_worldwide_profile(source: str) -> None:
    facts = Catalog.load().bedrock
    bare, anywhere = (
        relative_price(parse_selector(f"bedrock:{name}@{source}"), facts)
        for name in ("anthropic.claude-sonnet-4-6", "global.anthropic.claude-sonnet-4-6")
    )
    assert bare is not None
    assert anywhere is not None
    assert bare.price != anywhere.price
    assert "above a global one" in bare.price
    # The router has no table of its own: an endpoint without a price has an unknown one, which no
    # ceiling admits.
    assert Endpoint("e", "bedrock", "aws", "anthropic.claude-sonnet-4-6").price.input is None


@pytest.mark.parametrize("streaming", [False, True])
async def test_t47_nobody_inside_answers_and_nobody_outside_is_asked(
    tmp_path: Path, streaming: bool
) -> None:
    outside = ("iad1", "api.openai.com", "bedrock-runtime.us-east-1.amazonaws.com")

    def script(host: str, number: int) -> Reply | Exception:
        return answer() if host in outside else failure(503)

    # The worldwide profile and the worldwide host stand right behind, in the same model.
    pool = BASELINE.replace("[fra, par, iad]", "[fra, sonnet-eu, sonnet-global, openai-world, iad]")
    async with built(tmp_path, script, Files(baseline=pool)) as world:
        done = await world.ask("eu", stream=streaming)
        assert done.status == 503
        assert all(world.transport.at(host) == 0 for host in outside)
    [outcome] = outcomes(tmp_path)
    attempts = outcome["attempts"]
    assert isinstance(attempts, list)
    assert {one["endpoint"] for one in attempts} <= {"fra", "sonnet-eu"}
    decision = next(one.body for one in entries(tmp_path) if one.kind == "decision")
    for name in ("iad", "openai-world", "sonnet-global"):
        assert f'"{name}": ["process_outside' in json.dumps(decision["candidates"])


SEAL = "log: {dir: log, signing_key: file:log.key, seal: {s3: b, region: aws:eu-central-1, %s}}"


def sealed(tmp_path: Path, seal: str, rules: str = Files().rules) -> Path:
    main = re.sub(r"^log: .*$", SEAL % seal, Files().main, flags=re.MULTILINE)
    return Files(main=main, rules=rules).write(tmp_path)


@pytest.mark.parametrize("mode", ["GOVERNANCE", "COMPLIANCE"])
def test_t50_a_lock_that_can_be_bypassed_is_not_immutable(tmp_path: Path, mode: str) -> None:
    found = check(sealed(tmp_path, f"mode: {mode}, retain: 3y"), ENVIRONMENT, now()).findings
    told = [one for one in found if one.code == "seal_not_immutable"]
    assert [one.severity for one in told] == ([Severity.WARNING] if mode == "GOVERNANCE" else [])


@pytest.mark.parametrize(("retain", "short"), [("30d", True), ("183d", True), ("200d", False)])
def test_t51_records_of_a_high_risk_use_are_kept_for_half_a_year(
    tmp_path: Path, retain: str, short: bool
) -> None:
    rules = (
        "version: 1\nrules:\n  - name: high-risk\n    when: {data_class: health}\n"
        "    obligations: [{record_retention: {min: 184d}}]\n"
        '    because: "Regulation (EU) 2024/1689, Art. 19, 26(6)"\n'
    )
    problems = check(sealed(tmp_path, f"retain: {retain}", rules), ENVIRONMENT, now()).problems
    assert any("records must be kept longer" in one for one in problems) == short


@pytest.mark.parametrize("most", [", max: 300d", ""])
def test_records_that_must_go_are_the_operators_to_delete_and_check_says_so(
    tmp_path: Path, most: str
) -> None:
    rules = (
        "version: 1\nrules:\n  - name: short-lived\n    when: {data_class: health}\n"
        f"    obligations: [{{record_retention: {{min: 1d{most}}}}}]\n"
        '    because: "GDPR Art. 5(1)(e)"\n'
    )
    found = check(sealed(tmp_path, "retain: 200d", rules), ENVIRONMENT, now())
    assert not any("records must be" in one for one in found.problems)
    told = [one for one in found.findings if one.code == "records_kept_locally"]
    assert [one.severity for one in told] == [Severity.WARNING] * bool(most)
    for one in told:
        for part in ("short-lived", "`max`", "`log`", "`b`", "sealed.jsonl", "lifecycle"):
            assert part in one.message
