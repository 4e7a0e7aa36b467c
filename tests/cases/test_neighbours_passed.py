"""Neighbours of the reports on parameters, configuration and difficulty: what passes as it is."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from regions.document import DocumentErrors
from router.config import ConfigError
from router.settings.loading import load_snapshot
from tests.cases import graded
from tests.cases.built import BASELINE, BEDROCK, Files, built, now
from tests.router.crowd import crowd, hosts
from tests.router.scripted import (
    DONE,
    JSON,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    scripted,
    stream,
)

FUNCTION = {"type": "function", "function": {"name": "x", "parameters": {"type": "object"}}}
SAID: dict[str, object] = {
    "temperature": 0.5, "seed": 7, "logprobs": True, "top_logprobs": 3, "user": "u", "n": 2,
    "tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "x"}},
    "parallel_tool_calls": False, "response_format": {"type": "json_object"}, "stop": ["a"],
    "logit_bias": {"1": 2}, "top_k": 4, "min_p": 0.1, "guided_json": {"a": 1},
    "chat_template_kwargs": {"enable_thinking": False}, "metadata": {"a": "b"}, "store": False,
    "reasoning_effort": "low", "max_completion_tokens": 5, "presence_penalty": 0, "made_up": None,
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_server_of_ones_own_gets_every_parameter_as_it_is(
    tmp_path: Path, streamed: bool
) -> None:
    pieces = [event(content="a"), DONE]
    script = lambda h, n: stream(*pieces) if streamed else answer()  # noqa: E731
    async with scripted(tmp_path, script) as world:
        assert (await world.ask(stream=streamed, **SAID)).status == 200  # type: ignore[arg-type]
        sent = json.loads(world.transport.sent[0].body)
        assert {name: sent.get(name, "left out") for name in SAID} == SAID
        added = {"model", "messages", "stream", *(["stream_options"] if streamed else [])}
        assert sent.keys() - SAID.keys() == added
        assert sent["model"] == "tiny"


async def test_an_endpoints_headers_stay_its_own(tmp_path: Path) -> None:
    """A client would take its limits for those of its key, and its word for where it ran."""
    theirs = {
        "x-ratelimit-remaining-tokens": "77", "retry-after": "99", "set-cookie": "a=b",
        "server": "uvicorn", "openai-organization": "org-1", "x-domicile-region": "self:nowhere",
        "x-request-id": "theirs", "x-domicile-record": "a/1/b",
    }  # fmt: skip
    headers = (*JSON, *((name.encode(), value.encode()) for name, value in theirs.items()))
    chunks = answer()._chunks
    async with scripted(tmp_path, lambda h, n: Reply(200, headers, chunks)) as world:
        done = await world.ask()
        assert done.status == 200
        assert not set(done.sent.values()) & set(theirs.values())
        assert done.sent["x-domicile-region"] == "self:fra1"


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
NO_TRACE = [
    "", "x", TRACE.upper(), f"{TRACE}-more", f" {TRACE}", f"ff{TRACE[2:]}",
    f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-4bf92f3577b34da6a3ce929d0e0e4736-{'0' * 16}-01",
]  # fmt: skip


async def test_a_trace_goes_on_at_ones_own_servers_and_nowhere_else(tmp_path: Path) -> None:
    """BerriAI/litellm#4419: the engine's spans hung below nothing. What is no such id is free text
    of a client's, and a vendor learns nothing of what belongs together."""

    async def seen(world: Scripted, tenant: str, trace: str, **body: object) -> list[bytes | None]:
        headers = ((b"traceparent", trace.encode()), (b"tracestate", b"a=b"))
        before = len(world.transport.sent)
        assert (await world.ask(tenant, headers, **body)).status == 200
        sent = [dict(one.headers) for one in world.transport.sent[before:]]
        assert not any(b"tracestate" in one for one in sent)
        return [one.get(b"traceparent") for one in sent]

    async with built(tmp_path, lambda host, number: answer()) as world:
        assert await seen(world, "eu", TRACE) == [TRACE.encode()]
        for none in NO_TRACE:
            assert await seen(world, "eu", none) == [None], none
        assert await seen(world, "world", TRACE, model="openai") == [None]


HTML = ((b"content-type", b"text/html"),)
ONE_BAD: dict[str, Callable[[], Reply]] = {
    "lacks the adapter": lambda: failure(404),
    "is still loading": lambda: Reply(503, HTML, [b"<html>loading</html>"]),
    "is behind a proxy that says it is well": lambda: Reply(200, HTML, [b"<html>hello</html>"]),
    "has a key that lapsed": lambda: failure(401),
    "is full": lambda: failure(429, retry_after="30"),
}


