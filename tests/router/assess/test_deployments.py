"""Which endpoint a deployment calls, provider by provider. Parameters as LiteLLM documents them."""

from pathlib import Path

import pytest

from regions.model import Endpoint
from router.assess.deployments import Called, called
from tests.router.assess.configs import deployment

NOVA = "eu.amazon.nova-lite-v1:0"
RUNTIME = "'https://bedrock-runtime.eu-west-3.amazonaws.com'"


def read(tmp_path: Path, params: str, info: str = "{}", **environment: str) -> Called:
    (found,) = deployment(tmp_path, params, info).deployments
    return called(found, environment)


def endpoint(tmp_path: Path, params: str, info: str = "{}", **environment: str) -> Endpoint:
    found = read(tmp_path, params, info, **environment)
    assert not found.missing
    return found.endpoint


@pytest.mark.parametrize(
    ("model", "kind", "id_"),
    [
        (f"bedrock/{NOVA}", "bedrock", NOVA),
        (f"bedrock/converse/{NOVA}", "bedrock", NOVA),
        (f"bedrock/invoke/{NOVA}", "bedrock", NOVA),
        (f"bedrock_converse/{NOVA}", "bedrock", NOVA),
        (NOVA, "bedrock", NOVA),
        (
            "bedrock/us.anthropic.claude-opus-4-6-v1[1m]",
            "bedrock",
            "us.anthropic.claude-opus-4-6-v1",
        ),
        ("bedrock/mantle/openai.gpt-oss-120b", "bedrock-mantle", "openai.gpt-oss-120b"),
        ("bedrock_mantle/openai.gpt-oss-120b", "bedrock-mantle", "openai.gpt-oss-120b"),
    ],
)
def test_bedrock_routes_are_stripped(tmp_path: Path, model: str, kind: str, id_: str) -> None:
    found = endpoint(tmp_path, f"{{model: '{model}', aws_region_name: eu-west-1}}")
    assert (found.kind, found.provider, found.model) == (kind, "aws", id_)
    assert found.source == "aws:eu-west-1"


@pytest.mark.parametrize(
    "params",
    [
        f"{{model: 'bedrock/{NOVA}', aws_region_name: eu-west-3}}",
        f"{{model: 'bedrock/eu-west-3/{NOVA}'}}",
        f"{{model: 'bedrock/{NOVA}', aws_bedrock_runtime_endpoint: {RUNTIME}}}",
        "{model: 'bedrock/arn:aws:bedrock:eu-west-3:1:inference-profile/eu.amazon.nova-lite-v1:0'}",
        "{model: bedrock/nova, model_id: 'arn:aws:bedrock:eu-west-3:1:provisioned-model/x'}",
    ],
)
def test_the_source_region_stands_in_five_places(tmp_path: Path, params: str) -> None:
    assert endpoint(tmp_path, params).source == "aws:eu-west-3"


def test_two_source_regions_are_none(tmp_path: Path) -> None:
    params = f"{{model: 'bedrock/us-east-1/{NOVA}', aws_region_name: eu-west-3}}"
    assert "one source region" in read(tmp_path, params).missing[0]


@pytest.mark.parametrize("name", ["AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION"])
def test_a_region_the_file_leaves_to_the_process_is_missing_until_given(
    tmp_path: Path, name: str
) -> None:
    params = f"{{model: 'bedrock/{NOVA}'}}"
    assert "else us-west-2" in read(tmp_path, params).missing[0]
    assert endpoint(tmp_path, params, **{name: "eu-west-3"}).source == "aws:eu-west-3"


def test_a_guardrail_goes_with_the_endpoint(tmp_path: Path) -> None:
    params = (
        f"{{model: 'bedrock/{NOVA}', aws_region_name: eu-west-3, "
        "guardrailConfig: {guardrailIdentifier: gr1}}"
    )
    assert endpoint(tmp_path, params).settings == {"guardrail": "gr1"}


