"""Every field of a chat request is known or refused by name, and must arrive."""

from collections.abc import Mapping
from typing import Any

import pytest

from router.errors import RequestError
from router.providers.converse import JSON_TOOL, Translated
from router.providers.converse_ask import Wanted, lost, refused, unsupported, wanted

BODY: Mapping[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
FORCED = {"type": "function", "function": {"name": "f"}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}


def parameters(**given: Any) -> Mapping[str, object]:
    return wanted({**BODY, **given}, frozenset()).parameters


@pytest.mark.parametrize(
    ("given", "parameters_"),
    [
        ({}, {}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"max_completion_tokens": 5, "max_tokens": 5}, {"max_tokens": 5}),
        ({"stop": "x"}, {"stop": ["x"]}),
        ({"stop": ["x", "y"]}, {"stop": ["x", "y"]}),
        ({"stop": ""}, {}),
        ({"n": 1, "logprobs": False, "store": False, "presence_penalty": 0.0}, {}),
        ({"seed": None, "user": None, "functions": None}, {}),
        ({"tools": [], "tool_choice": "auto"}, {}),
        ({"tools": [TOOL], "tool_choice": "auto"}, {"tools": [TOOL]}),
        ({"tools": [TOOL], "tool_choice": "required"},
         {"tools": [TOOL], "tool_choice": "required"}),
        ({"tools": [TOOL], "tool_choice": FORCED}, {"tools": [TOOL], "tool_choice": FORCED}),
        ({"tools": [TOOL], "parallel_tool_calls": True}, {"tools": [TOOL]}),
        ({"tools": [TOOL], "parallel_tool_calls": False},
         {"tools": [TOOL], "parallel_tool_calls": False}),
        ({"parallel_tool_calls": False}, {}),
        ({"response_format": {"type": "text"}}, {}),
        ({"response_format": SCHEMA}, {"response_format": SCHEMA}),
        ({"reasoning_effort": "low", "top_k": 3}, {"reasoning_effort": "low", "top_k": 3}),
    ],
)  # fmt: skip
def test_what_is_asked(given: dict[str, Any], parameters_: dict[str, Any]) -> None:
    assert parameters(**given) == parameters_


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"seed": 1}, "seed"),
        ({"n": 2}, "n"),
        ({"n": True}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"logit_bias": {"1": 2}}, "logit_bias"),
        ({"user": "u"}, "user"),
        ({"store": True}, "store"),
        ({"metadata": {"a": "b"}}, "metadata"),
        ({"frequency_penalty": 0.1}, "frequency_penalty"),
        ({"service_tier": "priority"}, "service_tier"),
        ({"functions": []}, "functions"),
        ({"stream_options": {"include_usage": True, "other": 1}}, "stream_options.other"),
        ({"stream_options": [1]}, "stream_options"),
        ({"max_tokens": 5, "max_completion_tokens": 6}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": False}, "top_p"),
        ({"stop": ["", "x"]}, "stop"),
        ({"stop": 3}, "stop"),
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"reasoning_effort": []}, "reasoning_effort"),
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
        ({"tools": [{"systemTool": {"name": "nova_grounding"}}]}, "tools.0.type"),
        ({"tools": [{**TOOL, "cache_control": {}}]}, "tools.0.cache_control"),
        ({"tools": [{"type": "function", "function": {"name": "9f"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a.b"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": JSON_TOOL}}]},
         "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "x": 1}}]},
         "tools.0.function.x"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]},
         "tools.0.function.parameters"),
        ({"tools": [{"type": "function", "function": {"name": "f", "description": 3}}]},
         "tools.0.function.description"),
        ({"tools": [{"type": "function", "function":
          {"name": "f", "parameters": {"oneOf": [{"required": ["a"]}]}}}]},
         "tools.0.function.parameters.oneOf"),
        ({"tools": [TOOL], "tool_choice": "none"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "allowed_tools"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
         "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "parallel_tool_calls": "no"}, "parallel_tool_calls"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
    ],
)  # fmt: skip
def test_what_can_not_be_asked_is_named(given: dict[str, Any], name: str) -> None:
    with pytest.raises(RequestError) as caught:
        parameters(**given)
    assert (caught.value.param, caught.value.code) == (name, "parameter_not_allowed")
    assert caught.value.status == 400


def test_the_operator_may_allow_more() -> None:
    asked = wanted({**BODY, "min_p": 0.1}, frozenset({"min_p"}))
    assert (asked.parameters, asked.extra) == ({}, {"min_p": 0.1})


def test_odd_names_are_not_repeated(canary: str) -> None:
    error = refused(f"{canary} with a space", "x")
    assert canary not in f"{error.message} {error.param}"


def test_what_a_model_does_not_take() -> None:
    asked = Wanted([], {"temperature": 1, "tools": []}, {})
    error = unsupported(asked, frozenset({"temperature"}))
    assert error is not None
    assert error.param == "tools"
    assert unsupported(asked, frozenset({"temperature", "tools"})) is None


