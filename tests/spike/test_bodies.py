"""The riskiest assumption, through the whole path: whatever a body says, what is observed lies
inside the footprint computed before the call, and a refused body sends nothing at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from unittest.mock import patch

import botocore.session
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from router.errors import ANSWERS
from router.providers.bedrock import Bedrock
from router.providers.openai_compatible import OpenAiCompatible
from tests.spike.world import EVIL, WATCH, Way, ends, inside, path

EVILS = st.sampled_from(
    [
        f"https://{EVIL}/x", f" HTTPS://{EVIL}", f"s3://{EVIL}/x", f"{EVIL}:9", "us-west-2",
        "us.anthropic.claude-sonnet-4-6", "global.anthropic.claude-sonnet-4-6",
        "arn:aws:bedrock:us-west-2:123456789012:inference-profile/us.anthropic.claude-sonnet-4-6",
        True, 1, None, {}, [], {"url": f"https://{EVIL}"}, [f"wss://{EVIL}"],
        {"guardrailIdentifier": "evil", "guardrailVersion": "1"}, {"latency": "optimized"},
        {"remote_host": EVIL, "remote_port": 9}, {"uri": f"s3://{EVIL}/x", "bucketOwner": "1"},
    ]
)  # fmt: skip


def _members(operation: str) -> list[str]:
    model = botocore.session.Session().get_service_model("bedrock-runtime")
    return list(model.operation_model(operation).input_shape.members)


MOVING = sorted(
    OpenAiCompatible.place_parameters
    | Bedrock.place_parameters
    | {"kv_transfer_params", "store", "background", "conversation", "previous_response_id",
       "web_search_options", "prompt", "container", "mcp_servers", "inference_geo",
       "prompt_cache_retention", "audio", "metadata_url", "callback_url", "webhook",
       "extra_body", "extra_headers", "hosts", "proxies", "proxy", "tool_resources"}
    | {*_members("Converse"), *_members("InvokeModel")} - {"messages", "system"}
)  # fmt: skip
STRANGE = st.sampled_from(["x_strange", "X-Amzn-Bedrock-Trace", "Model", "model ", "modelId\0"])
NAMES = st.sampled_from(MOVING)
NESTED = st.recursive(
    EVILS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES | STRANGE, inner, max_size=2),
    max_leaves=5,
)
LINKS = st.sampled_from([f"https://{EVIL}/a.png", f"s3://{EVIL}/a", "data:image/png;base64,AAAA"])
PART = st.one_of(
    st.just({"type": "text", "text": "hello"}),
    st.builds(lambda u: {"type": "image_url", "image_url": {"url": u}}, LINKS),
    st.builds(lambda u: {"type": "image_url", "image_url": u}, LINKS),
    st.builds(lambda u: {"type": "video_url", "video_url": {"url": u}}, LINKS),
    st.builds(lambda u: {"type": "image", "source": {"type": "url", "url": u}}, LINKS),
    st.builds(lambda u: {"type": "document", "source": {"s3Location": {"uri": u}}}, LINKS),
    st.builds(lambda v: {"type": "file", "file": v}, NESTED),
    st.builds(lambda u: {"type": "file", "file": {"file_id": u, "format": "pdf"}}, LINKS),
    st.just({"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}),
    st.builds(lambda k, v: {"type": "text", "text": "hello", k: v}, NAMES, NESTED),
    st.builds(lambda v: {"type": "guardContent", "guardContent": v}, NESTED),
)  # fmt: skip
TOOL = st.one_of(
    st.just({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}),
    st.builds(lambda u: {"type": "mcp", "server_label": "m", "server_url": u}, LINKS),
    st.builds(
        lambda t: {"type": t},
        st.sampled_from(["web_search", "web_search_preview", "code_interpreter", "nova_grounding"]),
    ),
    st.builds(lambda v: {"systemTool": {"name": "nova_grounding"}, "x": v}, NESTED),
    st.builds(lambda v: {"type": "function", "function": {"name": "f"}, "defer": v}, NESTED),
)
MESSAGE = st.one_of(
    st.just({"role": "user", "content": "hello"}),
    st.builds(lambda parts: {"role": "user", "content": parts}, st.lists(PART, max_size=3)),
    st.builds(lambda k, v: {"role": "user", "content": "hello", k: v}, NAMES, NESTED),
)  # fmt: skip
BODY = st.builds(
    lambda base, more: {**more, **base},
    st.fixed_dictionaries(
        {
            "model": st.sampled_from(["own", "own", "sonnet"]),
            "messages": st.lists(MESSAGE, min_size=1, max_size=3),
            "max_tokens": st.just(3),
        },
        optional={"stream": st.booleans(), "tools": st.lists(TOOL, max_size=2)},
    ),
    st.one_of(
        st.just({}), st.dictionaries(NAMES | STRANGE, NESTED, max_size=2)
    ),
)  # fmt: skip
PLAIN: Mapping[str, object] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}
SENT = frozenset({"ok", "upstream_refused", "upstream_unavailable", "bad_answer"})


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[asyncio.Runner, Way]]:
    """One router for all bodies; its loop runs while it is asked."""
    folder = tmp_path_factory.mktemp("spike")
    stack = AsyncExitStack()

    async def start() -> Way:
        world = await stack.enter_async_context(ends(folder))
        return await stack.enter_async_context(path(world))

    WATCH.install()
    with (
        patch.dict(os.environ, {"SSL_CERT_FILE": str(folder / "papers.pem")}),
        asyncio.Runner() as running,
    ):
        way = running.run(start())
        yield running, way
        running.run(stack.aclose())


@settings(max_examples=300)
@given(tenant=st.sampled_from(["clinic", "games"]), body=BODY)
@example("clinic", {**PLAIN, "model": "sonnet"})
@example("games", {**PLAIN, "model": "sonnet", "stream": True})
@example("clinic", {**PLAIN, "model": "own", "kv_transfer_params": {"remote_host": EVIL}})
@example("games", {**PLAIN, "model": "sonnet", "modelId": "global.anthropic.claude-sonnet-4-6"})
@example("clinic", {**PLAIN, "model": "own", "messages": [{"role": "user", "content": [
    {"type": "file", "file": {"file_id": f"https://{EVIL}/a.png"}}]}]})  # fmt: skip
@example("games", {**PLAIN, "model": "own", "strange": [{"deep": f"https://{EVIL}"}]})
def test_what_is_observed_lies_inside_the_footprint(
    runner: tuple[asyncio.Runner, Way], tenant: str, body: dict[str, object]
) -> None:
    running, way = runner
    asked = running.run(way.ask(tenant, body))
    event(asked.code)
    assert list(inside(way, asked)) == []
    assert asked.code == "ok" or asked.code in ANSWERS
    assert asked.code != "internal"
    if asked.code not in SENT:
        assert not asked.sent, asked
    if asked.code == "ok":
        assert asked.sent


@pytest.mark.parametrize("model", ["own", "sonnet"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_plain_call_arrives(runner: tuple[asyncio.Runner, Way], model: str, stream: bool) -> None:
    """The fuzz would prove nothing if nothing arrived."""
    running, way = runner
    asked = running.run(way.ask("clinic", {**PLAIN, "model": model, "stream": stream}))
    assert (asked.status, list(inside(way, asked))) == (200, [])
    assert len(asked.selves) + len(asked.calls) == 1
    where = [region for region, _ in asked.selves] or [call.region for call in asked.calls]
    assert where == (["self:fra1"] if model == "own" else ["eu-central-1"])


@pytest.mark.parametrize("name", MOVING)
@pytest.mark.parametrize("model", ["own", "sonnet"])
def test_no_moving_parameter_of_a_client_arrives(
    runner: tuple[asyncio.Runner, Way], model: str, name: str
) -> None:
    running, way = runner
    body = {**PLAIN, "model": model, name: f"https://{EVIL}/x"}
    asked = running.run(way.ask("clinic", body))
    assert list(inside(way, asked)) == []
    assert not asked.sent or asked.code in SENT


def test_the_oracle_sees_what_it_should(runner: tuple[asyncio.Runner, Way]) -> None:
    """A call that does go elsewhere is found out: the watch is no decoration."""
    running, way = runner

    async def elsewhere() -> list[str]:
        asked = await way.ask("games", {**PLAIN, "model": "sonnet"})
        stranger = type(asked)(
            "clinic", asked.status, asked.code, asked.body, asked.selves, asked.calls,
            frozenset({("192.0.2.1", 443)}), (EVIL,), (),
        )  # fmt: skip
        return list(inside(way, stranger))

    found = "; ".join(running.run(elsewhere()))
    assert EVIL in found
    assert "192.0.2.1" in found
    assert "outside the grant" in found
