from collections.abc import Mapping
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regions.footprints import parameters
from regions.footprints.parameters import (
    Refusal,
    examine,
    place_parameters,
    refusals,
    tables,
    walked,
)  # fmt: skip
from regions.model import Call, Endpoint

CHAT = "chat.completions"


def user(*parts: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": list(parts)}]}


def asked(**fields: object) -> dict[str, object]:
    return {"model": "m", "input": "hi", "store": False, **fields}


def test_a_plain_call_moves_nothing() -> None:
    body = {
        "model": "m", "stream": True, "temperature": 0.1, "max_tokens": 5, "user": "u",
        "stream_options": {"include_usage": True}, "store": False, "metadata": {"url": "http://x"},
        "messages": [{"role": "system", "content": "see https://example.com"},
                     {"role": "user", "content": [{"type": "text", "text": "ftp://x"}]}],
    }  # fmt: skip
    assert examine(CHAT, body) == Call(
        CHAT, parameters=frozenset(body), features=frozenset({"stream"})
    )


@pytest.mark.parametrize(
    ("surface", "body", "movers"),
    [
        (CHAT, user({"type": "image_url", "image_url": {"url": "https://x/y.png"}}), "url_input"),
        (CHAT, user({"type": "image_url", "image_url": "https://x/y.png"}), "url_input"),
        (CHAT, user({"type": "image_url", "image_url": {"url": "DATA:image/png;base64,x"}}), ""),
        (CHAT, user({"type": "image_url", "image_url": {"url": 7}}), "url_input"),
        (CHAT, user({"type": "audio_url", "audio_url": {"url": "http://x"}}), "url_input"),
        (CHAT, user({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}), ""),
        (CHAT, user({"type": "file", "file": {"file_data": "x"}}), ""),
        (CHAT, user({"type": "file", "file": {"file_data": "data:text/plain;base64,eA=="}}), ""),
        (CHAT, user({"type": "file", "file": {"file_data": "https://x/y.pdf"}}), "url_input"),
        (CHAT, user({"type": "file", "file": {"File_Data": "https://x/y.pdf"}}), "url_input"),
        (CHAT, user({"type": "input_audio", "input_audio": {"data": "file:///x"}}), "url_input"),
        (CHAT, {"Store": True}, "stored"),
        (CHAT, {"STORE": False}, ""),
        (CHAT, {"Tools": [{"type": "mcp", "server_url": "https://x"}]}, "remote_mcp url_input"),
        (CHAT, {"web-search-options": {"x": 1}}, "hosted_tool:web_search"),
        (CHAT, user({"type": "image_url", "imageUrl": "gopher://x"}), "url_input"),
        (CHAT, user({"type": "file", "file": {"file_id": "f"}}), "stored_object"),
        (CHAT, user({"type": "blob", "blob": {"at": ["s3://bucket"]}}), "url_input"),
        (CHAT, {"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "stored_object"),
        (CHAT, {"store": True}, "stored"),
        (CHAT, {"store": None}, ""),
        (CHAT, {"web_search_options": {"x": 1}}, "hosted_tool:web_search"),
        (CHAT, {"web_search_options": {}}, "hosted_tool:web_search"),
        (CHAT, {"Web_Search_Options": {}}, "hosted_tool:web_search"),
        (CHAT, {"web_search_options": None}, ""),
        (CHAT, {"tools": [{"type": "function", "function": {"url": "http://x"}}]}, ""),
        (CHAT, {"tools": [{"type": "mcp", "server_url": "https://x"}]}, "remote_mcp"),
        (CHAT, {"tools": [{"type": "brand_new"}]}, "hosted_tool:unknown"),
        (CHAT, {"tools": [{}]}, "hosted_tool:unknown"),
        (CHAT, {"tools": ["web_search"]}, "hosted_tool:web_search"),
        (CHAT, {"tools": "brand_new"}, "hosted_tool:unknown"),
        (CHAT, {"tools": [["mcp"]]}, "remote_mcp"),
        (CHAT, {"prompt_cache_retention": "24h"}, "prompt_cache"),
        (CHAT, {"prompt_cache_retention": "in_memory"}, ""),
        (CHAT, {"new_thing": {"callback": "https://x"}}, "url_input"),
        (CHAT, user({"image_url": {"url": "\x01http://x"}}), "url_input"),
        (CHAT, user({"image_url": "ht\ntp://x"}), "url_input"),
        (CHAT, user({"image_url": "\ufeffhttp:/\tx"}), "url_input"),
        (CHAT, user({"image_url": "https:\\\\x"}), "url_input"),
        (CHAT, user({"image_url": "data:image/png;base64,AA//"}), ""),
        (CHAT, {"new_thing": "either: this or that/those"}, ""),
        ("responses", {"input": "hi"}, "stored"),
        ("responses", {"input": "hi", "store": None}, "stored"),
        ("responses", asked(), ""),
        ("responses", asked(store=True), "stored"),
        ("responses", asked(previous_response_id="r"), "conversation"),
        ("responses", asked(previousResponseId="r"), "conversation"),
        ("responses", asked(input=[{"role": "user", "content": [
            {"type": "input_file", "file_data": "s3://bucket/key"}]}]), "url_input"),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": "https://x"}}]}]}, "url_input"),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo"}}]}]}, ""),
        ("responses", asked(conversation={"id": "c"}), "conversation"),
        ("responses", asked(background=True), "background"),
        ("responses", asked(prompt={"id": "p"}), "prompt_template"),
        ("responses", asked(input=[{"type": "item_reference", "id": "x"}]), "conversation"),
        ("responses", asked(tools=[{"type": "web_search"}]), "hosted_tool:web_search"),
        ("responses", asked(tools=[{"type": "namespace", "tools": [{"type": "mcp"}]}]),
         "remote_mcp"),
        ("responses", asked(input=[{"role": "user", "content": [
            {"type": "input_file", "file_url": "https://x"}]}]), "url_input"),
        ("responses", asked(input=[{"type": "function_call_output", "output": [
            {"type": "input_image", "image_url": "https://x"}]}]), "url_input"),
        ("responses", asked(input=[{"type": "computer_call_output", "output": {
            "type": "computer_screenshot", "image_url": "https://x"}}]), "url_input"),
        ("responses", asked(input=[{"type": "additional_tools", "tools": [
            {"type": "mcp"}]}]), "remote_mcp"),
        ("messages", {"mcp_servers": [{"type": "url", "url": "https://x"}]}, "remote_mcp"),
        ("messages", {"container": "c"}, "hosted_tool:container"),
        ("messages", {"tools": [{"name": "f", "input_schema": {}}]}, ""),
        ("messages", {"tools": [{"type": "web_fetch_20260318"}]}, "hosted_tool:web_fetch"),
        ("messages", {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [
            {"type": "image", "source": {"type": "url", "url": "https://x"}}]}]}]}, "url_input"),
        ("messages", {"messages": [{"content": [{"type": "document", "source": {
            "type": "file", "file_id": "f"}}]}]}, "stored_object"),
        ("converse", {"messages": [{"content": [{"image": {"source": {
            "s3Location": {"uri": "s3://b/k"}}}}]}]}, "s3_input"),
        ("converse", {"messages": [{"content": [{"toolResult": {"content": [{"document": {
            "source": {"s3Location": {"uri": "s3://b"}}}}]}}]}]}, "s3_input"),
        ("converse", {"messages": [{"content": [{"document": {"source": {"bytes": "x"}}}]}]}, ""),
        ("converse", {"toolConfig": {"tools": [{"systemTool": {"name": "x"}}]}},
         "hosted_tool:system"),
    ],
)  # fmt: skip
def test_what_moves(surface: str, body: Mapping[str, object], movers: str) -> None:
    assert examine(surface, body).movers == set(movers.split())


