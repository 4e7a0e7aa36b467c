"""Prefill and decode at two endpoints: two steps, one request, inside one boundary."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from regions.health import Sign
from router.attempts.prefilling import KEEP
from router.audit.layout import Folder
from router.audit.verify import verify
from router.capacity.load import Held
from router.decisions.replay import Replayer
from router.narrowing.vetoes import Vetoes
from router.transport.messages import OutboundRequest
from tests.cases.built import BASELINE, Files, built, entries, outcomes
from tests.router.scripted import (
    DONE,
    JSON,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    lost,
    refused,
    stream,
)

THERE = {
    "do_remote_prefill": True, "do_remote_decode": False, "remote_block_ids": [[1, 2]],
    "remote_engine_id": "e", "remote_request_id": "r", "remote_host": "10.0.0.7",
    "remote_port": 5600, "tp_size": 1,
}  # fmt: skip
TEXT = "a prompt that is long enough to be computed elsewhere " * 20
HALF = (
    "  pre: {kind: vllm, region: self:fra1, urls: [{URLS}], model: tiny, operate: [DE],"
    " retain: nothing}\n"
)


def baseline(
    urls: str = '"http://pre1", "http://pre2"', least: int = 64, decode: str = '"http://fra1"'
) -> str:
    """`fra` computes its prompts at `pre`, which has two replicas."""
    text = BASELINE.replace(
        'fra: {kind: vllm, region: self:fra1, url: "http://fra1",',
        f"fra: {{kind: vllm, region: self:fra1, urls: [{decode}], "
        f"prefill: {{endpoint: pre, least: {least}}},",
    ).replace("endpoints:\n", "endpoints:\n" + HALF.replace("{URLS}", urls))
    assert text.count("prefill") == 1
    return text


def kept(number: int = 0, params: object = THERE) -> Reply:
    """A prefill server's answer."""
    body = json.loads(answer("x")._chunks[0])  # type: ignore[arg-type]
    return Reply(200, JSON, [json.dumps({**body, "kv_transfer_params": params}).encode()])


def script(**hosts: Callable[[int], Reply | Exception]) -> Callable[[str, int], Reply | Exception]:
    def said(host: str, number: int) -> Reply | Exception:
        if host in hosts:
            return hosts[host](number)
        return kept() if host.startswith("pre") else answer()

    return said


def plainly(number: int) -> Reply:
    return answer()


@asynccontextmanager
async def world(
    folder: Path, least: int = 64, **hosts: Callable[[int], Reply | Exception]
) -> AsyncIterator[Scripted]:
    async with built(folder, script(**hosts), Files(baseline=baseline(least=least))) as made:
        yield made


async def ask(made: Scripted, text: str = TEXT, **more: object) -> FakeExchange:
    messages = [{"role": "user", "content": text}]
    return await made.run(made.exchange("de", (), messages=messages, **more))


def said(request: OutboundRequest) -> tuple[str, Mapping[str, object]]:
    return request.origin.host, json.loads(request.body)


def steps(folder: Path, number: int = 0) -> list[tuple[str, str]]:
    attempts = outcomes(folder)[number]["attempts"]
    assert isinstance(attempts, list)
    return [(str(one["endpoint"]), str(one["result"])) for one in attempts if isinstance(one, dict)]


def sound(folder: Path) -> None:
    """The log verifies, and every decision in it is made again."""
    assert not verify(folder / "log").findings
    replayer = Replayer(Folder(folder / "log"))
    decided = [replayer.replay(one) for one in entries(folder) if one.kind == "decision"]
    assert decided
    assert not [one.differences for one in decided if one.differences]


