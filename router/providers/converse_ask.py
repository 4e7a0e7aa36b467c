"""What of an OpenAI chat request Bedrock can be asked, and whether it arrived.

Nothing is dropped in silence. Before the translation every field is known or refused by name;
after it the translated body is compared with what was asked, because the translation library
leaves out or changes what a model does not take.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from router.errors import RequestError
from router.providers.converse import JSON_TOOL, Translated
from router.providers.converse_messages import messages_of
from router.providers.converse_schemas import inside, unkeepable, unkept

_HANDLED = frozenset(
    {
        "model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens",
        "temperature", "top_p", "top_k", "stop", "tools", "tool_choice", "parallel_tool_calls",
        "response_format", "reasoning_effort",
    }
)  # fmt: skip

# Values that ask for nothing beyond what happens anyway.
_NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "store": (False,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "metadata": ({},),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
}
# What an answer can do without; Converse has no word for it.
SPARED = frozenset(
    {
        "user", "safety_identifier", "metadata", "seed", "frequency_penalty", "presence_penalty",
        "prompt_cache_key", "verbosity",
    }
)  # fmt: skip
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_TOOL_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")  # hardly a word of a prompt
_SENT = frozenset(
    {
        "messages", "system", "inferenceConfig", "toolConfig", "outputConfig",
        "additionalModelRequestFields", "additionalModelResponseFieldPaths",
    }
)  # fmt: skip
_REASONING = frozenset({"thinking", "reasoning", "reasoningConfig", "reasoning_effort"})
_EXTRA = _REASONING | {"output_config", "anthropic_beta", "tool_choice", "top_k", "inferenceConfig"}


def refused(name: str, why: str) -> RequestError:
    """The refusal of one field, `why` being our own words after its name."""
    shown = name if all(_PLAIN.fullmatch(p) or p.isdigit() for p in name.split(".")) else "a field"
    return RequestError("parameter_not_allowed", f"`{shown}` {why}", param=shown)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A checked request: messages and parameters to translate, and what must come out.

    `extra` are the parameters that the operator allowed beyond the known ones.
    """

    messages: Sequence[Mapping[str, object]]
    parameters: Mapping[str, object]
    extra: Mapping[str, object]


def wanted(body: Mapping[str, object], allowed: frozenset[str]) -> Wanted:
    """Check a body field by field; `allowed` are further parameters the operator permits.

    Raises:
        RequestError: names the field.
    """
    given = {k: v for k, v in body.items() if v is not None}
    extra: dict[str, object] = {}
    for name, value in given.items():
        if name in _HANDLED or _is_neutral(name, value):
            continue
        if name not in allowed:
            raise refused(name, "can't be expressed for this model's provider; leave it out")
        extra[name] = value
    _check_stream_options(given.get("stream_options"))
    tools = _tools(given.get("tools"))
    parameters: dict[str, object] = {**_sampling(given), **_reasoning(given)}
    if tools:
        parameters["tools"] = tools
    parameters.update(_tool_use(given, tools))
    parameters.update(_format(given.get("response_format"), tools))
    return Wanted(messages_of(given.get("messages"), tools_given=bool(tools)), parameters, extra)


def _is_neutral(name: str, value: object) -> bool:
    return any(
        (value == neutral and type(value) is type(neutral)) or _zero(value, neutral)
        for neutral in _NEUTRAL.get(name, ())
    )


def _zero(value: object, neutral: object) -> bool:
    return neutral == 0 and type(neutral) is int and type(value) is float and value == 0


def _check_stream_options(options: object) -> None:
    if options is None:
        return
    if not isinstance(options, Mapping):
        raise refused("stream_options", "must be an object")
    for name, value in options.items():
        if not (name == "include_usage" and isinstance(value, bool)) and value:
            raise refused(f"stream_options.{name}", "can't be expressed here; leave it out")


