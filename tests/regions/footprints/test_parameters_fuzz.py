"""Requests made from the SDKs' own types: what a provider would fetch, store or call is seen.

The oracle below knows nothing of the table. It is a second reading of the SDKs' types: which
of them make a provider fetch a URL, call a server, run a hosted tool or keep something. Every
request built from the types must be examined so that its movers hold all that the oracle saw.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

import anthropic.types.beta.message_create_params as beta_messages
import anthropic.types.message_create_params as messages
import botocore.session
import openai.types as oai
import openai.types.chat.completion_create_params as chat
import openai.types.completion_create_params as completions
import openai.types.responses.response_create_params as responses
import pytest
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from regions.catalog import Catalog
from regions.footprints import parameters
from regions.footprints.base import STORING, footprint
from regions.footprints.parameters import examine, refusals
from regions.footprints.table import Node, load_tables
from regions.model import Endpoint

REQUESTS: Mapping[str, list[Any]] = {
    "chat.completions": [chat.CompletionCreateParamsNonStreaming],
    "completions": [completions.CompletionCreateParamsNonStreaming],
    "embeddings": [oai.EmbeddingCreateParams],
    "responses": [responses.ResponseCreateParamsNonStreaming],
    "messages": [
        messages.MessageCreateParamsNonStreaming,
        beta_messages.MessageCreateParamsNonStreaming,
    ],
}
# (type, key) → what a value other than null, false and empty does. URLs may be `data:`.
FETCHED = {
    ("ImageURL", "url"),
    ("ResponseInputImageParam", "image_url"),
    ("ResponseInputImageContentParam", "image_url"),
    ("ResponseInputFileParam", "file_url"),
    ("ResponseInputFileContentParam", "file_url"),
    ("ResponseComputerToolCallOutputScreenshotParam", "image_url"),
    ("URLImageSourceParam", "url"),
    ("URLPDFSourceParam", "url"),
}
KEPT = {
    ("FileFile", "file_id"): "stored_object",
    ("Audio", "id"): "stored_object",
    ("VoiceID", "id"): "stored_object",
    ("ResponseInputImageParam", "file_id"): "stored_object",
    ("ResponseInputImageContentParam", "file_id"): "stored_object",
    ("ResponseInputFileParam", "file_id"): "stored_object",
    ("ResponseInputFileContentParam", "file_id"): "stored_object",
    ("ResponseComputerToolCallOutputScreenshotParam", "file_id"): "stored_object",
    ("FileImageSourceParam", "file_id"): "stored_object",
    ("FileDocumentSourceParam", "file_id"): "stored_object",
    ("CompletionCreateParamsNonStreaming", "store"): "stored",
    ("ResponseCreateParamsNonStreaming", "store"): "stored",
    ("ResponseCreateParamsNonStreaming", "background"): "background",
    ("ResponseCreateParamsNonStreaming", "background_options"): "background",
    ("ResponseCreateParamsNonStreaming", "conversation"): "conversation",
    ("ResponseCreateParamsNonStreaming", "previous_response_id"): "conversation",
    ("ResponseCreateParamsNonStreaming", "prompt"): "prompt_template",
    ("CompletionCreateParamsNonStreaming", "web_search_options"): "hosted_tool:web_search",
    ("ItemReference", "id"): "conversation",
    ("MessageCreateParamsNonStreaming", "container"): "hosted_tool:container",
    ("MessageCreateParamsNonStreaming", "thread"): "conversation",
    ("MessageCreateParamsNonStreaming", "fallbacks"): "model_routing",
}
# A type that does something by being there. A `*` stands for dates.
PRESENT = {
    "Mcp": "remote_mcp",
    "ToolMcp": "remote_mcp",
    "RequestMCPServerURLDefinitionParam": "remote_mcp",
    "MCPToolsetParam": "remote_mcp",
    "FileSearchToolParam": "hosted_tool:file_search",
    "CodeInterpreter": "hosted_tool:code_interpreter",
    "ToolCodeInterpreter": "hosted_tool:code_interpreter",
    "ImageGeneration": "hosted_tool:image_generation",
    "ToolImageGeneration": "hosted_tool:image_generation",
    "FunctionShellToolParam": "hosted_tool:shell",
    "ToolChangeMCPToolReferenceParam": "remote_mcp",
    "ToolChangeMCPToolsetReferenceParam": "remote_mcp",
    "ContainerUploadBlockParam": "stored_object",
    "MCPToolListingBlockParam": "remote_mcp",
    "McpApprovalResponse": "remote_mcp",
    "ProgrammaticToolCalling": "hosted_tool:program",
    "ToolProgrammaticToolCalling": "hosted_tool:program",
    "Program": "hosted_tool:program",
    "ProgramOutput": "hosted_tool:program",
    "ResponseCodeInterpreterToolCallParam": "hosted_tool:code_interpreter",
    "ShellCall": "hosted_tool:shell",
    "ShellCallOutput": "hosted_tool:shell",
    "ToolSearchToolParam": "hosted_tool:tool_search",
}
PRESENT_FAMILIES = {
    "WebSearchTool2": "hosted_tool:web_search",
    "WebSearchToolParam": "hosted_tool:web_search",
    "WebSearchPreviewToolParam": "hosted_tool:web_search",
    "WebFetchTool2": "hosted_tool:web_fetch",
    "CodeExecutionTool2": "hosted_tool:code_execution",
    "AdvisorTool2": "hosted_tool:advisor",
    "ToolSearchToolBm25": "hosted_tool:tool_search",
    "ToolSearchToolRegex": "hosted_tool:tool_search",
}
# What the SDKs know and the table says it does not judge.
NOT_JUDGED = (
    "moderation", "prompt_cache_options", "access_programs", "context_management", "image",
    "billing_policy", "compaction", "diagnostics", "fallback_credit_token", "user_profile_id",
    "output_config", "compaction_trigger]",
    "browser_toolset_20260801]",
)  # fmt: skip


# Movers for parts that OpenAI's SDK doesn't have on this surface, though servers may.
BEYOND_THE_SDK = {
    "tool.code_interpreter.None: hosted_tool:code_interpreter",
    "tool.file_search.None: hosted_tool:file_search",
    "tool.mcp.None: remote_mcp",
    "tool.web_search.None: hosted_tool:web_search",
    "tool.web_search_preview.None: hosted_tool:web_search",
    "part.audio_url.audio_url: url_input",
}


@cache
def hints(type_: Any) -> Mapping[str, Any]:
    return get_type_hints(type_)


def _is_answer(hint: Any) -> bool:
    """Whether a type is one of answers, which clients may send back; the table's test has them."""
    hint = getattr(hint, "__value__", hint)
    parts = get_args(hint)
    if parts:
        return get_origin(hint) is not Literal and all(_is_answer(p) for p in parts)
    return isinstance(hint, type) and issubclass(hint, BaseModel)