async def test_the_prompt_goes_to_one_half_and_its_cache_to_the_other(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        done = await ask(made, max_completion_tokens=50, min_tokens=3, temperature=0.5)
        (first, prefill), (second, decode) = map(said, made.transport.sent)
    assert (done.code, done.sent["x-domicile-endpoint"]) == ("ok", "fra")
    assert first.startswith("pre")
    assert second == "fra1"
    same = {"model": "tiny", "messages": decode["messages"], "temperature": 0.5}
    assert prefill == {
        **same, "stream": False, "max_tokens": 1, "max_completion_tokens": 1,
        "kv_transfer_params": KEEP,
    }  # fmt: skip
    assert decode == {
        **same, "max_completion_tokens": 50, "min_tokens": 3, "kv_transfer_params": THERE,
    }  # fmt: skip
    assert b"kv_transfer_params" not in done.written
    assert steps(tmp_path) == [("pre", "prefilled"), ("fra", "ok")]
    sound(tmp_path)


async def test_a_stream_is_made_of_one_whole_step_and_one_streamed(tmp_path: Path) -> None:
    def streams(number: int) -> Reply:
        return stream(event(content="hi"), DONE)

    async with world(tmp_path, fra1=streams) as made:
        done = await ask(made, stream=True, stream_options={"include_usage": True})
        (_, prefill), (_, decode) = map(said, made.transport.sent)
    assert done.code == "ok"
    assert b"hi" in done.written
    assert (prefill["stream"], "stream_options" in prefill) == (False, False)
    assert (decode["stream"], decode["stream_options"]) == (True, {"include_usage": True})


async def test_both_calls_are_durable_before_they_are_sent(tmp_path: Path) -> None:
    written: list[tuple[str, list[str]]] = []
    async with world(tmp_path) as made:
        send = made.transport.send

        async def look(request: OutboundRequest, timeouts: object) -> object:
            if request.method == "POST":
                kinds = [one.kind for one in entries(tmp_path) if one.kind in DISPATCHED]
                written.append((request.origin.host[:3], kinds))
            return await send(request, timeouts)  # type: ignore[arg-type]

        made.transport.send = look  # type: ignore[method-assign, assignment]
        assert (await ask(made)).code == "ok"
    assert written == [("pre", ["decision"]), ("fra", ["decision", "attempt"])]
    decision = next(one for one in entries(tmp_path) if one.kind == "decision")
    assert decision.body["prefill"] == {"fra": "pre"}
    (attempt,) = (one for one in entries(tmp_path) if one.kind == "attempt")
    assert (attempt.body["endpoint"], attempt.body["number"]) == ("fra", 1)


DISPATCHED = ("decision", "attempt")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda number: failure(500),
        lambda number: failure(503),
        lambda number: failure(429),
        lambda number: refused(),
        lambda number: lost(),
        lambda number: Reply(200, JSON, [b"{"]),
        lambda number: stream(event(content="x"), DONE),
    ],
)
async def test_a_prefill_that_fails_is_tried_once_more_then_the_endpoint_computes(
    tmp_path: Path, wrong: Callable[[int], Reply | Exception]
) -> None:
    async with world(tmp_path, pre1=wrong, pre2=wrong) as made:
        done = await ask(made)
        hosts = [said(one)[0] for one in made.transport.sent]
        decode = said(made.transport.sent[-1])[1]
    assert done.code == "ok"
    assert sorted(hosts) == ["fra1", "pre1", "pre2"]
    assert hosts[-1] == "fra1"
    assert "kv_transfer_params" not in decode
    assert [name for name, _ in steps(tmp_path)] == ["pre", "pre", "fra"]
    sound(tmp_path)


async def test_one_that_works_after_one_that_fails(tmp_path: Path) -> None:
    async with world(tmp_path, pre1=lambda number: failure(500)) as made:
        for _ in range(4):
            assert (await ask(made)).code == "ok"
        fetched = [said(one)[1] for one in made.transport.sent if one.origin.host == "fra1"]
    assert [one.get("kv_transfer_params") for one in fetched] == [THERE] * 4


async def test_what_fails_in_both_steps_stays_inside_the_budget(tmp_path: Path) -> None:
    async with world(
        tmp_path,
        pre1=lambda n: failure(500),
        pre2=lambda n: failure(500),
        fra1=lambda n: failure(500),
    ) as made:
        budget = made.router.pipeline._steps.dispatcher.budget  # type: ignore[attr-defined]
        while budget.spend("de"):
            pass
        done = await ask(made)
        assert done.status == 502
        hosts = [said(one)[0][:3] for one in made.transport.sent]
    assert hosts == ["pre", "fra"], "no retry was left; the endpoint itself was not asked before"


