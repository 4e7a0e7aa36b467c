"""An engine that caches media under their client's name for them gives no tenant another's.

vLLM takes the `uuid` of a part for the key of its caches and doesn't look at the medium; a part
with nothing but that is answered from what anyone sent under it (vllm-project/vllm#55439, #55547).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.built import built, entries
from tests.router.scripted import Scripted, answer

NAME = "passport-4711"
IMAGE = {"url": "data:image/png;base64,aaaa"}
PARTS: dict[str, dict[str, object]] = {
    "with its image": {"type": "image_url", "image_url": IMAGE, "uuid": NAME},
    "with nothing": {"type": "image_url", "image_url": None, "uuid": NAME},
    "without a member": {"type": "image_url", "uuid": NAME},
    "computed before": {"type": "image_embeds", "image_embeds": "aaaa", "uuid": NAME},
    "in a tool's result": {
        "type": "tool_result",
        "content": [{"type": "image_url", "image_url": IMAGE, "uuid": NAME}],
    },
    "of an unknown kind": {"type": "hologram", "uuid": NAME},
}


def names(document: object) -> Iterator[object]:
    """Every `uuid` of a document."""
    if isinstance(document, dict):
        if "uuid" in document:
            yield document["uuid"]
        document = list(document.values())
    if isinstance(document, list):
        for one in document:
            yield from names(one)


async def sent(world: Scripted, tenant: str, part: object, **more: object) -> dict[str, object]:
    """The body that an engine gets."""
    world.transport.sent.clear()
    messages = [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, part]}]
    asked = await world.ask(tenant, messages=messages, **more)  # type: ignore[arg-type]
    assert asked.status == 200, asked.written
    body: dict[str, object] = json.loads(world.transport.sent[-1].body)
    return body


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
async def test_a_name_reaches_what_its_own_tenant_sent_alone(
    tmp_path: Path, part: dict[str, object]
) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        first = await sent(world, "eu", part)
        again = await sent(world, "eu", part)
        other = await sent(world, "world", part)
        apart = await sent(world, "eu", part, cache_salt="a user")
        [one], [same], [theirs], [users] = map(list, map(names, (first, again, other, apart)))
        assert one == same
        assert len({one, theirs, users, NAME}) == 4
        # Who learns what left for an engine can't send it for another tenant either.
        [said] = names(await sent(world, "world", {**PARTS["with nothing"], "uuid": one}))
        assert said != one
    assert NAME not in json.dumps([dict(entry.body) for entry in entries(tmp_path)], default=str)


async def test_all_else_passes_as_it_was(tmp_path: Path) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        with_it = await sent(world, "eu", PARTS["with its image"])
        without = await sent(world, "eu", {"type": "image_url", "image_url": IMAGE, "uuid": None})
        [name] = names(with_it)
        assert json.dumps(with_it).replace(json.dumps(name), "null") == json.dumps(without)
        tools = [{"type": "function", "function": {"name": "x", "parameters": {"uuid": NAME}}}]
        text = await sent(world, "eu", {"type": "text", "text": "uuid"}, tools=tools)
        assert text["tools"] == tools


@pytest.mark.parametrize("name", [5, ["a"], {"a": 1}, False])
async def test_what_is_no_name_is_refused(tmp_path: Path, name: object) -> None:
    async with built(tmp_path, lambda host, number: answer()) as world:
        content = [{"type": "image_url", "image_url": IMAGE, "uuid": name}]
        asked = await world.ask("eu", messages=[{"role": "user", "content": content}])
        assert (asked.status, asked.code) == (400, "invalid_request")
        assert world.transport.sent == []