@pytest.mark.parametrize(
    ("surface", "body", "unknown"),
    [
        (CHAT, {"top_k": 3, "guided_json": {}}, {"top_k", "guided_json"}),
        (CHAT, user({"type": "text", "text": "x", "bold": True}), {"messages.content.bold"}),
        (CHAT, user({"type": "hologram"}), {"messages.content[type=hologram]"}),
        (CHAT, user({"type": ["text"]}), {"messages.content[type=?]"}),
        (CHAT, user({"text": "no type"}), {"messages.content[type=?]"}),
        (CHAT, {"moderation": {"model": "x"}}, {"moderation"}),
        ("converse", {"additionalModelRequestFields": {"a": 1}}, {"additionalModelRequestFields"}),
        ("invoke_model", {"body": b"{}"}, {"body"}),
    ],
)
def test_what_is_not_known(surface: str, body: Mapping[str, object], unknown: set[str]) -> None:
    assert examine(surface, body).unknown == unknown


def test_features() -> None:
    body = {
        **user({"type": "image_url", "image_url": {"url": "data:x"}}),
        "tools": [{"type": "function"}], "logprobs": True,
        "response_format": {"type": "json_schema", "json_schema": {}},
    }  # fmt: skip
    assert examine(CHAT, body).features == {"images", "tools", "json_schema"}
    assert examine(CHAT, {"tools": [], "stream": False}).features == set()


