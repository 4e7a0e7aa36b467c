"""Endpoints in two halves: what is true of one must be true of both."""

from __future__ import annotations

import pytest

from policies.findings import Scene, Severity
from policies.lint_reach import endpoints_nobody_uses, halves_apart
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint
from tests.policies.samples import NOW, errors, loading

REGIONS = "regions: {self:fra1: {country: DE}, self:par1: {country: FR}}\n"
LINE = "  {name}: {{kind: {kind}, model: {model}, region: {region}, operate: {operate}, {more}}}\n"


def line(name: str, more: str = "retain: nothing", **changed: str) -> str:
    said = {"kind": "vllm", "model": "m", "region": "self:fra1", "operate": "DE", **changed}
    return LINE.format(name=name, more=more, **said)


def written(*lines: str, listed: str = "dec") -> str:
    models = f"models: {{m1: {{tiers: {{large: [{listed}]}}}}}}\n"
    return REGIONS + "endpoints:\n" + "".join(lines) + models


PREFILL = "retain: nothing, prefill: {endpoint: pre}"


def endpoint(text: str, name: str = "dec") -> Endpoint:
    return loading(text).policy.endpoints[name]


def test_the_other_half_is_found_and_the_least_prompt_is_a_setting() -> None:
    found = endpoint(written(line("pre"), line("dec", PREFILL)))
    assert found.prefill is not None
    assert found.prefill.name == "pre"
    assert found.settings["prefill_least"] == "256"


def test_the_footprint_is_of_both() -> None:
    there = line("pre", "retain: self:par1", region="self:par1", operate="FR")
    loaded = loading(written(there, line("dec", PREFILL)))
    both = footprint(loaded.policy.endpoints["dec"], PLAIN_CALL, loaded.catalog, NOW)
    assert both.process.ids == ("self:fra1", "self:par1")
    assert both.retain.places(loaded.catalog.atlas).ids == ("self:par1",)
    assert set(both.operate.codes) == {"DE", "FR"}
    alone = footprint(loaded.policy.endpoints["pre"], PLAIN_CALL, loaded.catalog, NOW)
    assert alone.process.ids == ("self:par1",)
    assert {fact.statement for fact in alone.facts} <= {fact.statement for fact in both.facts}


def test_what_is_unknown_of_one_half_is_unknown_of_both() -> None:
    unsaid = line("pre", "probe: off")
    loaded = loading(written(unsaid, line("dec", PREFILL)))
    both = footprint(loaded.policy.endpoints["dec"], PLAIN_CALL, loaded.catalog, NOW)
    assert not both.retain.is_known


def test_an_assurance_is_held_by_both_or_not_at_all() -> None:
    def held(*named: str) -> str:
        told = [
            f"{{name: {one.partition('/')[0]}, evidence: e, approved_by: dpo"
            + (f", until: {one.partition('/')[2]}" if "/" in one else "")
            + "}"
            for one in named
        ]
        return f"retain: nothing, assurances: [{', '.join(told)}]"

    pre = line("pre", held("dpa/2027-01-01", "baa"))
    dec = line("dec", held("dpa", "zdr", "baa") + ", prefill: {endpoint: pre}")
    found = endpoint(written(pre, dec))
    assert {one.name for one in found.assurances} == {"dpa", "baa"}
    ends = {one.name: one.until for one in found.assurances}
    assert ends["baa"] is None
    assert ends["dpa"] == endpoint(written(pre, dec), "pre").assurances[0].until


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((line("dec", PREFILL),), "endpoint `pre` is not defined"),
        ((line("pre"), line("dec", PREFILL.replace("pre}", "dec}"))), "needs no `prefill`"),
        ((line("pre", kind="sglang"), line("dec", PREFILL)), "only vllm servers hand a cache over"),
        ((line("pre", model="n"), line("dec", PREFILL)), "`pre` runs `n`, whose cache is no use"),
        (
            (line("far"), line("pre", PREFILL.replace("pre}", "far}")), line("dec", PREFILL)),
            "`pre` has a `prefill` of its own",
        ),
        ((line("pre"), line("dec", PREFILL + ", hedge: {}")), "is not hedged"),
        (
            (line("pre", "retain: nothing, pool: interactive"), line("dec", PREFILL)),
            "main.yaml:3:86: `pre` only computes another one's prompts; write `pool` at that one",
        ),
        (
            (line("pre", "retain: nothing, hedge: {}"), line("dec", PREFILL)),
            "`pre` only computes another one's prompts; write `hedge` at that one",
        ),
        (
            (line("pre", "retain: nothing, burst: {tokens: 5/h, output: 1}"), line("dec", PREFILL)),
            "`pre` only computes another one's prompts; write `burst` at that one",
        ),
        (
            (
                line("pre", "retain: nothing, provider: aws", region="aws:eu-central-1"),
                line("dec", PREFILL),
            ),
            "`pre` is at `aws`, and rules for that provider would not be asked",
        ),
        ((line("pre"), line("dec", PREFILL.replace("pre}", "pre, least: -1}"))), "least"),
        ((line("pre"), line("dec", PREFILL.replace("pre}", "pre, at: 1}"))), "at"),
    ],
)
def test_halves_that_do_not_fit(lines: tuple[str, ...], told: str) -> None:
    found = errors(written(*lines))
    assert any(told in one for one in found), found


def test_a_half_is_listed_by_no_model() -> None:
    found = errors(written(line("pre"), line("dec", PREFILL), listed="dec, pre"))
    assert any("`pre` computes another one's prompts" in one for one in found), found


def test_halves_apart_are_told_and_a_half_is_not_unused() -> None:
    def scene(text: str) -> Scene:
        loaded = loading(text + "tenants: {t: {grant: {process: EU}}}\n")
        return Scene(loaded.policy, loaded.catalog, NOW)

    together = scene(written(line("pre"), line("dec", PREFILL)))
    assert list(halves_apart(together)) == []
    assert list(endpoints_nobody_uses(together)) == []
    apart = scene(written(line("pre", region="self:par1"), line("dec", PREFILL)))
    (told,) = halves_apart(apart)
    assert (told.code, told.severity) == ("halves_apart", Severity.WARNING)
    assert "self:par1" in told.message
