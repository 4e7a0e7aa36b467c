"""Neighbours of the reports on failover: a request that is too long for one endpoint, or whose
provider is not paid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases.built import BASELINE, Files, built, outcomes
from tests.router.scripted import DONE, JSON, Reply, answer, event, failure, stream

TOLD = {
    "type": "BadRequestError",
    "code": 400,
    "message": "This model's maximum context length is {} tokens. However, you asked for PROMPT",
}


def windows(**tokens: int) -> Files:
    """Files in which endpoints declare these windows."""
    text = BASELINE
    for name, window in tokens.items():
        text = text.replace(
            f"  {name}: {{kind: vllm,", f"  {name}: {{kind: vllm, context: {window},"
        )
    return Files(baseline=text)


def too_long(window: int, streamed: bool = False) -> Reply:
    error = {**TOLD, "message": str(TOLD["message"]).format(window)}
    said = json.dumps({"error": error}).encode()
    return stream(b"data: " + said + b"\n\n") if streamed else Reply(400, JSON, [said])


@pytest.mark.parametrize(
    ("declared", "told", "asked", "status"),
    [
        ({"fra": 8192, "par": 32768}, 8192, "fra1 par1", 200),
        ({"fra": 8192, "par": 32768, "iad": 131072}, 8192, "fra1 par1", 200),
        ({"fra": 32768, "par": 131072}, 4096, "fra1 par1", 200),  # it takes less than declared
        ({"par": 32768}, 4096, "fra1 par1", 200),
        ({"fra": 8192, "par": 8192}, 8192, "fra1", 400),  # which would say the same
        ({"fra": 8192, "par": 4096}, 8192, "fra1", 400),
        ({"fra": 8192}, 8192, "fra1", 400),  # of the other nothing is known
        ({"par": 32768}, 0, "fra1", 400),  # of this one nothing is
        ({}, 8192, "fra1", 400),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_one_with_a_larger_window_is_asked(
    tmp_path: Path, declared: Mapping[str, int], told: int, asked: str, status: int, streamed: bool
) -> None:
    """Tokens are estimated before: of code and Chinese there are twice as many."""

    def script(host: str, number: int) -> Reply:
        if host == "fra1":
            return too_long(told, streamed) if told else failure(400)
        return stream(event(content="b"), DONE) if streamed else answer()

    async with built(tmp_path, script, windows(**declared)) as world:
        done = await world.ask("eu", stream=streamed)
        assert done.status == status
        assert " ".join(one.origin.host for one in world.transport.sent) == asked
        live = world.router.live
        assert live.health.marked(live.loop_time()) == ()
    (outcome,) = outcomes(tmp_path)
    attempts = outcome["attempts"]
    assert isinstance(attempts, list)
    assert len(attempts) == len(asked.split())


@pytest.mark.parametrize(
    ("larger", "status", "code"),
    [
        (lambda: too_long(32768), 400, "upstream_refused"),
        (lambda: failure(503, retry_after="7"), 503, "upstream_unavailable"),
        (lambda: failure(500), 502, "bad_answer"),
    ],
)
async def test_what_is_told_when_that_fails_too(
    tmp_path: Path, larger: object, status: int, code: str
) -> None:
    """It is too long if it is for all; else the larger one may be well again."""
    assert callable(larger)
    files = windows(fra=8192, par=32768)
    script = lambda h, n: too_long(8192) if h == "fra1" else larger()  # noqa: E731
    async with built(tmp_path, script, files) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (status, code)
        error = json.loads(done.written)["error"]
        assert "PROMPT" not in error["message"]
        assert [one["endpoint"] for one in error["reasons"]][:2] == ["fra", "par"]


async def test_none_outside_the_boundary_is_asked_however_large(tmp_path: Path) -> None:
    files = windows(fra=8192, par=8192, iad=131072)
    async with built(tmp_path, lambda h, n: too_long(8192), files) as world:
        assert (await world.ask("eu")).status == 400
        assert Counter(one.origin.host for one in world.transport.sent) == {"fra1": 1}


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
async def test_what_is_not_paid_is_no_load_that_passes(tmp_path: Path, code: str) -> None:
    said = json.dumps({"error": {"code": code, "type": code, "message": "x"}}).encode()

    def script(host: str, number: int) -> Reply:
        return Reply(429, JSON, [said]) if host == "fra1" else answer()

    async with built(tmp_path, script) as world:
        assert (await world.ask("eu")).sent["x-domicile-endpoint"] == "par"
    (outcome,) = outcomes(tmp_path)
    attempts = outcome["attempts"]
    assert isinstance(attempts, list)
    assert (attempts[0]["result"], attempts[0]["status"]) == ("auth", 429)
