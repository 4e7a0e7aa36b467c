"""The filter: what is inside can also serve the call, or the code says what was in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.router.house import Plan
from tests.router.scripted import Reply, answer, scripted

IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": ""}}]}]


def good(host: str, number: int) -> Reply:
    return answer()


def image(url: str) -> list[dict[str, object]]:
    part = {"type": "image_url", "image_url": {"url": url}}
    return [{"role": "user", "content": [part]}]


async def test_a_url_that_the_endpoint_would_fetch_is_refused(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        done = await world.ask(messages=image("https://tracker.example.com/x.png"))
        assert (done.status, done.code) == (403, "no_endpoint_inside_boundary")
        assert world.transport.sent == []
        data = await world.ask(messages=image("data:image/png;base64,AAAA"))
        assert data.code == "ok"


async def test_a_place_parameter_is_refused_by_name(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        done = await world.ask(kv_transfer_params={"remote_host": "10.0.0.1"})
        assert (done.status, done.code) == (400, "parameter_changes_place")
        assert b"`kv_transfer_params` would change where this request goes" in done.written
        assert world.transport.sent == []


async def test_unknown_parameters_pass_to_self_operated_endpoints(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        done = await world.ask(some_new_vllm_option=3)
        assert done.code == "ok"
        assert b"some_new_vllm_option" in world.transport.sent[0].body


@pytest.mark.parametrize("feature", ["audio"])
async def test_a_feature_nobody_offers(tmp_path: Path, feature: str) -> None:
    part = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
    async with scripted(tmp_path, good) as world:
        done = await world.ask(messages=[{"role": "user", "content": [part]}])
        assert (done.status, done.code) == (400, "capability_not_available")


async def test_a_prompt_longer_than_every_context(tmp_path: Path) -> None:
    async with scripted(tmp_path, good, Plan(context=100)) as world:
        done = await world.ask(messages=[{"role": "user", "content": "word " * 1000}])
        assert (done.status, done.code) == (400, "capability_not_available")
        assert (await world.ask()).code == "ok"


async def test_footprints_are_remembered_by_what_moves_bytes_only(tmp_path: Path) -> None:
    async with scripted(tmp_path, good) as world:
        for n in range(50):
            exchange = world.exchange("eu", (), **{f"parameter_{n}": n})
            await world.run(exchange)
        assert len(world.router.filtering.footprints) == 3
