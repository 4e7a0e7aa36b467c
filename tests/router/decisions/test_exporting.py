"""What is inside a boundary, by host and as AWS routes."""

from __future__ import annotations

import pytest

from regions.model import Endpoint
from regions.places import PlaceError
from router.decisions.exporting import exported, hosts_of
from tests.policies.samples import loading

NOW = 1_796_000_000.0
WORLD = """\
regions: {self:fra1: {country: DE}, self:nyc1: {country: US}}
boundaries: {ours: {plus: [DE, {country: SE, until: 2026-12-31}]}}
endpoints:
  fra: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, urls: ["https://a.internal:8000", "https://b.internal"]}
  nyc: {kind: vllm, region: self:nyc1, operate: [US], retain: nothing, model: m, url: "https://c.internal"}
  found: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: m, replicas: {kubernetes: llm/large}}
  one: {kind: bedrock, source: eu-central-1, model: anthropic.claude-sonnet-4-6}
  many: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6}
"""  # noqa: E501


def test_endpoints_hosts_and_routes_of_each_boundary() -> None:
    eu, ours = exported(loading(WORLD), ["EU", "ours"], "*", NOW)
    assert eu.endpoints == ("fra", "found", "one", "many")
    assert eu.hosts == (
        "a.internal:8000",
        "b.internal",
        "bedrock-runtime.eu-central-1.amazonaws.com",
    )
    assert eu.left_out == {"found": "its hosts are found by discovery"}
    assert ours.endpoints == ("fra", "found", "one")
    assert "eu.anthropic" in str(eu.role)
    assert "eu.anthropic" not in str(ours.role)
    assert set(eu.control) == {"aws", "aws-eusc"}
    assert "eu-north-1" in str(ours.control["aws"])
    (later,) = exported(loading(WORLD), ["ours"], "*", NOW + 60 * 86_400.0)
    assert "eu-north-1" not in str(later.control["aws"])


def test_a_route_that_is_not_known_is_left_out_by_name() -> None:
    arn = "arn:aws:bedrock:eu-central-1:1:provisioned-model/x"
    text = WORLD.replace("model: anthropic.claude-sonnet-4-6", f'model: "{arn}"')
    (eu,) = exported(loading(text), ["EU"], "*", NOW)
    assert "is not known" in eu.left_out["one"]


def test_a_word_without_meaning() -> None:
    with pytest.raises(PlaceError):
        exported(loading(WORLD), ["nowhere-land"], "*", NOW)


def test_an_own_url_of_bedrock_is_its_host() -> None:
    url = "https://bedrock-runtime-fips.us-east-1.amazonaws.com"
    endpoint = Endpoint("e", "bedrock", "aws", "m", source="aws:us-east-1", urls=(url,))
    assert list(hosts_of(endpoint)) == ["bedrock-runtime-fips.us-east-1.amazonaws.com"]