@pytest.mark.parametrize(
    ("value", "text"),
    [("us", "us"), (None, "null"), (True, "true"), (3, "3"), ({"a": []}, "(structured)")],
)
def test_place_parameters_are_kept_as_text(value: object, text: str) -> None:
    for surface in tables():
        if surface != "embeddings":
            assert ("inference_geo", text) in examine(surface, {"inference_geo": value}).places


VLLM = Endpoint("e", "vllm", "self", "m", "self:fra1", self_operated=True)
BEDROCK = Endpoint("e", "bedrock", "aws", "m", "aws:eu-west-1", settings={"guardrail": "g"})
CLAUDE = Endpoint("e", "anthropic", "anthropic", "m", settings={"inference_geo": "us"})


@pytest.mark.parametrize(
    ("endpoint", "body", "expected"),
    [
        (VLLM, {"top_k": 1, "chat_template_kwargs": {}}, []),
        (VLLM, {"kv_transfer_params": {"remote_host": "10.0.0.9"}},
         [("parameter_changes_place", "kv_transfer_params")]),
        (BEDROCK, {"top_k": 1}, [("parameter_not_allowed", "top_k")]),
        (BEDROCK, user({"type": "x"}), [("parameter_not_allowed", "messages.content[type=x]")]),
        (BEDROCK, {"aws_region_name": "us-east-1"},
         [("parameter_changes_place", "aws_region_name")]),
        (BEDROCK, {"guardrailConfig": "g"}, []),
        (BEDROCK, {"guardrailConfig": "other"}, [("parameter_changes_place", "guardrailConfig")]),
        (CLAUDE, {"inference_geo": "us"}, []),
        (CLAUDE, {"inference_geo": "global"}, [("parameter_changes_place", "inference_geo")]),
        (CLAUDE, {"inference_geo": None}, [("parameter_changes_place", "inference_geo")]),
        (CLAUDE, {"models": ["x"], "provider": {"order": []}, "zzz": 1},
         [("parameter_changes_place", "models"), ("parameter_changes_place", "provider"),
          ("parameter_not_allowed", "zzz")]),
        (Endpoint("e", "nobody", "x", "m"), {"zzz": 1}, [("parameter_not_allowed", "zzz")]),
    ],
)  # fmt: skip
def test_refusals(
    endpoint: Endpoint, body: Mapping[str, object], expected: list[tuple[str, str]]
) -> None:
    found = refusals(endpoint, examine(CHAT, body))
    assert found == tuple(Refusal(*pair) for pair in expected)