@cache
def required(type_: Any) -> frozenset[str]:
    """Keys that must be there; `__required_keys__` is wrong under postponed annotations."""
    extras = get_type_hints(type_, include_extras=True)
    return frozenset(
        key
        for key, hint in extras.items()
        if get_origin(hint) is Required or (type_.__total__ and get_origin(hint) is not NotRequired)
    )


class Maker:
    """Builds one request from its type, noting what a provider would do with it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.seen: set[str] = set()

    def make(self, hint: Any, depth: int = 0) -> object:
        if isinstance(hint, TypeAliasType):
            return self.make(hint.__value__, depth)
        if isinstance(hint, type) and hasattr(hint, "__total__"):
            return self.typed(hint, depth)
        origin, parts = get_origin(hint), get_args(hint)
        if origin is Literal:
            return self.rng.choice(parts)
        if origin in (list, Iterable) or (parts and "Sequence" in str(origin)):
            return self.several(parts[0], depth)
        if origin is dict:
            return {self.text(): self.make(parts[1], depth + 1)}
        if "Iterable" in str(origin):
            return self.several(parts[0], depth)
        kinds = [part for part in parts if not _is_answer(part)]
        return self.make(self.rng.choice(kinds), depth) if kinds else self.leaf(hint)

    def several(self, hint: Any, depth: int) -> list[object]:
        count = self.rng.randint(0, 2) if depth < 9 else 0
        return [self.make(hint, depth + 1) for _ in range(count)]

    def typed(self, type_: Any, depth: int) -> dict[str, object]:
        name = type_.__name__.removeprefix("Beta")
        made: dict[str, object] = {}
        for key, hint in hints(type_).items():
            if key in required(type_) or self.rng.random() < (0.5 if depth < 7 else 0.1):
                made[key] = self.make(hint, depth + 1)
                self.note(name, key, made[key])
        self.present(name)
        return made

    def note(self, name: str, key: str, value: object) -> None:
        if (name, key) in FETCHED and value and not str(value).startswith("data:"):
            self.seen.add("url_input")
        if (name, key) in KEPT and value:
            self.seen.add(KEPT[name, key])
        if key == "prompt_cache_retention" and value == "24h":
            self.seen.add("prompt_cache")

    def present(self, name: str) -> None:
        if name in PRESENT:
            self.seen.add(PRESENT[name])
        self.seen |= {what for start, what in PRESENT_FAMILIES.items() if name.startswith(start)}

    def leaf(self, hint: Any) -> object:
        made: dict[Any, object] = {
            str: self.text(), int: self.rng.randint(0, 9), float: self.rng.random(),
            bool: self.rng.random() < 0.5, type(None): None,
        }  # fmt: skip
        return made.get(hint, {"any": self.text()})

    def text(self) -> str:
        n = self.rng.randint(0, 99)
        return self.rng.choice([f"https://c{n}.example/x", "data:image/png;base64,AA", f"t{n}", ""])


@cache
def requests(surface: str) -> list[tuple[set[str], dict[str, object]]]:
    """Many requests of each type, each with what the oracle saw."""
    made = []
    for seed in range(6000 if surface == "responses" else 1500):
        for type_ in REQUESTS[surface]:
            maker = Maker(seed)
            body = maker.typed(type_, 0)
            made.append((maker.seen, body))
    return made


def unseen(surface: str, seen: set[str], body: dict[str, object]) -> set[str]:
    """What the oracle saw and `examine` didn't.

    A stored prompt's variables aren't looked into: the prompt's own place is unknown anyway.
    """
    movers = examine(surface, body).movers
    return set() if "prompt_template" in movers else seen - movers


def rules(node: Node) -> Iterator[tuple[Node, str | None, str]]:
    """Every mover below a node: the node, the key (`None`: the kind itself), the mover."""
    pending, done = [node], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in done:
            continue
        done.add(id(node))
        if node.mover is not None:
            yield node, None, node.mover
        for key, rule in node.keys.items():
            if rule is not None and rule.mover is not None:
                yield node, key, rule.mover
            if rule is not None and rule.node is not None:
                pending.append(rule.node)
        pending += [*node.kinds.values(), *([node.default] if node.default else [])]


@pytest.mark.parametrize("surface", sorted(REQUESTS))
def test_a_table_that_forgets_a_mover_is_found_out(
    surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = load_tables()[surface]
    monkeypatch.setattr(parameters, "tables", lambda: {surface: table})
    moving = [(seen, body) for seen, body in requests(surface) if seen]
    survivors = []
    for node, key, mover in list(rules(table.request)):
        kept = node.mover if key is None else node.keys[key]
        if key is None:
            node.mover = None
        else:
            node.keys[key] = None
        if not any(unseen(surface, seen, body) for seen, body in moving):
            survivors.append(f"{node.name}.{key}: {mover}")
        if key is None:
            node.mover = mover
        else:
            node.keys[key] = kept  # type: ignore[assignment]
    assert set(survivors) <= BEYOND_THE_SDK


@pytest.mark.parametrize("surface", sorted(REQUESTS))
def test_whatever_an_sdk_can_say_is_seen(surface: str) -> None:
    total: set[str] = set()
    for seen, body in requests(surface):
        assert not unseen(surface, seen, body), body
        strangers = {u for u in examine(surface, body).unknown if not u.endswith(NOT_JUDGED)}
        assert strangers <= {"(more)"}, body
        total |= seen
    fewest = {"chat.completions": 4, "responses": 10, "messages": 8}
    assert len(total) >= fewest.get(surface, 0), total


def test_what_is_seen_is_in_the_footprint_or_refused(catalog: Catalog, now: float) -> None:
    endpoints = [
        Endpoint("own", "vllm", "self", "m", "self:fra1", operate=("DE",), retain="nothing"),
        Endpoint("aws", "bedrock", "aws", "eu.anthropic.claude-sonnet-4-6", "aws:eu-central-1",
                 settings={"retention_mode": "none"}),
        Endpoint("oai", "openai", "openai", "m", urls=("https://eu.api.openai.com",),
                 settings={"project_residency": "eu"}),
    ]  # fmt: skip
    moved = still = 0
    for seed in range(150):
        for surface, types in REQUESTS.items():
            maker = Maker(seed)
            call = examine(surface, maker.typed(types[-1], 0))
            for endpoint in endpoints:
                found = footprint(endpoint, call, catalog, now)
                fetching, keeping = maker.seen - STORING, maker.seen & STORING
                assert not (fetching and found.process.is_known)
                assert not (keeping and found.retain.is_nothing)
                moved += bool(maker.seen)
                still += found.process.is_known and not refusals(endpoint, call)
    assert moved > 200
    assert still > 200


class ShapeMaker(Maker):
    """The same for botocore's shapes: everything a Converse request can hold."""

    def shape(self, shape: Any, depth: int = 0) -> object:
        if shape.type_name == "structure":
            return self.structure(shape, depth)
        if shape.type_name == "list":
            count = self.rng.randint(0, 2) if depth < 9 else 0
            return [self.shape(shape.member, depth + 1) for _ in range(count)]
        if shape.type_name == "map":
            return {self.text(): self.shape(shape.value, depth + 1)}
        kinds = {"integer": int, "float": float, "boolean": bool}
        return self.leaf(kinds.get(shape.type_name, str))

    def structure(self, shape: Any, depth: int) -> dict[str, object]:
        names = list(shape.members)
        if getattr(shape, "is_tagged_union", False) and names:
            names = [self.rng.choice(names)]
        made = {
            name: self.shape(shape.members[name], depth + 1)
            for name in names
            if name in shape.required_members or len(names) == 1 or self.rng.random() < 0.5
        }
        if shape.name == "S3Location":
            self.seen.add("s3_input")
        if shape.name == "SystemTool":
            self.seen.add("hosted_tool:system")
        return made


@pytest.mark.parametrize("operation", ["Converse", "ConverseStream"])
def test_whatever_converse_can_say_is_seen(operation: str) -> None:
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    shape = model.operation_model(operation).input_shape
    total: set[str] = set()
    for seed in range(1500):
        maker = ShapeMaker(seed)
        body = maker.structure(shape, 0)
        call = examine("converse", body)
        assert maker.seen <= call.movers, (seed, body)
        total |= maker.seen
        opaque = ("additionalModelRequestFields", "toolAddition", "toolRemoval")
        assert all(path.endswith(opaque) for path in call.unknown), (seed, call.unknown)
        assert {n for n, _ in call.places} == {"guardrailConfig", "projectIdentifier"} & set(body)
    assert total == {"s3_input", "hosted_tool:system"}
