import pytest

from regions.model import Price
from tests.policies.samples import errors, loaded


def one(text: str) -> str:
    return f"regions: {{self:fra1: {{country: DE}}}}\nendpoints: {{e: {{{text}}}}}"


@pytest.mark.parametrize(
    ("text", "provider", "source"),
    [
        ("kind: vllm, model: m, region: self:fra1", "self", "self:fra1"),
        ("kind: openai, model: m, region: self:fra1", "self", "self:fra1"),
        ("kind: bedrock, model: m, source: eu-west-1", "aws", "aws:eu-west-1"),
        ("kind: vertex, model: m, source: europe-west4", "gcp", "gcp:europe-west4"),
        ("kind: azure, model: m, source: swedencentral", "azure", "azure:swedencentral"),
        ("kind: openai, model: m, url: https://eu.api.openai.com/v1", "openai", None),
    ],
)
def test_providers_and_sources(text: str, provider: str, source: str | None) -> None:
    endpoint = loaded(one(text)).endpoints["e"]
    assert (endpoint.provider, endpoint.source) == (provider, source)
    assert endpoint.self_operated == (provider == "self")


def test_everything_an_endpoint_says() -> None:
    endpoint = loaded(
        one(
            "kind: vllm, model: m, region: self:fra1, urls: [http://a:1, http://b:1],"
            " context: 4096, features: [tools], surfaces: [chat.completions, messages],"
            " price: {input: 0.5}, operate: DE, retain: nothing, allow_parameters: [x]"
        )
    ).endpoints["e"]
    assert endpoint.urls == ("http://a:1", "http://b:1")
    assert endpoint.price == Price(0.5, None)
    assert endpoint.operate == ("DE",)
    assert endpoint.surfaces == {"chat.completions", "messages"}
    assert endpoint.context_tokens == 4096


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("kind: vllm", False),
        ("kind: vllm, cache: tenant", True),
        ("kind: vllm, cache: shared", False),
        ("kind: openai", False),
        ("kind: openai, cache: tenant", True),
    ],
)
def test_whose_prompts_are_kept_in_one_cache(text: str, apart: bool) -> None:
    assert loaded(one(f"{text}, model: m, region: self:fra1")).endpoints["e"].cache_apart is apart


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind: vlm, model: m", "did you mean `vllm`?"),
        ("kind: region, model: m", "kind `region` is not known"),
        ("kind: vllm, model: m", "needs its `region`"),
        ("kind: vllm, model: m, region: self:fra2", "did you mean `self:fra1`?"),
        ("kind: bedrock, model: m, source: eu-centrall-1", "did you mean `aws:eu-central-1`?"),
        ("kind: bedrock, model: m, source: eu-west-1, region: aws:eu-west-1", "keep one"),
        ("kind: vllm, model: m, region: self:fra1, replcas: x", "did you mean `replicas`?"),
        ("kind: bedrock, model: m, source: eu-west-1, guardrail: [x]", "is text"),
        ("kind: vllm, model: m, region: self:fra1, operate: [UK]", "`UK` is not an ISO"),
        ("kind: vllm, region: self:fra1", "is missing"),
        ("kind: vllm, model: m, region: self:fra1, cache: none", "'shared' or 'tenant'"),
        ("kind: llamacpp, model: m, region: self:fra1, cache: tenant", "one cache for whoever"),
        ("kind: bedrock, model: m, source: eu-west-1, cache: tenant", "of servers of your own"),
        ("kind: openai, model: m, url: https://a.example, cache: shared", "of servers of your"),
        ("kind: vllm, model: m, region: self:fra1, context: many", "integer"),
        ("kind: vllm, model: m, region: self:fra1, price: {input: 1e308}", "1000000"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    found = errors(one(text))
    assert any(message in error for error in found), found
