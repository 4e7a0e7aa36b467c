"""A client can't name its request to an engine, and so hit other clients' requests there.

SGLang keeps running requests by `rid`: two equal ones crash or hang it (sgl-project/sglang#19035),
and its abort of a client that left ends every request whose name begins alike.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cases.built import built
from tests.router.scripted import answer


@pytest.mark.parametrize("value", ["", "x", None, 5, ["x"]])
@pytest.mark.parametrize("name", ["rid", "request_id"])
async def test_engines_name_requests_themselves(tmp_path: Path, name: str, value: object) -> None:
    tools = [{"type": "function", "function": {"name": "x", "parameters": {name: "kept"}}}]
    async with built(tmp_path, lambda host, number: answer()) as world:
        plain = await world.ask("eu", tools=tools)
        named = await world.ask("eu", tools=tools, **{name: value})  # type: ignore[arg-type]
        assert (plain.status, named.status) == (200, 200)
        without, sent = (json.loads(one.body) for one in world.transport.sent)
        assert sent == without
        assert sent["tools"] == tools
