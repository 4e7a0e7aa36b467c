"""What one endpoint can't be asked, another may: found while a request is encoded for the first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regions.health import Sign
from router.answers.outcomes import Inexpressible
from router.types import Plan
from tests.cases.built import BASELINE, MAIN, Files, built, outcomes
from tests.garbage import let_go
from tests.router.scripted import FakeExchange, Scripted, answer, failure, refused

SCHEMA = {"type": "object"}
FORMAT = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": SCHEMA}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]
FEATURES = BASELINE.replace(
    "retention_mode: none}", "retention_mode: none, features: [tools, json_schema]}"
)


async def bedrock_first(world: Scripted) -> FakeExchange:
    """Bedrock keeps a strict schema beside tools only by halves, which the filter doesn't see."""
    live = world.router.live
    live.health.observe("fra", Sign.LOAD, live.loop_time(), 60.0)
    return await world.ask("world", model="claude", tools=TOOLS, response_format=FORMAT)


@pytest.mark.parametrize("attempts", [8, 1])
async def test_another_endpoint_inside_takes_it(tmp_path: Path, attempts: int) -> None:
    """Even as the only attempt that may be made: nothing was sent before."""
    files = Files(MAIN.replace("attempts: 8", f"attempts: {attempts}"), FEATURES)
    async with built(tmp_path, lambda h, n: answer(), files) as world:
        done = await bedrock_first(world)
        assert (done.status, done.sent["x-domicile-endpoint"]) == (200, "fra")
        assert len(world.transport.sent) == 1
        assert world.router.live.health.standing("sonnet-eu", 0.0).name == "GOOD"
    (outcome,) = outcomes(tmp_path)
    told = outcome["attempts"]
    assert isinstance(told, list)
    assert [one["result"] for one in told] == ["inexpressible", "ok"]


@pytest.mark.parametrize(
    ("made", "status", "code"),
    [
        (lambda: failure(400), 400, "upstream_refused"),
        (lambda: failure(503), 503, "upstream_unavailable"),
        (refused, 503, "upstream_unavailable"),
    ],
)
async def test_what_the_other_fails_by_is_told(
    tmp_path: Path, made: object, status: int, code: str
) -> None:
    assert callable(made)
    async with built(tmp_path, lambda h, n: made(), Files(baseline=FEATURES)) as world:
        done = await bedrock_first(world)
        assert (done.status, done.code) == (status, code)


async def test_where_none_takes_it_the_client_hears_why(tmp_path: Path) -> None:
    """And no error is kept by what it went through."""
    baseline = FEATURES.replace("[sonnet-eu, fra]", "[sonnet-eu, sonnet-global]")
    async with built(tmp_path, lambda h, n: answer(), Files(baseline=baseline)) as world:
        await bedrock_first(world)
        async with let_go(Inexpressible, Plan):
            done = await bedrock_first(world)
        error = json.loads(done.written)["error"]
        assert (done.status, error["param"]) == (400, "response_format")
        assert {one["endpoint"]: one["result"] for one in error["reasons"]} == {
            "sonnet-eu": "inexpressible", "sonnet-global": "inexpressible",
        }  # fmt: skip
        assert world.transport.sent == []
