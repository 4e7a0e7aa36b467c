"""litellm as a library of pure functions: quiet, offline, and without a say of its own."""

import copy
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from router.providers.converse import JSON_TOOL, Converse, Untranslatable

MODEL = "anthropic.claude-sonnet-4-6"
USER = [{"role": "user", "content": "hi"}]
TOOL = {
    "type": "function",
    "function": {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "string"}},
        },
    },
}
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": OBJECT}}
OLD = "anthropic.claude-3-5-sonnet-20240620-v1:0"
ANSWER: dict[str, Any] = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hello"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
}


@pytest.fixture(scope="module")
def converse() -> Converse:
    return Converse()


def test_nothing_of_the_caller_is_changed(converse: Converse) -> None:
    messages, parameters = copy.deepcopy(USER), {"tools": [copy.deepcopy(TOOL)], "max_tokens": 3}
    made = converse.request(MODEL, messages, parameters)
    assert (messages, parameters) == (USER, {"tools": [TOOL], "max_tokens": 3})
    assert made.body["inferenceConfig"] == {"maxTokens": 3}
    assert not made.json_tool


def test_a_schema_is_native_or_a_tool(converse: Converse) -> None:
    native = converse.request(MODEL, USER, {"response_format": SCHEMA})
    assert not native.json_tool
    assert "outputConfig" in native.body
    by_tool = converse.request(OLD, USER, {"response_format": SCHEMA})
    assert by_tool.json_tool
    assert by_tool.body["toolConfig"]["toolChoice"] == {"tool": {"name": JSON_TOOL}}  # type: ignore[index]


def test_refusals_lose_their_words(converse: Converse, canary: str) -> None:
    messages = [{"role": canary, "content": canary}]
    with pytest.raises(Untranslatable) as caught:
        converse.request(MODEL, messages, {})
    assert canary not in repr(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(Untranslatable):
        converse.answer(canary.encode(), False)
    with pytest.raises(Untranslatable):
        converse.chunks(False).delta({"delta": canary})


def test_supported_parameters_are_by_model(converse: Converse) -> None:
    assert "reasoning_effort" in converse.supported(MODEL)
    assert "tools" not in converse.supported("deepseek.r1-v1:0")
    assert converse.supported(MODEL) is converse.supported(MODEL)


def test_answers(converse: Converse) -> None:
    made = converse.answer(orjson.dumps(ANSWER), False)
    assert made["choices"][0]["message"]["content"] == "hello"  # type: ignore[index]
    tool = {"toolUse": {"toolUseId": "t", "name": JSON_TOOL, "input": {"a": 1}}}
    message = {"role": "assistant", "content": [tool]}
    by_tool = {**ANSWER, "output": {"message": message}, "stopReason": "tool_use"}
    choice = converse.answer(orjson.dumps(by_tool), True)["choices"][0]  # type: ignore[index]
    assert orjson.loads(choice["message"]["content"]) == {"a": 1}
    assert choice["finish_reason"] == "stop"


def test_chunks(converse: Converse) -> None:
    delta, reason = converse.chunks(False).delta({"stopReason": "max_tokens"})
    assert reason == "length"
    assert not delta.get("content")


_WATCHED = """
import logging, socket, sys
def no(*a, **k):
    raise SystemExit("connected")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = no
logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)
import os
before = dict(os.environ)
from router.providers.converse import Converse, Untranslatable
c = MADE()
assert dict(os.environ) == before, "environment changed"
import litellm
assert not (litellm.drop_params or litellm.modify_params or litellm.callbacks or litellm.cache)
assert not litellm.bedrock_neutralize_orphaned_tool_blocks and not litellm.telemetry
call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
messages = [{"role": "user", "content": CANARY}, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": CANARY},
            {"role": "user", "content": CANARY}]
c.request(MODEL, messages, {"tools": [tool]})
for bad in ({}, {"tool_choice": "none", "tools": [tool]}):
    try:
        c.request(MODEL, messages, bad)
    except Untranslatable:
        print("refused")
c.chunks(False).delta({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": CANARY}}})
c.chunks(False).delta({"stopReason": CANARY})
c.answer(ANSWER, False)
"""


@pytest.mark.parametrize("unpickled", [False, True], ids=["made", "sent to a worker"])
def test_quiet_and_offline_whatever_the_environment_says(
    hostile_environment: None,
    canary: str,
    tmp_path_factory: pytest.TempPathFactory,
    converse: Converse,
    unpickled: bool,
) -> None:
    folder = tmp_path_factory.mktemp("cwd")
    (folder / ".env").write_text("LITELLM_DROP_PARAMS=true\nFROM_DOTENV=yes\n")
    made = f"pickle.loads({pickle.dumps(converse)!r})" if unpickled else "Converse()"
    program = (
        f"CANARY, MODEL, ANSWER = {canary!r}, {MODEL!r}, {orjson.dumps(ANSWER)!r}\n"
        f"import pickle\nMADE = lambda: {made}\n" + _WATCHED
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert done.stdout.count("refused") == 2
    assert canary not in done.stdout + done.stderr
    assert "LiteLLM" not in done.stdout + done.stderr
    assert sorted(p.name for p in folder.iterdir()) == [".env"]


@pytest.mark.usefixtures("hostile_environment")
def test_no_setting_of_the_environment_reaches_a_body(
    converse: Converse, through: Callable[..., bytes]
) -> None:
    made = converse.request(MODEL, USER, {"max_tokens": 3})
    assert b"evil" not in orjson.dumps(made.body)
    assert b"us-east-1" not in orjson.dumps(made.body)