@pytest.mark.parametrize("name", ONE_BAD)
async def test_one_replica_that_is_not_as_the_others_fails_no_request(
    tmp_path: Path, name: str
) -> None:
    script = lambda h, n: ONE_BAD[name]() if h == "fra1-0" else answer()  # noqa: E731
    async with scripted(tmp_path, script) as world:
        crowd(world, "fra1", 3)
        for _ in range(12):
            done = await world.ask()
            assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "fra1")
        assert hosts(world)["fra1-0"] <= 3


# -- configuration -----------------------------------------------------------------------------

NAMES = ["domicile.yaml", "baseline.yaml", "rules.yaml", "keys.yaml"]
GOOD: dict[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda text: codecs.BOM_UTF8 + text,
    "lines as of Windows": lambda text: text.replace(b"\n", b"\r\n"),
    "no end of the last line": lambda text: text.rstrip(b"\n"),
    "comments": lambda text: b"# ours\n" + text + b"# end\n",
    "a mark of the document's begin": lambda text: b"---\n" + text,
}
WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another encoding": (lambda text: text.decode().encode("utf-16"), "save the file as UTF-8"),
    "a tab": (lambda text: text.replace(b"\n  ", b"\n\t", 1), "3:1: not YAML"),
    "two documents": (lambda text: text + b"\n---\nversion: 1\n", "a second document"),
    "a NUL": (lambda text: text + b"\0", "control characters"),
    "a key twice": (lambda text: text + b"\nversion: 1\n", "`version` stands twice"),
    "an anchor": (lambda text: text.replace(b": 1", b": &a 1", 1), "anchor `&a` is refused"),
    "another version": (lambda text: text.replace(b": 1", b": 2", 1), "version"),
}