def test_allowed_parameters_are_named_by_path_or_by_their_first_name() -> None:
    call = examine(CHAT, {"top_k": 1, **user({"type": "x"})})
    by_name = Endpoint("e", "bedrock", "aws", "m", allow_parameters=frozenset({"top_k"}))
    assert [r.parameter for r in refusals(by_name, call)] == ["messages.content[type=x]"]
    names = frozenset({"top_k", "messages"})
    assert refusals(Endpoint("e", "bedrock", "aws", "m", allow_parameters=names), call) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("kv_transfer_params", {"remote_host": "x"}), ("bootstrap_host", "10.0.0.9"),
     ("bootstrap_port", 8998), ("disaggregated_params", {"encoded_opaque_state": "x"})],
)  # fmt: skip
def test_a_client_names_no_server_to_share_a_cache_with(name: str, value: object) -> None:
    own = Endpoint("e", "openai", "self", "m", "self:fra1", self_operated=True)
    assert refusals(own, examine(CHAT, {"model": "m", name: value})) == (
        Refusal("parameter_changes_place", name),
    )


def test_what_vllm_merges_into_its_arguments_names_no_server_either() -> None:
    own = Endpoint("e", "vllm", "self", "m", "self:fra1", self_operated=True)
    merged = examine(CHAT, {"vllm_xargs": {"kv_transfer_params": {"remote_host": "x"}, "n": 1}})
    assert refusals(own, merged) == (Refusal("parameter_changes_place", "kv_transfer_params"),)
    assert merged.unknown == {"vllm_xargs.n"}


def test_allowing_a_place_parameter_does_not_let_it_pass() -> None:
    names = frozenset({"inference_geo", "aws_region_name"})
    endpoint = Endpoint("e", "bedrock", "aws", "m", allow_parameters=names)
    call = examine(CHAT, {"inference_geo": "us", "aws_region_name": "x"})
    assert len(refusals(endpoint, call)) == 2
    assert "aws_region_name" in place_parameters(endpoint)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["https://x", "data:x", "url", "mcp", "text", "image_url"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["type", "content", "messages", "tools", "input", "image_url", "url", "source", "x",
             "file", "file_id", "store", "output", "role", "response_format", "system"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=30,
)  # fmt: skip


@given(
    body=st.dictionaries(st.sampled_from(["messages", "tools", "input", "store", "x"]), JSON),
    surface=st.sampled_from(sorted(tables())),
)
@settings(max_examples=300)
def test_any_body_is_examined(body: dict[str, object], surface: str) -> None:
    call = examine(surface, body)
    assert call.parameters == set(body)
    assert call == examine(surface, body)


@given(
    messages=st.lists(st.fixed_dictionaries({"role": JSON, "content": JSON}) | JSON),
    surface=st.sampled_from(sorted(tables())),
)
@settings(max_examples=300)
def test_messages_passed_by_would_have_moved_nothing(messages: object, surface: str) -> None:
    found = examine(surface, {"messages": messages, "input": messages})
    with mock.patch.object(parameters, "_looked_at", lambda node, items: items):
        assert examine(surface, {"messages": messages, "input": messages}) == found


def test_plain_messages_are_passed_by() -> None:
    node = tables()[CHAT].request.keys["messages"]
    assert node is not None
    assert node.node is not None
    assert node.node.says
    plain, other = {"role": "user", "content": "x"}, {"role": "user", "content": ["x"]}
    assert parameters._looked_at(node.node, [plain, other, plain]) == [other]


def test_depth_costs_no_stack() -> None:
    deep: object = {"type": "image_url", "image_url": {"url": "https://x"}}
    for _ in range(50_000):
        deep = [deep]
    assert examine(CHAT, {"messages": deep}).unknown
    nested: object = "https://x"
    for _ in range(50_000):
        nested = {"a": nested}
    assert examine(CHAT, {"x": nested}).movers == {"url_input"}
    blocks: object = {"type": "image", "source": {"type": "url", "url": "https://x"}}
    for _ in range(20_000):
        blocks = {"type": "tool_result", "content": [blocks]}
    body = {"messages": [{"role": "user", "content": [blocks]}]}
    assert examine("messages", body).movers == {"url_input"}


def test_many_or_long_unknown_names_stay_small() -> None:
    call = examine(CHAT, {f"x{n}": n for n in range(500)})
    assert len(call.unknown) == 33
    assert Refusal("parameter_not_allowed", "(more)") in refusals(BEDROCK, call)
    (long,) = examine(CHAT, {"y" * 10_000: 1}).unknown
    assert len(long) < 300


@pytest.mark.parametrize("file", ["https://evil.example/x", ["https://evil.example/x"]])
def test_a_link_where_an_object_belongs_counts_as_fetched(file: object) -> None:
    part = {"type": "file", "file": file}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}]}
    assert "url_input" in examine("chat.completions", body).movers


