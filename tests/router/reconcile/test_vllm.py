from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from router.ids import Ids
from router.reconcile.model import UNKNOWN_TIME, Call
from router.reconcile.times import instant
from router.reconcile.vllm import calls, ours

ID = "0192f0c1-aaaa-7bbb-8ccc-0123456789ab"
NEAR = instant("2027-01-02T00:00:00Z")


def read(tmp_path: Path, text: str, endpoint: str = "") -> list[Call]:
    path = tmp_path / "log"
    path.write_text(text)
    found = list(calls(path, endpoint, NEAR))
    assert all(isinstance(one, Call) for one in found)
    return [one for one in found if isinstance(one, Call)]


def test_the_request_log_names_the_request_and_keeps_no_prompt(tmp_path: Path) -> None:
    line = (
        f"(APIServer pid=1) INFO 12-31 23:59:58 [logger.py:40] Received request chatcmpl-{ID}: "
        "prompt: 'canary', params: SamplingParams(n=1)\n"
        'INFO:     10.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    )
    (call,) = read(tmp_path, line, "fra")
    assert (call.request, call.endpoint, call.ran) == (ID, "fra", True)
    assert call.time == instant("2026-12-31T23:59:58Z")
    assert "canary" not in repr(call)


def test_access_lines_alone_are_calls_without_id_or_time(tmp_path: Path) -> None:
    text = "\n".join(
        f'INFO:     10.0.0.1:5 - "{what} HTTP/1.1" {status} OK'
        for what, status in (
            ("POST /v1/chat/completions", 200), ("GET /health", 200), ("POST /v1/embeddings", 200),
            ("POST /tokenize", 200), ("POST /v1/completions?x=1", 400),
        )
    )  # fmt: skip
    found = read(tmp_path, text)
    assert [(one.where.number, one.ran, one.time) for one in found] == [
        (1, True, UNKNOWN_TIME), (3, True, UNKNOWN_TIME), (5, False, UNKNOWN_TIME),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [
        {"time": "2026-11-29T20:04:20Z", "x_request_id": ID, "path": "/v1/chat/completions",
         "status": 200},
        {"@timestamp": "2026-11-29T20:04:20Z", "request_id": ID, "status": "200",
         "request": "POST /v1/chat/completions HTTP/1.1"},
        {"ts": 1_795_982_660, "request": {"uri": "/v1/messages?beta=true", "x-request-id": ID}},
    ],
)  # fmt: skip
def test_access_logs_of_proxies(tmp_path: Path, row: dict[str, object]) -> None:
    (call,) = read(tmp_path, json.dumps(row) + '\n{"path": "/metrics"}\n{"broken\n[]\n')
    assert (call.request, call.ran) == (ID, True)
    assert call.time == instant("2026-11-29T20:04:20Z")


def test_names_of_requests() -> None:
    assert ours(f"cmpl-{ID}-0") == ID
    assert ours("chatcmpl-2f958238775949b7b02fb311fd07b471") == ""
    assert ours("chatcmpl-probe") == "probe"
    assert ours("chatcmpl-probed") == ""


def test_every_id_that_this_router_gives_is_known_again() -> None:
    random = Random(4)
    for _ in range(500):
        own = Ids(lambda: random.uniform(0, 2**37), random.randbytes, 1)()
        assert ours(f"chatcmpl-{own}") == own
        assert ours(f"cmpl-{own}-0") == own
        assert ours(f"{own}x") == ours(f"x{own}") == ours(own[:-1]) == ours(own.upper()) == ""
    strangers = ("".join(random.choices("0123456789abcdefghijklmnopqrstuv", k=26))
                 for _ in range(500))  # fmt: skip
    assert sum(ours(one) != "" for one in strangers) < 10, "eight of its bits are fixed"


def test_stamps_that_are_none(tmp_path: Path) -> None:
    (call,) = read(tmp_path, "INFO 13-45 99:99:99 [l.py:1] Received request chatcmpl-x: p\n")
    assert call.time == UNKNOWN_TIME


@pytest.mark.parametrize(
    "path",
    ["/invocations", "/inference/v1/generate", "/pooling", "/classify", "/v1/score", "/v2/rerank",
     "/v1/audio/transcriptions", "/v1/chat/complet%69ons", "/v1/completions/"],
)  # fmt: skip
def test_every_path_that_takes_a_prompt_is_a_call(tmp_path: Path, path: str) -> None:
    (call,) = read(tmp_path, json.dumps({"path": path, "status": 200}) + "\n")
    assert call.ran
    if not path.endswith("/"):  # the server sends that one home, to the same without
        (call,) = read(tmp_path, f'INFO:     10.0.0.1:5 - "POST {path} HTTP/1.1" 200 OK\n')
        assert call.ran