def changed(folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    path = Files().write(folder)
    file = folder / name
    file.write_bytes(change(file.read_bytes()))
    return path


def loaded(path: Path) -> object:
    return load_snapshot(path, Files().environment, now())


@pytest.mark.parametrize("how", GOOD)
def test_a_file_is_read_however_an_editor_wrote_it(tmp_path: Path, how: str) -> None:
    path = Files().write(tmp_path)
    for name in NAMES:
        file = tmp_path / name
        file.write_bytes(GOOD[how](file.read_bytes()))
    assert loaded(path)


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_file_is_told_with_its_name(tmp_path: Path, name: str, how: str) -> None:
    change, told = WRONG[how]
    with pytest.raises((DocumentErrors, ConfigError)) as caught:
        loaded(changed(tmp_path, name, change))
    assert name in str(caught.value)
    assert told in str(caught.value)


# -- difficulty --------------------------------------------------------------------------------


def asked(text: object, **more: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": text}], **more}


PARTS = [{"type": "text", "text": graded.EASY}]
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
TURNS = [
    {"role": "user", "content": graded.HARD},
    {"role": "assistant", "content": "A."},
    {"role": "user", "content": "why?"},
]


def said(role: str, before: str) -> dict[str, object]:
    """What looks easy by itself, after something else."""
    first = {"role": role, "content": before}
    return {"messages": [first, {"role": "user", "content": graded.EASY}]}


TIERS: dict[str, tuple[dict[str, object], str]] = {
    "easy": (asked(graded.EASY), "small"),
    "easy, in parts": (asked(PARTS), "small"),
    "easy, with no tools": (asked(graded.EASY, tools=[]), "small"),
    "hard": (asked(graded.HARD), "large"),
    "a short turn of a hard dialogue": ({"messages": TURNS}, "large"),
    # BerriAI/litellm#35471: a short word of assent, and what it assents to
    "an answer to what was asked before": (said("assistant", graded.HARD), "large"),
    "beside a tool's result": (said("tool", graded.HARD), "large"),
    "under orders": (said("system", graded.HARD), "large"),
    "under a developer's orders": (said("developer", graded.HARD), "large"),
    "under orders in capitals": (said("Developer", graded.HARD), "large"),
    "another script": (asked(graded.CHINESE), "large"),
    "code": (asked("def f(x):\n    return x + 1\n\nclass A:\n    pass\n" * 10), "large"),
    "a picture": (asked([*PARTS, PICTURE]), "large"),
    "tools": (asked(graded.EASY, tools=[FUNCTION]), "large"),
    "a form": (asked(graded.EASY, response_format={"type": "json_object"}), "large"),
    "nothing": (asked(""), "large"),
    "blanks": (asked(" \n\t"), "large"),
    "no content": (asked(None), "large"),
    "pictographs": (asked("\N{GRINNING FACE}" * 3), "large"),
    "much": (asked((graded.EASY + " ") * 4000), "large"),
    "one endless word": (asked("a" * 400_000), "large"),
}


async def test_what_is_not_known_to_be_easy_is_hard(tmp_path: Path) -> None:
    async with built(tmp_path, lambda h, n: answer(), graded.files()) as world:
        found = {}
        for name, (body, _) in TIERS.items():
            done = await world.ask("eu", model="two", **body)  # type: ignore[arg-type]
            found[name] = done.sent.get("x-domicile-tier", done.code)
        assert found == {name: tier for name, (_, tier) in TIERS.items()}


# -- dialogues ---------------------------------------------------------------------------------

THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
CALLED = {"toolUse": {"toolUseId": "t", "name": "x", "input": {}}}


@pytest.mark.parametrize("model", ["sonnet", "assistant", "openai"])
async def test_what_was_answered_may_be_sent_back(tmp_path: Path, model: str) -> None:
    """With what a model thought before its calls, which it wants to see again: a dialogue with
    tools ended after one turn. See spring-projects/spring-ai#6413."""
    said = {"output": {"message": {"role": "assistant", "content": [THOUGHT, CALLED]}},
            "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 1}}  # fmt: skip
    bedrock = "retention_mode: none"
    baseline = BASELINE.replace(bedrock, f"{bedrock}, features: [tools]").replace(
        "retention: zdr", "retention: zdr, features: [tools]"
    )

    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [json.dumps(said).encode()]) if host == BEDROCK else answer()

    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        first = {"role": "user", "content": "q"}
        tools = {"tools": [FUNCTION], "messages": [first]}
        done = await world.ask("world", model="sonnet", **tools)  # type: ignore[arg-type]
        message = json.loads(done.written)["choices"][0]["message"]
        assert message["thinking_blocks"]
        result = {"role": "tool", "tool_call_id": "t", "content": "42"}
        messages = [first, {**message, "annotations": []}, result]
        again = await world.ask("world", model=model, tools=[FUNCTION], messages=messages)
        assert again.status == 200
        sent = json.loads(world.transport.sent[-1].body)["messages"][1]
    assert (THOUGHT in sent["content"]) if model == "sonnet" else sent["thinking_blocks"]


TOLD: dict[str, dict[str, object]] = {
    "leave it out": {"n": 2},
    "64 at most": {"tools": [{"type": "function", "function": {"name": "x" * 65}}]},
    "urls are not fetched": {"messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PROMPT"}}]}]},
    "after other messages": {"messages": [{"role": "user", "content": "PROMPT"},
                                          {"role": "system", "content": "PROMPT"}]},
}  # fmt: skip


async def test_a_refusal_tells_what_would_be_taken(tmp_path: Path) -> None:
    """It named the parameter, and its sender had to guess what was wrong with it."""
    async with built(tmp_path, lambda host, number: answer()) as world:
        for what, body in TOLD.items():
            done = await world.ask("eu", model="sonnet", **body)  # type: ignore[arg-type]
            error = json.loads(done.written)["error"]
            assert (done.status, error["code"]) == (400, "parameter_not_allowed")
            assert f"`{error['param']}`" in error["message"]
            assert what in error["message"]
            assert "PROMPT" not in error["message"]
        assert world.transport.sent == []


async def test_what_was_left_out_is_told_with_the_answer(tmp_path: Path) -> None:
    """Never in silence: an endpoint's operator says what it is not sent, and its client hears."""
    said = {"output": {"message": {"role": "assistant", "content": [{"text": "a"}]}},
            "stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}}  # fmt: skip
    bedrock = "retention_mode: none"
    baseline = BASELINE.replace(bedrock, f"{bedrock}, leave_out: user seed", 1)

    def script(host: str, number: int) -> Reply:
        return Reply(200, JSON, [json.dumps(said).encode()]) if host == BEDROCK else answer()

    async with built(tmp_path, script, Files(baseline=baseline)) as world:
        done = await world.ask("world", model="sonnet", seed=7, temperature=0.5, user="u")
        assert (done.status, done.sent["x-domicile-left-out"]) == (200, "user,seed")
        assert b"seed" not in world.transport.sent[-1].body
        for model, given in (("sonnet", None), ("assistant", 7)):
            done = await world.ask("world", model=model, seed=given)
            assert (done.status, "x-domicile-left-out" in done.sent) == (200, False)
        assert json.loads(world.transport.sent[-1].body)["seed"] == 7