async def test_a_half_that_fails_costs_no_answer_when_retries_are_spent(tmp_path: Path) -> None:
    wrong = lambda number: failure(500)  # noqa: E731
    async with world(tmp_path, pre1=wrong, pre2=wrong) as made:
        budget = made.router.pipeline._steps.dispatcher.budget  # type: ignore[attr-defined]
        while budget.spend("de"):
            pass
        assert (await ask(made)).code == "ok"
        assert not budget.spend("de")
    assert [name for name, _ in steps(tmp_path)] == ["pre", "fra"]
    sound(tmp_path)


@pytest.mark.parametrize("mistaken", [False, True])
async def test_what_is_refused_with_a_cache_is_the_clients_mistake_only_without_one(
    tmp_path: Path, mistaken: bool
) -> None:
    """An engine that can't read our `kv_transfer_params` answers 400 as it does to its client."""

    def decode(number: int) -> Reply:
        sent = said(made.transport.sent[-1])[1]
        return failure(400) if mistaken or "kv_transfer_params" in sent else answer()

    async with world(tmp_path, fra1=decode) as made:
        budget = made.router.pipeline._steps.dispatcher.budget  # type: ignore[attr-defined]
        while budget.spend("de"):
            pass
        done = await ask(made)
        hosts = [said(one)[0][:3] for one in made.transport.sent]
        health, now = made.router.live.health, asyncio.get_running_loop().time()
        assert not health.standing("fra", now).turn
    assert done.code == ("upstream_refused" if mistaken else "ok")
    assert hosts == ["pre", "fra", "fra"]
    last = ("fra", "client") if mistaken else ("fra", "ok")
    assert steps(tmp_path) == [("pre", "prefilled"), ("fra", "cache_refused"), last]
    sound(tmp_path)


async def test_the_clients_mistake_is_told_by_the_endpoint_and_harms_nobody(tmp_path: Path) -> None:
    wrong = lambda number: failure(400)  # noqa: E731
    async with world(tmp_path, pre1=wrong, pre2=wrong, fra1=wrong) as made:
        for _ in range(6):
            assert (await ask(made)).status == 400
        health, now = made.router.live.health, asyncio.get_running_loop().time()
        assert not any(health.standing(key, now).turn for key in ("pre/0", "pre/1", "fra"))
    hosts = [said(one)[0][:3] for one in made.transport.sent]
    assert hosts == ["pre", "fra"] * 6


@pytest.mark.parametrize("params", [None, {}, "there", [1]])
async def test_an_engine_that_hands_nothing_over_is_no_failure(
    tmp_path: Path, params: object
) -> None:
    async with world(tmp_path, pre1=lambda n: kept(n, params), pre2=lambda n: kept(n, params)) as m:
        done = await ask(m)
        assert done.code == "ok"
        assert "kv_transfer_params" not in said(m.transport.sent[-1])[1]
    assert steps(tmp_path) == [("pre", "prefilled"), ("fra", "ok")]


@pytest.mark.parametrize(
    ("text", "more"),
    [("short", {}), (TEXT, {"n": 2}), (TEXT, {"prompt_logprobs": 1}), (TEXT, {"store": True})],
)
async def test_what_does_not_pay_or_does_not_do_is_computed_at_once(
    tmp_path: Path, text: str, more: dict[str, object]
) -> None:
    async with world(tmp_path) as made:
        assert (await ask(made, text, **more)).code == "ok"
        assert [said(one)[0] for one in made.transport.sent] == ["fra1"]


