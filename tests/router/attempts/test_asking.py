"""What leaves is what was planned, under the request's own limits."""

from __future__ import annotations

import json
from pathlib import Path

from router.config import Limits
from router.transport.messages import header
from tests.router.house import Plan
from tests.router.scripted import DONE, Reply, answer, event, scripted, stream

LIMITS = Limits.model_validate(
    {"first_token": "3s", "answer": "7s", "connect": "1s", "deadline": "20s"}
)


def both(host: str, number: int) -> Reply:
    return answer() if not number else stream(event(content="hi"), DONE)


async def test_what_is_asked_is_the_plan_within_its_limits(tmp_path: Path) -> None:
    async with scripted(tmp_path, both, Plan(limits=LIMITS)) as world:
        done = [await world.ask(), await world.ask(stream=True)]
        sent, given = world.transport.sent, world.transport.given
    assert [one.code for one in done] == ["ok", "ok"]
    assert [one.first_byte for one in given] == [7.0, 3.0]
    assert {one.connect for one in given} == {1.0}
    assert all(one.deadline > 0 for one in given)
    assert [json.loads(one.body).get("stream") for one in sent] == [None, True]
    told = [header(one.headers, b"x-request-id") for one in sent]
    assert told == [one.sent["x-request-id"].encode() for one in done]
