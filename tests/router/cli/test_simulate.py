"""`domicile simulate fleet`, as a program that runs until it is told to stop."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.router.cli.conftest import START, Domicile


def test_a_fleet_serves_until_it_is_stopped() -> None:
    words = [sys.executable, "-c", START, "simulate", "fleet", "self:fra1/a", "self:par1", "--json"]
    words += ["--bedrock", "--transfers"]
    with subprocess.Popen([*words, "--model", "m"], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            told, _ = json.JSONDecoder().raw_decode(_document(running))
            urls = {row["name"]: row["url"] for row in told["replicas"]}
            assert set(urls) == {"self:fra1/a", "self:par1"}
            with urllib.request.urlopen(f"{urls['self:par1']}/v1/models", timeout=10) as answer:
                assert json.load(answer)["data"][0]["id"] == "m"
            body = {
                "model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1,
                "kv_transfer_params": {"do_remote_decode": True},
            }  # fmt: skip
            url = f"{urls['self:par1']}/v1/chat/completions"
            with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=10) as answer:
                assert json.load(answer)["kv_transfer_params"]["do_remote_prefill"] is True
            assert told["bedrock"].startswith("http://127.0.0.1:")
            assert json.loads(_converse(told["bedrock"], told["bedrock_credentials"]))["output"]
            with urllib.request.urlopen(f"{told['control']}/fleet", timeout=10) as answer:
                assert [row["alive"] for row in json.load(answer)] == [True, True]
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(15) == 0


def _converse(stub: str, keys: Mapping[str, str]) -> bytes:
    """What the stand-in for Bedrock answers to who has nothing but what the command told."""
    url = f"{stub}/model/eu.anthropic.claude-sonnet-4-6/converse"
    body = b'{"messages": [{"role": "user", "content": [{"text": "hi"}]}]}'
    headers = {"content-type": "application/json", "host": urlsplit(stub).netloc}
    asked = AWSRequest("POST", url, headers, body)
    pair = Credentials(keys["aws_access_key_id"], keys["aws_secret_access_key"])
    SigV4Auth(pair, "bedrock", "eu-central-1").add_auth(asked)
    request = urllib.request.Request(url, body, dict(asked.headers))
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def test_the_keys_of_the_stand_in_are_told_to_people_too() -> None:
    words = [sys.executable, "-c", START, "simulate", "fleet", "self:fra1", "--bedrock"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            for line in running.stdout:
                if line.startswith("its credentials: "):
                    break
            keys = json.loads(line.removeprefix("its credentials: "))
        finally:
            running.send_signal(signal.SIGTERM)
    assert set(keys) == {"aws_access_key_id", "aws_secret_access_key"}


def _document(running: "subprocess.Popen[str]") -> str:
    """One JSON document from the program's output: it ends with a brace in column 1."""
    assert running.stdout is not None
    lines: list[str] = []
    for line in running.stdout:
        lines.append(line)
        if line == "}\n":
            break
    return "".join(lines)


def test_a_taken_port_fails(program: Domicile) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ran = program("simulate", "fleet", f"self:fra1={taken.getsockname()[1]}")
    assert ran.code == 1
    assert ran.err.startswith("error: can't listen")


@pytest.mark.parametrize(
    "words",
    [("self:fra1=x",), ("=80",), ("a=70000",), ("a", "a"), (), ("a", "--speed", "nan")],
)
def test_usage(domicile: Domicile, words: tuple[str, ...]) -> None:
    assert domicile("simulate", "fleet", *words).code == 2