async def test_a_client_does_not_say_where_the_cache_is(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        done = await ask(made, kv_transfer_params=THERE)
        assert done.code == "parameter_changes_place"
        assert made.transport.sent == []


async def test_a_quarantined_half_is_not_asked(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        made.router.live.vetoes.put("quarantine", Vetoes(endpoints={"pre": "found elsewhere"}))
        assert (await ask(made)).code == "ok"
        assert [said(one)[0] for one in made.transport.sent] == ["fra1"]


async def test_a_cache_serves_one_request_that_was_sent(tmp_path: Path) -> None:
    """After a decode that may have fetched it, the next endpoint is given no such cache."""
    text = baseline(decode='"http://fra1", "http://fra2"')
    for wrong, again in ((failure(500), False), (refused(), True)):
        folder = tmp_path / str(again)
        folder.mkdir()

        def said_by(host: str, number: int, wrong: Reply | Exception = wrong) -> Reply | Exception:
            if host.startswith("pre"):
                return kept()
            first = not [one for one in made.transport.sent[:-1] if one.origin.host[:3] == "fra"]
            return wrong if first else answer()

        async with built(folder, said_by, Files(baseline=text)) as made:
            assert (await ask(made)).code == "ok"
            hosts = [said(one)[0][:3] for one in made.transport.sent]
            assert hosts == ["pre", "fra", "fra"]
            same = made.transport.sent[1].origin == made.transport.sent[2].origin
            assert same is not again  # an error: the same replica, without the cache
            last = said(made.transport.sent[-1])[1]
            assert ("kv_transfer_params" in last) is again
        sound(folder)


async def test_nothing_is_left_held_however_it_ends(tmp_path: Path) -> None:
    never = asyncio.Event()
    async with world(tmp_path) as made:
        send = made.transport.send

        async def hang(request: OutboundRequest, timeouts: object) -> object:
            if request.method == "POST" and request.origin.host.startswith("pre"):
                made.transport.sent.append(request)
                await never.wait()
            return await send(request, timeouts)  # type: ignore[arg-type]

        made.transport.send = hang  # type: ignore[method-assign, assignment]
        exchange = made.exchange("de", messages=[{"role": "user", "content": TEXT}])
        task = asyncio.create_task(made.run(exchange))
        while not made.transport.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        inflight = made.router.live.inflight
        assert {key.partition("/")[0] for key in inflight.keys} == {"fra", "pre"}
        (place,) = (key for key in inflight.keys if key.startswith("pre"))
        assert inflight.work("fra", 0.0, 0.0) == 0  # its prompt is work elsewhere
        assert inflight.work(place, 0.0, 0.0) > 200
        exchange.leave()
        await asyncio.wait_for(task, 2)
        assert inflight.keys == ()


async def test_both_pools_are_balanced_by_what_they_do(tmp_path: Path) -> None:
    """Prompts go where least is to compute, answers where least is under way."""
    text = baseline(decode='"http://fra1", "http://fra2"')
    async with built(tmp_path, script(), Files(baseline=text)) as made:
        inflight, now = made.router.live.inflight, asyncio.get_running_loop().time()
        held: list[Held] = [inflight.enter("pre/0", 5000, 5000, now)]
        held.append(inflight.enter("fra/1", 90_000, 0, now))
        for number in range(4):
            assert (await ask(made, f"{number} {TEXT}")).code == "ok"
        assert {said(one)[0] for one in made.transport.sent} == {"pre2", "fra1"}
        for one in held:
            one.close()


async def test_a_request_waits_until_both_halves_have_room(tmp_path: Path) -> None:
    text = baseline('"http://pre1"').replace("pre: {", "pre: {capacity: {requests: 1}, ")
    async with built(tmp_path, script(), Files(baseline=text)) as made:
        inflight, now = made.router.live.inflight, asyncio.get_running_loop().time()
        held = inflight.enter("pre", 500, 500, now)
        asking = asyncio.create_task(ask(made))
        await asyncio.sleep(0.1)
        assert not asking.done()
        assert made.transport.sent == []
        held.close()
        assert (await asyncio.wait_for(asking, 2)).code == "ok"
        assert [said(one)[0] for one in made.transport.sent] == ["pre1", "fra1"]


async def test_nobody_waits_for_a_half_that_is_marked(tmp_path: Path) -> None:
    text = baseline('"http://pre1"').replace("pre: {", "pre: {capacity: {requests: 1}, ")
    async with built(tmp_path, script(), Files(baseline=text)) as made:
        live, now = made.router.live, asyncio.get_running_loop().time()
        held = live.inflight.enter("pre", 500, 500, now)
        for _ in range(5):
            live.health.observe("pre", Sign.DEAD, now)
        assert (await asyncio.wait_for(ask(made), 2)).code == "ok"
        assert [said(one)[0] for one in made.transport.sent] == ["fra1"]
        assert live.inflight.work("fra", now, 0.0) == 0
        held.close()
