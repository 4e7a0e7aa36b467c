"""What Bedrock's provider refuses, by name, and without repeating it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import Ask, AwsKeys, Misconfigured, Provider, Target
from router.providers.bedrock import Bedrock

NOW = 1_795_000_000.0
ARN = "arn:aws:bedrock:eu-central-1:123456789012"
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}

Make = Callable[..., Endpoint]
MakeAsk = Callable[..., Ask]


@pytest.mark.parametrize("name", sorted(Bedrock.place_parameters))
def test_place_parameters_of_clients_are_refused(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys, name: str, canary: str
) -> None:
    asked = ask(**{name: canary})
    there = endpoint(allow_parameters=frozenset({name}))
    with pytest.raises(RequestError) as caught:
        bedrock.encode(asked, there, Target(credential=keys), NOW)
    assert (caught.value.code, caught.value.param) == ("parameter_changes_place", name)
    assert canary not in caught.value.message
    refusal = bedrock.refusal(asked, there)
    assert refusal is not None
    assert refusal.code == "parameter_changes_place"


def test_what_of_a_tool_can_not_be_kept_is_told_to_the_filter(
    bedrock: Provider, endpoint: Make, ask: MakeAsk
) -> None:
    """So that another endpoint of the model, which takes it, is asked."""
    schema = {"type": "object", "anyOf": [{"required": ["city"]}]}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    refusal = bedrock.refusal(ask(tools=[TOOL, tool]), endpoint())
    assert refusal is not None
    assert refusal.param == "tools.1.function.parameters.anyOf"
    assert bedrock.refusal(ask(tools=[TOOL]), endpoint()) is None


def test_an_equal_place_parameter_goes_no_further(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    there = endpoint(settings={"source": "eu-central-1"})
    request = bedrock.encode(
        ask(aws_region_name="eu-central-1"), there, Target(credential=keys), NOW
    )
    assert b"aws_region_name" not in request.body


def test_allowed_parameters_go_into_the_models_own_fields(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    there = endpoint(allow_parameters=frozenset({"anthropic_beta"}))
    request = bedrock.encode(ask(anthropic_beta=["x"]), there, Target(credential=keys), NOW)
    assert orjson.loads(request.body)["additionalModelRequestFields"] == {"anthropic_beta": ["x"]}


@pytest.mark.parametrize(
    ("model", "body", "param"),
    [
        ("eu.amazon.nova-lite-v1:0", {"tools": [TOOL], "parallel_tool_calls": False},
         "parallel_tool_calls"),
        ("eu.amazon.nova-lite-v1:0", {"reasoning_effort": "low"}, "reasoning_effort"),
        ("meta.llama3-3-70b-instruct-v1:0", {"tools": [TOOL], "tool_choice": "required"},
         "tool_choice"),
        ("deepseek.r1-v1:0", {"tools": [TOOL]}, "tools"),
        ("eu.anthropic.claude-opus-4-8", {"temperature": 0.5}, "temperature"),
        ("eu.anthropic.claude-sonnet-4-6", {"logprobs": True}, "logprobs"),
        ("eu.anthropic.claude-3-7-sonnet-20250219-v1:0",
         {"tools": [TOOL], "tool_choice": "required", "reasoning_effort": "low"}, "tool_choice"),
        (f"{ARN}:application-inference-profile/a1b2",
         {"tools": [TOOL], "parallel_tool_calls": False}, "parallel_tool_calls"),
    ],
)  # fmt: skip
def test_what_a_model_does_not_take_is_named(
    bedrock: Provider,
    endpoint: Make,
    ask: MakeAsk,
    keys: AwsKeys,
    model: str,
    body: dict[str, Any],
    param: str,
) -> None:
    with pytest.raises(RequestError) as caught:
        bedrock.encode(ask(**body), endpoint(model), Target(credential=keys), NOW)
    assert (caught.value.status, caught.value.param) == (400, param)


def test_an_opaque_profile_with_its_model_named(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    there = endpoint(
        f"{ARN}:application-inference-profile/a1b2",
        settings={
            "resolves_to": ",".join(
                f"arn:aws:bedrock:{region}::foundation-model/anthropic.claude-sonnet-4-6"
                for region in ("eu-west-1", "eu-west-3")
            )
        },
    )
    asked = ask(tools=[TOOL], parallel_tool_calls=False)
    request = bedrock.encode(asked, there, Target(credential=keys), NOW)
    assert "application-inference-profile" in request.target
    assert b"disable_parallel_tool_use" in request.body


@pytest.mark.parametrize("where", ["user", "name", "tool", "url", "arguments", "schema"])
def test_a_refusal_never_repeats_the_prompt(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys, canary: str, where: str
) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "user": {"messages": [{"role": "user", "content": canary}], "logprobs": True},
        "name": {f"{canary} {canary}": canary},
        "tool": {"tools": [{"type": "function", "function": {"name": f"{canary}!"}}]},
        "url": {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": f"https://{canary}/x"}}]}]},
        "arguments": {"tools": [TOOL], "messages": [{"role": "user", "content": "x"}, {
            "role": "assistant", "tool_calls": [{"id": canary, "type": "function",
            "function": {"name": "get_weather", "arguments": canary}}]}]},
        "schema": {"response_format": {"type": canary}},
    }  # fmt: skip
    asked = ask(**bodies[where])
    assert canary not in repr(bedrock)
    with pytest.raises(RequestError) as caught:
        bedrock.encode(asked, endpoint(), Target(credential=keys), NOW)
    error = caught.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert canary not in f"{error!r} {error} {error.message} {error.param}"


def test_the_page_names_what_bedrock_is_never_sent(
    bedrock: Provider, endpoint: Make, ask: MakeAsk
) -> None:
    """Whoever has an application that sends one of them has no fallback there."""
    page = (Path(__file__).parents[3] / "docs" / "endpoints.md").read_text()
    told = page.partition("**What it is never sent.**")[2].partition("is not sent there")[0]
    given: dict[str, object] = {
        "user": "u", "safety_identifier": "s", "metadata": {"a": "b"}, "seed": 1, "n": 2,
        "logprobs": True, "logit_bias": {"1": 1}, "frequency_penalty": 0.5,
        "presence_penalty": 0.5, "prompt_cache_key": "k",
    }  # fmt: skip
    assert set(re.findall(r"`(\w+)`", told)) == set(given)
    for name, value in given.items():
        refusal = bedrock.refusal(ask(**{name: value}), endpoint())
        assert refusal is not None, name
        assert (refusal.code, refusal.param) == ("parameter_not_allowed", name)


def test_what_an_answer_can_do_without_is_left_out_where_the_operator_says_so(
    bedrock: Provider, endpoint: Make, ask: MakeAsk, keys: AwsKeys
) -> None:
    """Else an application that sends `user` has no fallback there. See BerriAI/litellm's
    `drop_params`, which leaves out whatever a model does not take."""
    there = endpoint(settings={"leave_out": "user, seed frequency_penalty"})
    bedrock.check(there)
    plain = bedrock.encode(ask(), endpoint(), Target(credential=keys), NOW).body
    asked = ask(user="u", seed=7, frequency_penalty=0.5)
    assert bedrock.refusal(asked, there) is None
    assert bedrock.encode(asked, there, Target(credential=keys), NOW).body == plain
    more = bedrock.refusal(ask(user="u", presence_penalty=0.5), there)
    assert more is not None
    assert more.param == "presence_penalty", "each is named by the operator, or refused"


@pytest.mark.parametrize("name", ["n", "tools", "response_format", "logit_bias", "messages", "sed"])
def test_what_makes_another_answer_is_never_left_out(
    bedrock: Provider, endpoint: Make, name: str
) -> None:
    with pytest.raises(Misconfigured, match=f"`{name}` can't be left out: .* takes .*seed"):
        bedrock.check(endpoint(settings={"leave_out": f"user {name}"}))
