"""The inference routes as documented are those that exist, and what they say is true."""

from __future__ import annotations

import json
from pathlib import Path

from regions.model import Tier
from router.app import SURFACES
from router.errors import ANSWERS
from router.surfaces.described import paths
from tests.router.scripted import answer, scripted


def post(path: str) -> dict[str, object]:
    item = paths()[path]["post"]
    assert isinstance(item, dict)
    return item


def test_every_inference_route_is_described() -> None:
    assert set(paths()) == {surface.path for surface in SURFACES}


def test_it_is_json_and_every_error_code_stands_under_its_status() -> None:
    text = json.dumps(paths())
    assert all(f'"{code}"' in text for code in ANSWERS)
    responses = json.loads(text)["/v1/chat/completions"]["post"]["responses"]
    for code, told in ANSWERS.items():
        schema = responses[str(told.status)]["content"]["application/json"]["schema"]
        assert code in schema["properties"]["error"]["properties"]["code"]["enum"]


def test_the_tier_header_names_every_tier() -> None:
    tier, *_ = json.loads(json.dumps(post("/v1/chat/completions")["parameters"]))
    assert tier["schema"]["enum"] == [one.label for one in Tier]


async def test_the_receipt_headers_that_are_sent_are_described(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask()
    described = json.loads(json.dumps(post("/v1/chat/completions")["responses"]))["200"]["headers"]
    sent = {name for name in done.sent if name.startswith("x-")}
    assert sent <= set(described)
