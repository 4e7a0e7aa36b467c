"""Policies to test with: the example of the design, and short ways to load others."""

from __future__ import annotations

from functools import cache

import pytest

from policies.attributes import Attributes, Supplied, gather
from policies.engine import Ask
from policies.gathered import PolicyFile
from policies.loader import Loaded, load
from policies.model import Policy
from regions.document import DocumentErrors

EXAMPLE = """\
regions:                                  # only your own places
  self:fra1: {country: DE, lat: 50.11, lon: 8.68}
apps: {crm: {trusted: [data_class]}}
tenants:
  clinic: {grant: {process: EU, retain: EU}, attributes: {sector: health}, models: [assistant],
           limits: {requests: 600/min, tokens: 400k/min, concurrency: 64}, weight: 2}
models:
  assistant: {grade: observe, tiers: {small: [fra-small], large: [fra-large, sonnet-eu]}}
endpoints:
  fra-small: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: Qwen/Qwen3-8B,
              replicas: {dns: small.fra1.internal:8000}, context: 32768, features: [tools, json_schema]}
  fra-large: {kind: vllm, region: self:fra1, operate: [DE], retain: nothing, model: meta-llama/Llama-3.3-70B-Instruct, replicas: {kubernetes: llm/large}}
  sonnet-eu: {kind: bedrock, source: eu-central-1, model: eu.anthropic.claude-sonnet-4-6, credentials: instance-role,
              retention_mode: none,       # checked by `check --live`
              assurances: [{name: dpa, evidence: contracts/aws-dpa.pdf, approved_by: dpo, until: 2027-12-31}]}
attributes: {data_class: {values: [public, internal, health], default: internal}}
boundaries: {eu-uk: {plus: [EU, {country: GB, until: 2031-12-27}]}}
rules:
  - {name: health-in-eu, when: {data_class: health}, process_within: EU, retain_within: EU, because: "GDPR Art. 9, 44"}
assert: [{never: {tenant: clinic, processed_outside: EU}}]
ensure: [{for: {tenant: clinic}, survives: region}]
"""  # noqa: E501 - printed so in the design

NOW = 1_800_000_000.0
TENANT = "tenants: {acme: {grant: {process: worldwide}}}\n"


@cache
def example() -> Loaded:
    return load([PolicyFile("main.yaml", EXAMPLE.encode())])


def loaded(baseline: str, rules: str | None = None) -> Policy:
    """The policy of one baseline file, and perhaps one rule file."""
    more = [] if rules is None else [PolicyFile("rules.yaml", rules.encode())]
    return load([PolicyFile("main.yaml", baseline.encode())], more).policy


def loading(baseline: str) -> Loaded:
    """The same with its catalog."""
    return load([PolicyFile("main.yaml", baseline.encode())])


def errors(baseline: str, rules: str | None = None) -> list[str]:
    """What loading says is wrong, one message each, with its place."""
    with pytest.raises(DocumentErrors) as caught:
        loaded(baseline, rules)
    return [str(error) for error in caught.value.errors]


def said(policy: Policy, app: str | None = None, **headers: str) -> Attributes:
    """Attributes of a request with these headers (`a="x,y"`)."""
    supplied = [Supplied(n, tuple(v.split(",")), "header") for n, v in headers.items()]
    return gather(policy.declared, supplied, policy.trusted(app))


def ask(policy: Policy, tenant: str = "acme", app: str | None = None, **headers: str) -> Ask:
    return Ask(tenant, app, said(policy, app, **headers))
