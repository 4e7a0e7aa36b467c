"""Neighbours of the reports on probes and balancing: who is found, who is well, how full it is."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from regions.fleet import Reading, parse_metrics
from router.providers.base import Bearer, Target
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from router.watch import probe
from router.watch.kubernetes import slices
from router.watch.probe import Prober
from router.watch.scrape import Scraper
from tests.router.scripted import (
    JSON,
    Reply,
    Scripted,
    ScriptedTransport,
    answer,
    failure,
    refused,
    scripted,
    silent,
)


class Slow(ScriptedTransport):
    """A server that says `health` after a while, and nothing about its engine."""

    def __init__(self, health: Reply | None, canary: Reply) -> None:
        super().__init__(lambda host, number: copy.deepcopy(canary))  # each reads it
        self.health = health

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        if request.target == "/metrics":
            raise refused()
        if request.target == "/health":
            await asyncio.sleep(probe.HEALTH_TIME)
            if self.health is None:
                raise silent()
            return self.health
        return await super().send(request, timeouts)


def prober(world: Scripted, transport: Slow) -> Prober:
    live = world.router.live
    return Prober(live, transport, Scraper(live, transport), 1.0)


def works(world: Scripted, how: str, number: int) -> None:
    """Let every engine be heard of, by its answers or by its counters."""
    live = world.router.live
    for key in live.snapshot.replica_keys:
        if how == "answers":
            live.silence._heard[key] = live.loop_time()
        elif how == "counters":
            live.readings.report(key, Reading(live.loop_time(), progress=float(number)))


@pytest.mark.parametrize(
    ("how", "health", "marked"),
    [
        ("answers", None, False),
        ("counters", None, False),
        ("nothing", None, True),
        ("answers", 503, True),  # what a server says of itself counts
    ],
)
async def test_a_server_that_is_too_busy_to_say_so_is_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, health: int | None, marked: bool
) -> None:
    """Long prompts keep it from its health route: all its load would fall on the others, and then
    they would be as slow."""
    monkeypatch.setattr(probe, "HEALTH_TIME", 0.1)
    async with scripted(tmp_path, lambda h, n: answer()) as world:
        said = None if health is None else failure(health)
        one = prober(world, Slow(said, answer()))
        for number in range(4):
            look = asyncio.create_task(one.look())
            await asyncio.sleep(0.05)
            works(world, how, number)
            await look
        live = world.router.live
        assert bool(live.health.marked(live.loop_time())) is marked


WHERE = {
    "http://fra1": "",
    "http://fra1/v1": "",
    "http://fra1/openai/v1/": "",
    "http://fra1/team-a/v1": "/team-a",
    "http://fra1/team-a": "/team-a",
    "http://fra1/v1?key=k": "?key=k",
}


@pytest.mark.parametrize("url", WHERE)
@pytest.mark.parametrize("key", [None, "sk-own"])
async def test_a_server_is_asked_how_it_is_as_clients_requests_are_sent_to_it(
    tmp_path: Path, url: str, key: str | None
) -> None:
    """vllm-project/production-stack#631, vllm-project/router#159: asked without its key, any server
    behind a proxy that wants one was marked for ever. And of one host with a path for each, all
    were as whoever answers at its root."""
    sent: list[OutboundRequest] = []

    class Guarded(ScriptedTransport):
        async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            sent.append(request)
            held = dict(request.headers).get(b"authorization")
            fits = held == (None if key is None else b"Bearer " + key.encode())
            return Reply(200 if fits else 401)

    async with scripted(tmp_path, lambda h, n: answer()) as world:
        live, transport = world.router.live, Guarded(lambda h, n: answer())
        target = Target(url, None if key is None else Bearer(key))
        live.snapshot = replace(live.snapshot, targets={"fra1": {"fra1": target}})
        scraper = Scraper(live, transport)
        await Prober(live, transport, scraper, 1.0).look()
        await scraper.look()
        assert not live.health.marked(live.loop_time())
    below, _, query = WHERE[url].partition("?")
    rest = f"?{query}" if query else ""
    assert [one.target for one in sent] == [f"{below}/health{rest}", f"{below}/metrics{rest}"]


REASONING = (
    b'{"object":"chat.completion","choices":[{"index":0,"finish_reason":"length",'
    b'"message":{"role":"assistant","content":null}}]}'
)
"""One token of a model that thinks first."""


@pytest.mark.parametrize(
    ("said", "alive"),
    [
        (b'{"error":{"message":"CUDA error","type":"InternalServerError","code":500}}', False),
        (b'{"error":"out of memory"}', False),
        (b'{"error":{"message":"wait","code":429}}', True),
        (b'{"error":{"message":"min tokens","code":400}}', True),
        (b'{"error":null,"choices":[]}', False),  # what clients would be told is a bad answer
        (b'{"error":{},"choices":[]}', False),
        (b"not json", False),
        (REASONING, True),
    ],
)
async def test_a_canary_whose_answer_is_an_error_found_no_engine(
    tmp_path: Path, said: bytes, alive: bool
) -> None:
    async with scripted(tmp_path, lambda h, n: answer()) as world:
        one = prober(world, Slow(None, Reply(200, JSON, [said])))
        live = world.router.live
        one._born = live.loop_time() - 3600
        await one.listen()
        await asyncio.gather(*one._running.values())
        assert bool(live.health.marked(live.loop_time())) is not alive


# -- EndpointSlices ----------------------------------------------------------------------------


def pod(*addresses: str, uid: str | None = None, **conditions: bool | None) -> dict[str, object]:
    target = {} if uid is None else {"targetRef": {"kind": "Pod", "uid": uid}}
    return {"addresses": list(addresses), "conditions": conditions, **target}


def piece(*pods: object, family: str = "IPv4", ports: object = None) -> dict[str, object]:
    ports = ports or [{"name": "http", "port": 8000}]
    return {"addressType": family, "ports": ports, "endpoints": list(pods)}


UDP = {"name": "gossip", "port": 7000, "protocol": "UDP"}
TCP = {"name": "api", "port": 8000, "protocol": "TCP"}
FLEETS: dict[str, tuple[Sequence[object], list[str]]] = {
    "a pod in two slices, as while it moves from one to the other": (
        [piece(pod("10.0.0.1", uid="a")), piece(pod("10.0.0.1", uid="a"))],
        ["10.0.0.1"],
    ),
    "the same, not told whose it is": ([piece(pod("10.0.0.1"), pod("10.0.0.1"))], ["10.0.0.1"]),
    "a pod with two families": (
        [piece(pod("fd00::1", uid="a"), family="IPv6"), piece(pod("10.0.0.1", uid="a"))],
        ["10.0.0.1"],
    ),
    "one with IPv6 alone": ([piece(pod("fd00::1", uid="a"), family="IPv6")], ["[fd00::1]"]),
    "further addresses mean nothing": ([piece(pod("10.0.0.1", "10.0.0.2"))], ["10.0.0.1"]),
    "no address": ([piece(pod(), {"addresses": None}, {})], []),
    "not ready": ([piece(pod("10.0.0.1", ready=False), pod("10.0.0.2"))], ["10.0.0.2"]),
    "nobody says": ([piece(pod("10.0.0.1", ready=None))], ["10.0.0.1"]),
    "terminating": (
        [piece(pod("10.0.0.1", ready=False, serving=True, terminating=True))],
        [],
    ),
    "terminating, of a service that publishes all": (
        [piece(pod("10.0.0.1", ready=True, serving=True, terminating=True))],
        [],
    ),
    "not of TCP": ([piece(pod("10.0.0.1"), ports=[UDP, TCP])], ["10.0.0.1"]),
    "only not of TCP": ([piece(pod("10.0.0.1"), ports=[UDP])], []),
    "no port": ([piece(pod("10.0.0.1"), ports=[{"name": "http", "port": None}])], []),
    "nothing at all": ([{"ports": None, "endpoints": None}], []),
}


@pytest.mark.parametrize("name", FLEETS)
def test_each_pod_that_serves_is_one_replica(name: str) -> None:
    items, found = FLEETS[name]
    told = list(slices(json.dumps({"items": items}).encode()))
    assert told == [f"http://{address}:8000" for address in found]


# -- what engines tell -------------------------------------------------------------------------

TOLD: dict[str, tuple[str, Reading]] = {
    "the name of before": ("vllm:gpu_cache_usage_perc 0.5", Reading(0, kv=0.5)),
    "the name of now": ("vllm:kv_cache_usage_perc 0.5", Reading(0, kv=0.5)),
    "both": ("vllm:kv_cache_usage_perc 0.2\nvllm:gpu_cache_usage_perc 0", Reading(0, kv=0.2)),
    "several engines and models": (
        (
            'vllm:num_requests_running{engine="0",model_name="a"} 2.0\n'
            'vllm:num_requests_running{engine="1",model_name="a"} 3.0\n'
            'vllm:num_requests_waiting{engine="0",model_name="b"} 1\n'
            'vllm:kv_cache_usage_perc{engine="0"} 0.1\nvllm:kv_cache_usage_perc{engine="1"} 0.9\n'
        ),
        Reading(0, running=5, waiting=1, kv=0.9),
    ),
    "ranks": (
        'sglang:num_running_reqs{dp_rank="0"} 1\nsglang:num_running_reqs{dp_rank="1"} 2\n',
        Reading(0, running=3),
    ),
    "no number": (
        "vllm:num_requests_running NaN\nvllm:num_requests_waiting +Inf\nvllm:kv_cache_usage_perc x",
        Reading(0),
    ),
    "one rank that is no number": (
        'vllm:num_requests_running{engine="0"} NaN\nvllm:num_requests_running{engine="1"} 3',
        Reading(0, running=3),
    ),
    "below zero": ("vllm:num_requests_running -1", Reading(0)),
    "with a time": ('vllm:num_requests_running{a="}"} 2 1700000000000', Reading(0, running=2)),
    "lines as of Windows": ("vllm:num_requests_running 2\r\n", Reading(0, running=2)),
    "comments": ("# HELP vllm:num_requests_running 7\n# TYPE x gauge", Reading(0)),
    "when a counter began": ("vllm:generation_tokens_created 1.7e9", Reading(0)),
    "a page that is none": ("<html>vllm:num_requests_running 3</html>", Reading(0)),
    "nothing": ("", Reading(0)),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_an_engine_does_not_tell_is_unknown(name: str) -> None:
    page, reading = TOLD[name]
    assert parse_metrics(page, 0) == reading