def judged(
    parameters_: Mapping[str, Any], body: dict[str, Any], json_tool: bool = False
) -> str | None:
    error = lost(Wanted([], parameters_, {}), Translated({"messages": [], **body}, json_tool))
    return None if error is None else (error.param or error.code)


SPEC = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
JSON_SPEC = {"toolSpec": {"name": JSON_TOOL}}
EITHER = {"type": "function", "function": {"name": "f", "parameters": {"anyOf": [{}]}}}
STRICT = {"type": "function", "function": {"name": "f", "strict": True}}


@pytest.mark.parametrize(
    ("given", "body", "name"),
    [
        ({}, {}, None),
        ({}, {"region": "us-east-1"}, "internal"),
        ({}, {"additionalModelRequestFields": {"api_base": "x"}}, "internal"),
        ({"max_tokens": 3}, {"inferenceConfig": {"maxTokens": 3}}, None),
        ({"max_tokens": 3}, {"inferenceConfig": {"maxTokens": 16}}, "max_tokens"),
        ({}, {"inferenceConfig": {"maxTokens": 5120}}, None),
        ({"temperature": 1}, {}, None),
        ({"temperature": 0}, {}, "temperature"),
        ({"top_p": 0.5}, {"inferenceConfig": {}}, "top_p"),
        ({"stop": ["x"]}, {"inferenceConfig": {}}, "stop"),
        ({"tools": [TOOL]}, {"toolConfig": {"tools": [SPEC]}}, None),
        ({"tools": [TOOL]}, {}, "tools"),
        ({"tools": [TOOL]}, {"toolConfig": {"tools": [SPEC, SPEC]}}, "tools"),
        ({"tools": [TOOL]}, {"toolConfig": {"tools": [{"toolSpec": {"name": "g"}}]}}, "tools"),
        ({"tools": [STRICT]}, {"toolConfig": {"tools": [SPEC]}}, "tools.0.function.strict"),
        ({"tools": [EITHER]}, {"toolConfig": {"tools": [SPEC]}},
         "tools.0.function.parameters.anyOf"),
        ({"tools": [TOOL], "tool_choice": "required"},
         {"toolConfig": {"tools": [SPEC], "toolChoice": {"any": {}}}}, None),
        ({"tools": [TOOL], "tool_choice": "required"},
         {"toolConfig": {"tools": [SPEC], "toolChoice": {"auto": {}}}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": FORCED},
         {"toolConfig": {"tools": [SPEC], "toolChoice": {"tool": {"name": "f"}}}}, None),
        ({"tools": [TOOL], "tool_choice": FORCED}, {"toolConfig": {"tools": [SPEC]}},
         "tool_choice"),
        ({"tools": [TOOL], "parallel_tool_calls": False}, {"toolConfig": {"tools": [SPEC]}},
         "parallel_tool_calls"),
        ({"tools": [TOOL], "parallel_tool_calls": False},
         {"toolConfig": {"tools": [SPEC]}, "additionalModelRequestFields":
          {"tool_choice": {"disable_parallel_tool_use": True}}}, None),
        ({"reasoning_effort": "low"}, {}, "reasoning_effort"),
        ({"reasoning_effort": "none"}, {}, None),
        ({"reasoning_effort": "low"}, {"additionalModelRequestFields": {"thinking": {}}}, None),
        ({"top_k": 3}, {}, "top_k"),
        ({"top_k": 3}, {"additionalModelRequestFields": {"top_k": 3}}, None),
        ({"top_k": 3}, {"additionalModelRequestFields": {"inferenceConfig": {"topK": 3}}}, None),
        ({"response_format": SCHEMA}, {}, "response_format"),
        ({"response_format": SCHEMA}, {"outputConfig": {}}, None),
    ],
)  # fmt: skip
def test_what_did_not_arrive_is_named(
    given: dict[str, Any], body: dict[str, Any], name: str | None
) -> None:
    assert judged(given, body) == name


def test_a_schema_by_tool_only_where_it_binds() -> None:
    forced = {"toolConfig": {"tools": [JSON_SPEC], "toolChoice": {"tool": {"name": JSON_TOOL}}}}
    loose = {"toolConfig": {"tools": [JSON_SPEC]}}
    mixed = {"toolConfig": {**forced["toolConfig"], "tools": [SPEC, JSON_SPEC]}}
    strict = {**SCHEMA, "json_schema": {"schema": {}, "strict": True}}
    assert judged({"response_format": SCHEMA}, forced, True) is None
    assert judged({"response_format": SCHEMA}, loose, True) == "response_format"
    assert judged({"response_format": strict}, forced, True) == "response_format"
    both = {"response_format": SCHEMA, "tools": [TOOL]}
    assert judged(both, mixed, True) == "response_format"
