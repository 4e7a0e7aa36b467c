"""The report about the place that is told (`reports.yaml`): it comes from what was called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.built import BASELINE, BEDROCK, Files, built
from tests.cases.built import outcomes as outcomes_of
from tests.router.scripted import JSON, Reply, answer, event, failure, lost, stream


def good(host: str, number: int) -> Reply:
    return answer()


# --- residency-20 -----------------------------------------------------------------------------


async def test_residency_20_the_header_tells_what_was_called(tmp_path: Path) -> None:
    regions = {"fra1": "self:fra1", "par1": "self:par1", "iad1": "self:iad1"}
    for down in ((), ("fra1",), ("fra1", "par1")):
        folder = tmp_path / f"down{len(down)}"
        folder.mkdir()

        def script(host: str, number: int, down: tuple[str, ...] = down) -> Reply:
            return failure(503) if host in down else answer()

        async with built(folder, script) as world:
            hint = (
                (b"x-domicile-region", b"self:par1"),
                (b"x-domicile-attr-data_class", b"public"),
            )
            done = await world.ask("world", hint, stream=False)
            called = world.transport.sent[-1].origin.host
            assert done.sent["x-domicile-region"] == regions[called]
            assert f"self:{called}" == done.sent["x-domicile-region"]
        ran = outcomes_of(folder)[0]["ran"]
        assert isinstance(ran, dict)
        assert ran["process"] == [regions[called]]


async def test_residency_20_where_the_vendor_does_not_tell_no_region_is_claimed(
    tmp_path: Path,
) -> None:
    told = {"output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1}}  # fmt: skip
    reply = json.dumps(told).encode()
    async with built(tmp_path, lambda host, number: Reply(200, JSON, [reply])) as world:
        done = await world.ask("eu", model="sonnet")
        assert done.code == "ok"
        assert "x-domicile-region" not in done.sent
        members = done.sent["x-domicile-footprint"].split(",")
        assert "aws:eu-central-1" in members
        assert len(members) > 1
        assert world.transport.sent[0].origin.host == BEDROCK
    assert outcomes_of(tmp_path)[0]["place"] == "not observable"


@pytest.mark.parametrize(
    "url", ["https://api.openai.com/v1", "https://openrouter.ai/api/v1", "https://api.mistral.ai"]
)
async def test_residency_20_a_pair_that_contradicts_itself_is_refused_before_the_call(
    tmp_path: Path, url: str
) -> None:
    """A vendor's host under the label of a region of one's own."""
    wrong = BASELINE.replace('url: "http://fra1"', f'url: "{url}"')
    files = Files(baseline=wrong.replace("[fra, par, iad]", "[fra]"))
    async with built(tmp_path, good, files) as world:
        done = await world.ask("eu")
        assert (done.status, done.code) == (403, "no_endpoint_inside_boundary")
        assert "x-domicile-region" not in done.sent
        assert world.transport.sent == []


async def test_residency_20_a_streams_place_is_told_before_its_first_byte(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        opening = event(role="assistant", content="")
        return stream(opening, lost()) if host == "fra1" else stream(event(content="x"), lost())

    async with built(tmp_path, script) as world:
        done = await world.ask("eu", stream=True)
        assert (done.sent["x-domicile-region"], done.sent["x-domicile-attempts"]) == (
            "self:par1",
            "2",
        )