@pytest.mark.parametrize(
    ("params", "kind", "settings"),
    [
        ("{model: vertex_ai/gemini-2.5-pro, vertex_location: eu}", "vertex", {"location": "eu"}),
        ("{model: gemini-2.5-pro, vertex_ai_location: us}", "vertex", {"location": "us"}),
        ("{model: gemini/gemini-2.5-pro}", "gemini", {}),
        ("{model: anthropic/claude-x, inference_geo: us}", "anthropic", {"inference_geo": "us"}),
        (
            "{model: claude-x, extra_body: {inference_geo: us}}",
            "anthropic",
            {"inference_geo": "us"},
        ),
        ("{model: claude-x}", "anthropic", {}),
        ("{model: x, custom_llm_provider: azure}", "azure", {}),
        ("{model: snowflake/x}", "snowflake", {}),
    ],
)
def test_what_decides_the_place_is_taken(
    tmp_path: Path, params: str, kind: str, settings: dict[str, str]
) -> None:
    found = endpoint(tmp_path, params)
    assert (found.kind, found.settings) == (kind, settings)


def test_vertex_without_a_location_is_missing_one(tmp_path: Path) -> None:
    params = "{model: vertex_ai/gemini-2.5-pro}"
    assert "else us-central1" in read(tmp_path, params).missing[0]
    given = endpoint(tmp_path, params, VERTEXAI_LOCATION="europe-west4")
    assert given.settings == {"location": "europe-west4"}


@pytest.mark.parametrize(
    ("params", "kind", "url"),
    [
        ("{model: openai/gpt-4o}", "openai", "https://api.openai.com"),
        ("{model: gpt-4o}", "openai", "https://api.openai.com"),
        ("{model: o3}", "openai", "https://api.openai.com"),
        ("{model: x, custom_llm_provider: openai, base_url: 'https://eu.api.openai.com/v1'}",
         "openai", "https://eu.api.openai.com/v1"),
        ("{model: openai/x, api_base: 'https://a.openai.azure.com/openai/v1'}",
         "azure", "https://a.openai.azure.com/openai/v1"),
        ("{model: openai/x, api_base: 'https://api.anthropic.com/v1'}",
         "openai", "https://api.anthropic.com/v1"),
        ("{model: openai/x, api_base: 'https://generativelanguage.googleapis.com/v1beta/openai'}",
         "gemini", "https://generativelanguage.googleapis.com/v1beta/openai"),
        ("{model: openai/x, api_base: 'https://bedrock-mantle.eu-west-1.api.aws/v1'}",
         "bedrock-mantle", "https://bedrock-mantle.eu-west-1.api.aws/v1"),
        ("{model: mistral/m}", "mistral", "https://api.mistral.ai"),
        ("{model: openrouter/anthropic/claude-x}", "openrouter", "https://openrouter.ai"),
    ],
)  # fmt: skip
def test_the_host_decides(tmp_path: Path, params: str, kind: str, url: str) -> None:
    found = endpoint(tmp_path, params)
    assert (found.kind, found.urls) == (kind, (url,))


def test_an_api_base_nobody_gave_is_not_the_default_one(tmp_path: Path) -> None:
    found = read(tmp_path, "{model: openai/x, api_base: os.environ/BASE}")
    assert "--env BASE=VALUE" in found.missing[0]
    assert found.endpoint.urls == ()


@pytest.mark.parametrize(
    "params",
    [
        "{model: openai/x, api_base: 'http://10.0.0.1:8000/v1'}",
        "{model: hosted_vllm/x, api_base: 'http://10.0.0.1:8000/v1'}",
        "{model: ollama/x, api_base: 'http://localhost:11434'}",
    ],
)
def test_a_server_nobody_knows_needs_a_statement(tmp_path: Path, params: str) -> None:
    assert "model_info" in read(tmp_path, params).missing[0]
    info = "{domicile: {region: 'self:fra1', operate: 'DE FR', retain: nothing}}"
    found = endpoint(tmp_path, params, info)
    assert (found.provider, found.source, found.self_operated) == ("self", "self:fra1", True)
    assert (found.operate, found.retain) == (("DE", "FR"), "nothing")


def test_statements_fill_in_what_no_setting_says(tmp_path: Path) -> None:
    info = "{domicile: {sku: Standard, region: swedencentral}}"
    found = endpoint(
        tmp_path, "{model: azure/gpt-4o, api_base: 'https://a.openai.azure.com'}", info
    )
    assert (found.source, found.settings) == ("azure:swedencentral", {"sku": "Standard"})


@pytest.mark.parametrize("model", ["groq/llama", "some-name", "sagemaker/x", "'*'", "''"])
def test_other_providers_keep_their_name(tmp_path: Path, model: str) -> None:
    found = read(tmp_path, f"{{model: {model}}}")
    assert found.endpoint.kind in {"groq", "sagemaker", "unknown"}
