"""Verdicts over whole configurations, with the bugs that gateways had as their cases."""

from pathlib import Path

import pytest

from regions.catalog import Catalog, OwnRegion
from regions.footprints.question import Verdict
from router.assess.routes import Assessment, Bounds, assess
from tests.router.assess.configs import PROXY, deployment, proxy

AT = 1_796_000_000.0  # 2026-11-29
EU = Bounds("EU", AT)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load({"self:fra1": OwnRegion("DE")})


def one(catalog: Catalog, tmp_path: Path, params: str, info: str = "{}") -> Assessment:
    return assess(deployment(tmp_path, params, info), catalog, EU)


def test_each_deployment_has_its_verdict_and_the_worst_decides(
    catalog: Catalog, tmp_path: Path
) -> None:
    found = assess(proxy(tmp_path, PROXY), catalog, EU)
    assert [route.verdict for route in found.routes] == [
        Verdict.INSIDE, Verdict.OUTSIDE, Verdict.UNKNOWN, Verdict.UNKNOWN, Verdict.INSIDE,
    ]  # fmt: skip
    assert found.routes[1].where == ("elsewhere:aws",)
    assert "--env BEDROCK_REGION" in found.routes[2].reason
    assert "`sku`" in found.routes[3].reason
    assert found.mixed == ("claude",)
    assert found.exit_code == 3


def test_fallbacks_that_cross_the_boundary_are_named(catalog: Catalog, tmp_path: Path) -> None:
    found = assess(proxy(tmp_path, PROXY), catalog, EU).crossings
    assert [(c.fallback.kind, c.fallback.group, c.crosses) for c in found] == [
        ("fallbacks", "mistral", True),
        ("fallbacks", "nova", False),
        ("default_fallbacks", "*", False),
        ("context_window_fallbacks", "mistral", True),
    ]
    assert dict(found[0].targets) == {"gpt": Verdict.UNKNOWN, "claude": Verdict.OUTSIDE}
    assert dict(found[3].targets) == {"long": Verdict.UNKNOWN}, "no such group: nobody knows"


def test_a_global_profile_in_an_eu_region_is_worldwide(catalog: Catalog, tmp_path: Path) -> None:
    """residency-10: the profile decides, not the endpoint's region."""
    params = "{model: bedrock/global.anthropic.claude-sonnet-4-6, aws_region_name: eu-central-1}"
    assert one(catalog, tmp_path, params).exit_code == 3


def test_a_prefix_and_a_region_that_cant_be_combined_are_found(
    catalog: Catalog, tmp_path: Path
) -> None:
    """residency-07: an `eu.` id called from us-east-1 fails on every call."""
    params = "{model: bedrock/eu.anthropic.claude-sonnet-4-6, aws_region_name: us-east-1}"
    found = one(catalog, tmp_path, params)
    assert found.exit_code == 4
    assert "can't be combined" in found.routes[0].reason


@pytest.mark.parametrize(
    ("params", "info", "verdict"),
    [
        ("{model: bedrock/anthropic.claude-3-haiku-20240307-v1:0, aws_region_name: eu-west-2}",
         "{}", Verdict.OUTSIDE),
        ("{model: bedrock/anthropic.claude-3-haiku-20240307-v1:0, aws_region_name: eu-central-2}",
         "{}", Verdict.OUTSIDE),
        ("{model: azure/x, api_base: 'https://a.openai.azure.com'}",
         "{domicile: {sku: Standard, region: uksouth}}", Verdict.OUTSIDE),
        ("{model: azure/x, api_base: 'https://a.openai.azure.com'}",
         "{domicile: {sku: Standard, region: polandcentral}}", Verdict.INSIDE),
        ("{model: azure/x, api_base: 'https://a.openai.azure.com'}",
         "{domicile: {sku: DataZoneStandard, region: swedencentral}}", Verdict.OUTSIDE),
        ("{model: vertex_ai/gemini-2.5-pro, vertex_location: global}", "{}", Verdict.OUTSIDE),
        ("{model: vertex_ai/gemini-2.5-pro, vertex_location: eu}", "{}", Verdict.INSIDE),
        ("{model: vertex_ai/gemini-2.5-pro, vertex_location: europe-north2}", "{}",
         Verdict.UNKNOWN),
        ("{model: vertex_ai/gemini-2.5-pro, vertex_location: europe-north2}",
         "{domicile: {residency_listed: 'true'}}", Verdict.INSIDE),
        ("{model: 'bedrock/ca.amazon.nova-lite-v1:0', aws_region_name: ca-central-1}", "{}",
         Verdict.OUTSIDE),
        ("{model: gpt-4o, api_base: 'https://eu.api.openai.com/v1'}", "{}", Verdict.OUTSIDE),
        ("{model: hosted_vllm/x, api_base: 'http://h:1'}", "{domicile: {region: 'self:fra1'}}",
         Verdict.INSIDE),
        ("{model: hosted_vllm/x, api_base: 'http://h:1'}", "{domicile: {region: 'self:nix'}}",
         Verdict.UNKNOWN),
        ("{model: groq/x}", "{}", Verdict.UNKNOWN),
    ],
)  # fmt: skip
def test_places_that_gateways_get_wrong(
    catalog: Catalog, tmp_path: Path, params: str, info: str, verdict: Verdict
) -> None:
    (route,) = one(catalog, tmp_path, params, info).routes
    assert route.verdict is verdict, route.reason


def test_all_inside_is_zero(catalog: Catalog, tmp_path: Path) -> None:
    params = "{model: bedrock/eu.anthropic.claude-sonnet-4-6, aws_region_name: eu-central-1}"
    assert one(catalog, tmp_path, params).exit_code == 0


def test_no_deployment_is_no_answer(catalog: Catalog, tmp_path: Path) -> None:
    assert assess(proxy(tmp_path, "model_list: []"), catalog, EU).exit_code == 4


INSIDE = (
    "model_list:\n  - model_name: a\n    litellm_params: "
    "{model: bedrock/eu.anthropic.claude-sonnet-4-6, aws_region_name: eu-central-1}\n"
)


@pytest.mark.parametrize(
    ("more", "retain", "code"),
    [
        ("guardrails: [{guardrail_name: g}]", None, 4),
        ("general_settings: {store_model_in_db: true}", None, 4),
        ("litellm_settings: {callbacks: [langfuse]}", None, 0),
        ("litellm_settings: {callbacks: [langfuse]}", "EU", 4),
    ],
)
def test_what_else_is_sent_prompts_counts_on_the_axis_it_touches(
    catalog: Catalog, tmp_path: Path, more: str, retain: str | None, code: int
) -> None:
    found = assess(proxy(tmp_path, INSIDE + more), catalog, Bounds("EU", AT, retain))
    assert found.exit_code == code


def test_an_alias_stands_for_its_group(catalog: Catalog, tmp_path: Path) -> None:
    text = (
        f"{INSIDE}  - {{model_name: b, litellm_params: {{model: gpt-4o}}}}\n"
        "router_settings:\n  model_group_alias: {b2: b}\n  fallbacks: [{a: [b2]}]\n"
    )
    (crossing,) = assess(proxy(tmp_path, text), catalog, EU).crossings
    assert crossing.crosses
    assert crossing.verdict is Verdict.OUTSIDE


def test_other_axes_are_judged_when_asked_about(catalog: Catalog, tmp_path: Path) -> None:
    bounds = Bounds("EU", AT, operated_by="EU")
    (route,) = assess(proxy(tmp_path, INSIDE), catalog, bounds).routes
    assert route.verdict is Verdict.OUTSIDE
    assert "US" in route.reason
