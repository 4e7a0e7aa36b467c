"""Neighbours of the residency traps, through a whole router: what could move bytes or widen a
boundary is refused with nothing sent, what is no such thing is served inside, and the log holds
none of a client's text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.built import built, entries
from tests.router.house import House, house
from tests.router.scripted import answer
from tests.router.wire import ASK, request, say

MARK = "elsewhere-4711"
URL = f"https://{MARK}.example.com/x"

PARTS: list[object] = [
    {"type": "image_url", "image_url": {"url": URL}},
    {"type": "image_url", "image_url": URL},
    {"type": "IMAGE_URL", "image_url": {"url": URL}},
    {"type": "image_url", "image_url": {"url": f"\t{URL.upper()}"}},
    {"type": "image_url", "image_url": {"url": f"//{MARK}/x"}},
    {"type": "image_url", "image_url": {"url": f"s3://{MARK}/x"}},
    {"image_url": {"url": URL}},
    {"type": "audio_url", "audio_url": {"url": URL}},
    {"type": "video_url", "video_url": {"url": URL}},
    {"type": "input_file", "file_url": URL},
    {"type": "document", "source": {"type": "url", "url": URL}},
    {"type": "tool_result", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
    [{"type": "image_url", "image_url": {"url": URL}}],
]
TOOLS: list[object] = [
    [{"type": "mcp", "server_url": URL, "server_label": "x"}],
    [{"type": " mcp", "server_url": URL}],
    [{"type": "namespace", "tools": [{"type": "mcp", "server_url": URL}]}],
    [{"type": "function", "function": {"name": "x"}, "server_url": URL}],
    [{"server_url": URL}],
    [{"googleSearch": {}}],
    [{"type": "FUNCTION", "function": {"name": "x"}}],
    [{"type": "web_search_preview_2025_03_11"}],
    [{"type": "code_interpreter", "container": {"type": "auto"}}],
    [{"type": "file_search", "vector_store_ids": [MARK]}],
    {"type": "mcp", "server_url": URL},
    ["web_search"],
    ["mcp"],
    "mcp",
]
PLACES: dict[str, object] = {
    "models": ["outside"], "fallbacks": ["outside"], "provider": {"order": [MARK]}, "route": MARK,
    "region": MARK, "extra_body": {"models": ["outside"]}, "extra_headers": {"x": MARK},
    "inference_geo": "us", "plugins": [{"id": "web"}], "api_base": URL, "base_url": URL,
    "kv_transfer_params": {"remote_host": MARK}, "ec_transfer_params": {"x": MARK},
    "bootstrap_host": MARK, "web_search_options": {},
    # BerriAI/litellm#29538: what a gateway that is one's own server takes from a body
    "router_settings_override": {"fallbacks": [{"assistant": ["outside"]}]},
    "model_list": [{"model_name": "assistant"}], "litellm_credential_name": MARK,
    "litellm_params": {"region_name": MARK}, "allowed_model_region": MARK, "region_name": MARK,
    "specific_deployment": True, "context_window_fallbacks": [{"assistant": ["outside"]}],
    "content_policy_fallbacks": [{"assistant": ["outside"]}], "aws_sts_endpoint": MARK,
    "context_window_fallback_dict": {"assistant": "outside"}, "vertex_ai_location": MARK,
}  # fmt: skip
NAMES = [
    "Assistant", "assistant ", "assistant\u200b", "assistant:us", "us/assistant", "assistant@us",
    "assistant,outside", "tiny", "iad", "global.assistant", "outside\x00", "\uff41ssistant",
]  # fmt: skip


def bodies() -> list[dict[str, object]]:
    found = list[dict[str, object]]()
    found += [{"messages": [{"role": "user", "content": [one]}]} for one in PARTS]
    found += [{"messages": [{"role": "tool", "tool_call_id": "a", "content": [PARTS[0]]}]}]
    found += [{"tools": one} for one in TOOLS]
    found += [{name: value} for name, value in PLACES.items()]
    found += [{"model": name} for name in [*NAMES, "outside"]]
    return found


async def test_what_moves_bytes_or_names_another_place_is_refused_with_nothing_sent(
    tmp_path: Path,
) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        wrong = []
        for body in bodies():
            exchange = await world.ask("eu", **body)  # type: ignore[arg-type]
            code = exchange.code
            if not 400 <= exchange.status < 500 or world.transport.sent:
                wrong.append((body, exchange.status, code))
            told = json.loads(exchange.written)["error"]["message"]
            assert MARK not in told
            world.transport.sent.clear()
        assert wrong == []
    assert MARK not in json.dumps([dict(one.body) for one in entries(tmp_path)], default=str)


async def test_what_only_looks_alike_is_served_inside(tmp_path: Path) -> None:
    plain: list[dict[str, object]] = [
        {"messages": [{"role": "user", "content": f"look at {URL}"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": URL}]}]},
        {"messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}]}]},
        {"metadata": {"note": MARK}},
        {"user": MARK},
        {"tools": [{"type": "function", "function": {"name": "x", "parameters": {}}}]},
    ]  # fmt: skip
    async with built(tmp_path, lambda host, number: answer()) as world:
        for body in plain:
            assert (await world.ask("eu", **body)).status == 200, body  # type: ignore[arg-type]
        assert {one.origin.host for one in world.transport.sent} <= {"fra1", "par1"}
        assert len(world.transport.sent) == len(plain)
    assert MARK not in json.dumps([dict(one.body) for one in entries(tmp_path)], default=str)


UNSERVED = [
    b"/v1/responses", b"/v1/embeddings", b"/v1/completions", b"/v1/messages", b"/v1/batches",
    b"/v1/files", b"/v1/images/generations", b"/v1/audio/transcriptions", b"/v1/moderations",
    b"/v1/fine_tuning/jobs", b"/v1/realtime", b"/v1/threads", b"/v1/vector_stores", b"/v1/rerank",
    b"/tokenize", b"/v1/chat/completions/", b"//v1/chat/completions", b"/V1/chat/completions",
    b"/openai/deployments/x/chat/completions", b"/model/x/converse",
]  # fmt: skip


@pytest.mark.parametrize("upgrade", [False, True])
async def test_other_surfaces_are_refused_clearly(tmp_path: Path, upgrade: bool) -> None:
    fields = [b"connection: upgrade", b"upgrade: websocket"] if upgrade else []

    async def asked(found: House, path: bytes) -> None:
        line = b"%b %b HTTP/1.1" % (b"GET" if upgrade else b"POST", path)
        answered = await say(found, request(b"" if upgrade else ASK, *fields, line=line))
        assert (answered.status, answered.code) == (404, "not_found"), path

    async with house(tmp_path) as found:
        for path in UNSERVED:
            await asked(found, path)
        assert [found.hits(f"self:{name}") for name in ("fra1", "par1", "iad1")] == [0, 0, 0]