def test_a_link_in_a_text_is_a_text() -> None:
    text = "see https://example.com"
    for content in (text, [{"type": "text", "text": text}]):
        body = {"model": "m", "messages": [{"role": "user", "content": content}]}
        assert examine("chat.completions", body).movers == frozenset()
    assert examine("embeddings", {"model": "m", "input": [text]}).movers == frozenset()
    assert examine("completions", {"model": "m", "prompt": [text]}).movers == frozenset()


@pytest.mark.parametrize(
    "name",
    ["Inference_Geo", "INFERENCE_GEO", "inferenceGeo", "inference-geo", "inference\u200b_geo",
     "\uff49nference_geo", " inference_geo"],
)  # fmt: skip
@pytest.mark.parametrize("surface", [CHAT, "messages", "responses", "embeddings"])
def test_a_place_parameter_in_another_spelling_is_one(surface: str, name: str) -> None:
    """A server that reads names without case, as some do, would obey it; so nobody is sent it."""
    stored = {"store": False} if surface == "responses" else {}
    call = examine(surface, {"model": "m", name: "us", **stored})
    assert (name, "us") in call.places
    assert name in call.unknown
    own = Endpoint("own", "vllm", "self", "m", "self:fra1", settings={"inference_geo": "us"})
    managed = Endpoint("api", "anthropic", "anthropic", "m", allow_parameters=frozenset({name}))
    for endpoint in (own, managed):
        assert refusals(endpoint, call) == (Refusal("parameter_changes_place", name),)


def test_a_neutral_name_in_another_spelling_is_only_unknown() -> None:
    call = examine(CHAT, {"Temperature": 1, "Max-Tokens": 3})
    assert (call.movers, call.places) == (frozenset(), frozenset())
    assert call.unknown == {"Temperature", "Max-Tokens"}


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from(
        ["", "user", "text", "auto", "https://a.example/x", "data:,x", "web_search", "json_schema"]
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "url", "text"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
TALK = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.just("hi")}))


@given(st.data(), st.sampled_from(sorted(tables())))
def test_a_call_seen_at_once_is_the_one_that_is_looked_for(
    data: st.DataObject, surface: str
) -> None:
    listed = sorted(tables()[surface].request.keys)
    names = data.draw(st.lists(st.sampled_from([*listed, "other"]), unique=True, max_size=6))
    body: dict[str, object] = {name: data.draw(VALUES | TALK) for name in names}
    assert examine(surface, body) == walked(surface, body)
    talk = {"model": "m", "messages": data.draw(TALK), "stream": data.draw(st.booleans())}
    assert examine(surface, talk) == examine(surface, talk, True) == walked(surface, talk)


@given(VALUES, TALK)
def test_that_messages_are_texts_says_nothing_of_other_lists(value: object, talk: object) -> None:
    body = {"model": "m", "messages": talk, "tools": [value], "web_search_options": value}
    assert examine("chat.completions", body, True) == walked("chat.completions", body)
