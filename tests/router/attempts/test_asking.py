"""What leaves is what was planned, under the request's own limits."""

from __future__ import annotations

import json
from pathlib import Path

from router.config import Limits
from router.transport.messages import header
from tests.cases.built import Files, built, entries
from tests.router.attempts.test_prefilling import TEXT, baseline, script, sound
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


async def test_both_halves_keep_tenants_apart_in_one_way(tmp_path: Path) -> None:
    text = baseline().replace("kind: vllm,", "kind: vllm, cache: tenant,")
    async with built(tmp_path, script(), Files(baseline=text)) as made:
        salts, heard = made.router.live.snapshot.salts, b""
        for tenant in ("de", "eu"):
            for own in ({}, {"cache_salt": salts.of("de")}):
                messages = [{"role": "user", "content": TEXT}]
                done = await made.run(made.exchange(tenant, (), messages=messages, **own))
                assert done.code == "ok"
                heard += done.written
        sent = [json.loads(request.body)["cache_salt"] for request in made.transport.sent]
    assert len(sent) == 8
    assert sent[::2] == sent[1::2]
    assert len(set(sent)) == 4
    assert sent[::2].count(salts.of("de")) == 1
    assert not [salt for salt in sent if salt.encode() in heard]
    kept = json.dumps([dict(one.body) for one in entries(tmp_path)], default=str)
    assert not [salt for salt in sent if salt in kept]
    sound(tmp_path)
