import pytest
from pydantic import ValidationError

from regions.document import DocumentErrors, parse_as
from regions.facts import BedrockFile, OffersFile, Promise, bedrock_facts

BEDROCK = """
vendor: bedrock
checked_on: 2026-11-29
sources: {profiles: p, gov: g, guardrails: gr}
prefixes: eu us-gov global
vendors: anthropic
geographic:
  - {profiles: eu.a.b eu.a.c, routes: [{from: x y, to: x y z}, {from: z, to: z}]}
  - {profiles: us-gov.a.b, source: gov, routes: [{from: g, to: g h}]}
global: [{profiles: global.a.b, from: x}]
guardrails: [{profiles: eu.guardrail, routes: [{from: x, to: x y}]}]
in_region: [{models: a.b a.c, runtime: x, mantle: y, apis: messages}]
legacy: a.c
"""


def test_profiles_are_spread_over_their_routes() -> None:
    known = bedrock_facts(parse_as(BEDROCK, "f", BedrockFile)[1])
    assert dict(known.profiles["eu.a.c"].routes) == {
        "x": ("x", "y", "z"), "y": ("x", "y", "z"), "z": ("z",)}  # fmt: skip
    assert [known.profiles[p].source for p in ("eu.a.b", "us-gov.a.b")] == ["p", "g"]
    assert known.guardrails["eu.guardrail"].source == "gr"
    assert known.global_sources == {"global.a.b": {"x"}}
    assert known.models["a.b"].runtime == {"x"}
    assert known.models["a.c"].apis == ("messages",)


def test_a_promise_says_something() -> None:
    with pytest.raises(ValidationError, match="a promise without any place"):
        Promise()


def test_unknown_keys_in_data_are_refused_with_their_place() -> None:
    text = (
        "vendor: v\npartition: v\nchecked_on: 2026-11-29\nsource: s\noffers:\n  a: {proces: {}}\n"
    )
    with pytest.raises(DocumentErrors) as caught:
        parse_as(text, "v.yaml", OffersFile)
    assert str(caught.value).splitlines()[0].startswith("v.yaml:6:")
    assert "unknown key `offers.a.proces`; did you mean `process`?" in str(caught.value)
