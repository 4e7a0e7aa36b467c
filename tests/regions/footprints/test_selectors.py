import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.selectors import SelectorError, parse_selector
from regions.model import Endpoint

ARN = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc"


@pytest.mark.parametrize(
    ("text", "kind", "model", "source", "urls", "settings"),
    [
        ("bedrock:eu.a.b-v1:0@eu-west-2", "bedrock", "eu.a.b-v1:0", "aws:eu-west-2", (), {}),
        ("bedrock:a.b@aws:eu-west-2", "bedrock", "a.b", "aws:eu-west-2", (), {}),
        (f"bedrock:{ARN}", "bedrock", ARN, "aws:eu-west-1", (), {}),
        (f"bedrock:{ARN}@us-east-1", "bedrock", ARN, "aws:us-east-1", (), {}),
        ("bedrock-mantle:a.b@eu-west-1", "bedrock-mantle", "a.b", "aws:eu-west-1", (), {}),
        ("bedrock:a.b@eu-west-1?retention_mode=none&guardrail_profile=none", "bedrock", "a.b",
         "aws:eu-west-1", (), {"retention_mode": "none", "guardrail_profile": "none"}),
        ("self:fra1", "self", "", "self:fra1", (), {}),
        ("aws:us-gov-west-1", "region", "", "aws:us-gov-west-1", (), {}),
        ("gcp:europe-west4", "region", "", "gcp:europe-west4", (), {}),
        ("azure:swedencentral", "region", "", "azure:swedencentral", (), {}),
        ("azure:Standard@swedencentral", "azure", "", "azure:swedencentral", (),
         {"sku": "Standard"}),
        ("azure:Standard@eastus?model=claude-x&hosting=azure", "azure", "claude-x",
         "azure:eastus", (), {"sku": "Standard", "hosting": "azure"}),
        ("azure:x.openai.azure.com", "azure", "", None, ("x.openai.azure.com",), {}),
        ("vertex:gemini@eu", "vertex", "gemini", None, (), {"location": "eu"}),
        ("vertex:eu", "vertex", "", None, (), {"location": "eu"}),
        ("vertex:g@aiplatform.us.rep.googleapis.com", "vertex", "g", None,
         ("aiplatform.us.rep.googleapis.com",), {"location": "us"}),
        ("vertex:g@aiplatform.googleapis.com", "vertex", "g", None,
         ("aiplatform.googleapis.com",), {"location": "global"}),
        ("vertex:g@europe-west4-aiplatform.googleapis.com", "vertex", "g", None,
         ("europe-west4-aiplatform.googleapis.com",), {"location": "europe-west4"}),
        ("gemini:gemini-3", "gemini", "gemini-3", None, (), {}),
        ("openai:eu", "openai", "", None, ("eu.api.openai.com",), {}),
        ("openai:gpt-5@eu.api.openai.com", "openai", "gpt-5", None, ("eu.api.openai.com",), {}),
        ("mistral:eu", "mistral", "", None, ("api.eu.mistral.ai",), {}),
        ("openrouter:eu", "openrouter", "", None, ("eu.openrouter.ai",), {}),
        ("cohere:vault/eu", "cohere", "", None, ("api.cohere.com",), {"vault": "eu"}),
        ("anthropic:us", "anthropic", "", None, (), {"inference_geo": "us"}),
        ("anthropic:claude@us", "anthropic", "claude", None, (), {"inference_geo": "us"}),
        ("anthropic:omitted", "anthropic", "", None, (), {}),
        ("anthropic-aws:us@eu-central-1", "anthropic-aws", "", "aws:eu-central-1", (),
         {"inference_geo": "us"}),
        ("anthropic-aws:omitted@eu-central-1", "anthropic-aws", "", "aws:eu-central-1", (), {}),
        ("databricks:off", "databricks", "", None, (), {"cross_geo": "off"}),
        ("snowflake:DISABLED@eu-central-1", "snowflake", "", "aws:eu-central-1", (),
         {"cross_region": "DISABLED"}),
    ],
)  # fmt: skip
def test_selectors(
    text: str, kind: str, model: str, source: str | None, urls: tuple[str, ...],
    settings: dict[str, str],
) -> None:  # fmt: skip
    found = parse_selector(text)
    assert (found.kind, found.model, found.source, found.urls) == (kind, model, source, urls)
    assert dict(found.settings) == settings
    assert found.name == text


def test_operate_and_retain_are_the_endpoint_s_own() -> None:
    found = parse_selector("self:fra1?operate=DE,FR&retain=nothing")
    assert found == Endpoint(
        "self:fra1?operate=DE,FR&retain=nothing", "self", "self", "", "self:fra1",
        operate=("DE", "FR"), retain="nothing", self_operated=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is not a selector"),
        ("bedrock", "is not a selector"),
        ("bedrock:", "is not a selector"),
        ("bedrok:a@b", "did you mean `bedrock:`?"),
        ("ollama:x", "kinds: anthropic, anthropic-aws, aws"),
        ("bedrock:eu.a.b", "has no source region; write `bedrock:MODEL@eu-central-1`"),
        (f"bedrock:{ARN.replace('eu-west-1', '')}", "has no source region"),
        ("anthropic-aws:us", "has no region; write `anthropic-aws:GEO@eu-central-1`"),
        ("bedrock:a.b@eu-west-1?x", "settings `?x` can't be read"),
        ("bedrock:a.b@eu-west-1?x=1&x=2", "can't be read"),
    ],
)
def test_what_is_not_a_selector(text: str, expected: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert expected in str(caught.value)


@given(kind=st.sampled_from(["bedrock", "azure", "vertex", "openai", "self", "aws", "snowflake"]),
       rest=st.text(max_size=30))  # fmt: skip
def test_any_text_is_a_selector_with_a_footprint_or_an_error(
    catalog: Catalog, now: float, kind: str, rest: str
) -> None:
    try:
        endpoint = parse_selector(f"{kind}:{rest}")
    except SelectorError:
        return
    assert footprint(endpoint, PLAIN_CALL, catalog, now).process