def _sampling(given: Mapping[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    limits = {
        given[n]
        for n in ("max_tokens", "max_completion_tokens")
        if n in given and isinstance(given[n], int)
    }
    for name in ("max_tokens", "max_completion_tokens", "top_k"):
        value = given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise refused(name, "must be a whole number")
    if len(limits) > 1:
        raise refused("max_tokens", "differs from `max_completion_tokens`; send one of them")
    if limits:
        found["max_tokens"] = limits.pop()
    for name in ("temperature", "top_p"):
        value = given.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refused(name, "must be a number")
        found[name] = value
    if "top_k" in given:
        found["top_k"] = given["top_k"]
    stop = given.get("stop")
    if stop:
        found["stop"] = _stop(stop)
    return found


def _stop(stop: object) -> list[str]:
    words = [stop] if isinstance(stop, str) else stop
    if not isinstance(words, list) or not all(isinstance(w, str) and w for w in words):
        raise refused("stop", "must be text or a list of texts, none of them empty")
    return words


def _reasoning(given: Mapping[str, object]) -> dict[str, object]:
    effort = given.get("reasoning_effort")
    if effort is None:
        return {}
    if effort not in _EFFORTS:
        raise refused("reasoning_effort", f"must be one of {', '.join(_EFFORTS)}")
    return {"reasoning_effort": effort}


def _tools(tools: object) -> list[Mapping[str, object]]:
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise refused("tools", "must be a list")
    names = [_tool(f"tools.{i}", tool) for i, tool in enumerate(tools)]
    if len(set(names)) != len(names):
        raise refused("tools", "holds one name twice")
    return tools


def _tool(at: str, tool: object) -> str:
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        raise refused(f"{at}.type", "must be `function`: hosted tools are not available here")
    for key in tool:
        if key not in ("type", "function"):
            raise refused(f"{at}.{key}", "can't be expressed here; leave it out")
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise refused(f"{at}.function.name", "is missing")
    if not _TOOL_NAME.fullmatch(name) or name == JSON_TOOL:
        raise refused(
            f"{at}.function.name",
            "must start with a letter and hold letters, digits, `_`, `-` only, 64 at most",
        )
    for key, value in function.items():
        if key not in ("name", "description", "parameters", "strict") and value is not None:
            raise refused(f"{at}.function.{key}", "can't be expressed here; leave it out")
    if not isinstance(function.get("description", ""), str | None):
        raise refused(f"{at}.function.description", "must be text")
    schema = function.get("parameters")
    if schema is not None and not isinstance(schema, Mapping):
        raise refused(f"{at}.function.parameters", "must be a JSON schema")
    if schema is not None and (found := unkeepable(schema)) is not None:
        raise refused(f"{at}.function.parameters{found[0]}", found[1])
    return name


def _tool_use(given: Mapping[str, object], tools: list[Mapping[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    choice = given.get("tool_choice")
    if choice is not None and choice != "auto" and not (choice == "none" and not tools):
        found["tool_choice"] = _choice(choice, tools)
    parallel = given.get("parallel_tool_calls")
    if parallel is not None and not isinstance(parallel, bool):
        raise refused("parallel_tool_calls", "must be true or false")
    if parallel is False and tools:
        found["parallel_tool_calls"] = False
    return found


def _choice(choice: object, tools: list[Mapping[str, object]]) -> object:
    if choice == "none":
        raise refused("tool_choice", "can't be `none` here; leave out `tools` and it")
    if not tools:
        raise refused("tool_choice", "needs `tools`")
    if choice == "required":
        return choice
    if isinstance(choice, Mapping) and choice.get("type") == "function" and len(choice) == 2:
        function = choice.get("function")
        if isinstance(function, Mapping) and function.get("name") in _names(tools):
            return {"type": "function", "function": {"name": function["name"]}}
    raise refused("tool_choice", "must be `auto`, `required` or one function out of `tools`")


def _names(tools: Sequence[Mapping[str, object]]) -> list[str]:
    functions = [tool.get("function") for tool in tools]
    return [str(f.get("name")) for f in functions if isinstance(f, Mapping)]


def _format(value: object, tools: list[Mapping[str, object]]) -> dict[str, object]:
    if value is None:
        return {}
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "text":
        return {}
    if not isinstance(value, Mapping) or kind != "json_schema":
        raise refused("response_format", "must be of type `text` or `json_schema` here")
    named = value.get("json_schema")
    if not isinstance(named, Mapping) or not isinstance(named.get("schema"), Mapping):
        raise refused("response_format", "needs `json_schema.schema`")
    return {"response_format": value}


def unsupported(asked: Wanted, supported: frozenset[str]) -> RequestError | None:
    """The first parameter that the model is known not to take."""
    for name in asked.parameters:
        if name not in supported:
            return refused(name, "is not taken by this model; leave it out")
    return None


def lost(asked: Wanted, made: Translated) -> RequestError | None:
    """The first field that did not arrive in the translated body as it was asked."""
    unknown = made.body.keys() - _SENT
    fields = inside(made.body, "additionalModelRequestFields")
    if unknown or fields.keys() - _EXTRA:
        return RequestError("internal", "the translation made a field that is not known")
    return (
        _lost_inference(asked, made)
        or _lost_tools(asked, made)
        or _lost_choice(asked, made)
        or _lost_extra(asked, made, fields)
    )


def _lost_inference(asked: Wanted, made: Translated) -> RequestError | None:
    sent = inside(made.body, "inferenceConfig")
    for name, there in (
        ("max_tokens", "maxTokens"),
        ("temperature", "temperature"),
        ("top_p", "topP"),
        ("stop", "stopSequences"),
    ):
        value = asked.parameters.get(name)
        if value is None or sent.get(there) == value:
            continue
        if name in ("temperature", "top_p") and value == 1 and there not in sent:
            continue  # one is what the model does without it
        return refused(name, "is not taken by this model with this value; change or leave it out")
    return None


def _lost_tools(asked: Wanted, made: Translated) -> RequestError | None:
    tools = asked.parameters.get("tools")
    given = tools if isinstance(tools, list) else []
    sent = inside(made.body, "toolConfig").get("tools")
    specs = [inside(tool, "toolSpec") for tool in sent] if isinstance(sent, list) else []
    names = [spec.get("name") for spec in specs]
    if names != _names(given) + ([JSON_TOOL] if made.json_tool else []):
        return refused("tools", "are not taken by this model; ask another one")
    for index, (tool, spec) in enumerate(zip(given, specs, strict=False)):
        if inside(tool, "function").get("strict") is True and spec.get("strict") is not True:
            return refused(
                f"tools.{index}.function.strict", "can't be kept by this model; leave it out"
            )
        schema = inside(tool, "function", "parameters")
        if (found := unkept(schema, inside(spec, "inputSchema", "json"))) is not None:
            place, why = found
            return refused(f"tools.{index}.function.parameters{place}", why)
    return None


def _lost_choice(asked: Wanted, made: Translated) -> RequestError | None:
    config = inside(made.body, "toolConfig")
    choice = asked.parameters.get("tool_choice")
    sent = config.get("toolChoice")
    if made.json_tool:
        schema = inside(asked.parameters, "response_format", "json_schema")
        forced = sent == {"tool": {"name": JSON_TOOL}}
        if not forced or "tools" in asked.parameters or schema.get("strict") is True:
            return refused(
                "response_format", "can't be kept by this model as it was asked; leave it out"
            )
        return None
    if choice is not None and sent != _expected(choice):
        return refused("tool_choice", "can't be kept by this model with what else was asked")
    if asked.parameters.get("parallel_tool_calls") is False:
        inner = inside(made.body, "additionalModelRequestFields", "tool_choice")
        if inner.get("disable_parallel_tool_use") is not True:
            return refused("parallel_tool_calls", "can't be false for this model; leave it out")
    return None


def _expected(choice: object) -> object:
    if isinstance(choice, Mapping):
        return {"tool": {"name": inside(choice, "function").get("name")}}
    return {"any": {}}


def _lost_extra(
    asked: Wanted, made: Translated, fields: Mapping[str, object]
) -> RequestError | None:
    effort = asked.parameters.get("reasoning_effort")
    if effort not in (None, "none") and not _REASONING & fields.keys():
        return refused("reasoning_effort", "is not taken by this model; leave it out")
    top_k = asked.parameters.get("top_k")
    nova = inside(fields, "inferenceConfig").get("topK")
    if top_k is not None and top_k not in (fields.get("top_k"), nova):
        return refused("top_k", "is not taken by this model; leave it out")
    native = made.json_tool or "outputConfig" in made.body
    if "response_format" in asked.parameters and not native:
        return refused("response_format", "is not taken by this model; leave it out")
    return None
