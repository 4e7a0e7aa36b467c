"""Policies that change every few milliseconds while answers are hedged, cascaded and split between
two endpoints: every request ends by the snapshot that it began with, and nothing is left of any."""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from classifiers.difficulty.scorer import Difficulty
from router.audit.layout import Folder
from router.audit.verify import verify
from router.decisions.replay import Replayer
from router.snapshot import Snapshot
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from tests.cases.built import BASELINE, Files, built, entries, until
from tests.cases.graded import EASY
from tests.router.attempts.test_prefilling import TEXT, kept
from tests.router.scripted import (
    DONE,
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
from tests.router.tiers.test_cascading import easy

GRADING = "{strong_share: 0.5, accept_prior: true, cascade: {}}"
BEDROCK = r"  sonnet-(?:.*\n)+?(?=\w)|  (?:sonnet|claude): .*\n"  # it takes seconds to load
WHOLE = re.sub(BEDROCK, "", BASELINE).replace(
    "  assistant: {",
    f'  two: {{grade: "on", grading: {GRADING}, tiers: {{small: [par], large: [fra, iad]}}}}\n'
    "  assistant: {hedge: {after: 5ms, at_most: 0.5}, ",
).replace(
    'fra: {kind: vllm, region: self:fra1, url: "http://fra1",',
    'pre: {kind: vllm, region: self:fra1, urls: ["http://pre1", "http://pre2"], model: tiny,'
    " operate: [DE], retain: nothing}\n"
    '  fra: {kind: vllm, region: self:fra1, urls: ["http://fra1", "http://fra2"], '
    "prefill: {endpoint: pre, least: 64},",
)  # fmt: skip
OTHERS = (
    (', cascade: {}}', "}"),
    ("hedge: {after: 5ms, at_most: 0.5}, ", ""),
    ("prefill: {endpoint: pre, least: 64},", ""),
    ("par:", "paris:", "[par]", "[paris]", "fra, par, iad", "fra, paris, iad"),
    ('urls: ["http://fra1", "http://fra2"]', 'urls: ["http://fra2", "http://fra3"]'),
    ('urls: ["http://pre1", "http://pre2"]', 'urls: ["http://pre3"]'),
    ("fra, par, iad", "par, iad", "[fra, iad]", "[iad]"),
    ("  de: {grant: {process: DE}}", "  de: {grant: {process: FR}}"),
)  # fmt: skip
RELOADS = 30
AT_ONCE = 12


def variants(folder: Path) -> list[Snapshot]:
    """The whole, and one each where something of it is gone, or another."""
    texts = [WHOLE]
    for pairs in OTHERS:
        text = WHOLE
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert old in text, old
            text = text.replace(old, new)
        texts.append(text)
    return [Files(baseline=text).load(folder) for text in texts]


class Weather:
    """Endpoints that answer late, or not."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sent = Counter[str]()

    def said(self, request: OutboundRequest) -> Reply | Exception:
        """What comes of one."""
        if self.chance.random() < 0.15:
            bad: list[Reply | Exception] = [failure(503), failure(429), failure(500), lost()]
            return self.chance.choice([*bad, refused()])
        if request.origin.host.startswith("pre"):
            return kept()
        if b'"stream":true' in request.body.replace(b" ", b""):
            return stream(event(content="a"), event(content="b"), DONE)
        return answer(self.chance.choice(["Paris.", "I'm sorry, but I can't help with that."]))

    def over(self, world: Scripted) -> None:
        """Let it be so at every endpoint."""

        async def send(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            if request.method != "POST":
                return Reply(404)
            self.sent[request.origin.host] += 1
            await asyncio.sleep(self.chance.choice([0.0, 0.0, 0.002, 0.01, 0.03]))
            made = self.said(request)
            if isinstance(made, Exception):
                raise made
            return made

        world.transport.send = send  # type: ignore[method-assign]


async def ask(world: Scripted, chance: random.Random) -> FakeExchange:
    """One request of some kind; some clients leave."""
    kind = chance.choice(["hedged", "cascaded", "split"])
    text = {"hedged": "hi", "cascaded": EASY, "split": TEXT}[kind]
    tenant = "de" if kind == "split" else chance.choice(["eu", "world"])
    messages, streams = [{"role": "user", "content": text}], kind == "hedged"
    model = "two" if kind == "cascaded" else "assistant"
    exchange = world.exchange(tenant, (), model=model, messages=messages, stream=streams)
    running = asyncio.create_task(world.run(exchange))
    if chance.random() < 0.1:
        await asyncio.sleep(chance.random() / 50)
        exchange.leave()
    async with asyncio.timeout(20):
        return await running


def listed(body: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    found = body.get(name)
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("seed", range(2))
async def test_reloads_while_answers_are_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(Difficulty, "score", easy)
    shots, chance, weather = variants(tmp_path), random.Random(seed), Weather(seed)
    async with built(tmp_path, lambda host, number: answer(), Files(baseline=WHOLE)) as world:
        weather.over(world)
        live, watches = world.router.live, world.router.watches
        assert watches is not None
        await asyncio.sleep(0.2)  # until the loops wait
        before, done, over = len(asyncio.all_tasks()), list[FakeExchange](), asyncio.Event()

        async def client() -> None:
            while not over.is_set():
                done.append(await ask(world, chance))

        clients = [asyncio.create_task(client()) for _ in range(AT_ONCE)]
        for _ in range(RELOADS):
            await watches.swap.reload(chance.choice(shots))
            await asyncio.sleep(chance.random() / 50)
        over.set()
        await asyncio.gather(*clients)
        assert len(done) > RELOADS
        assert live.inflight.keys == ()
        assert live.concurrency.total == 0
        await until(lambda: len(asyncio.all_tasks()) <= before)
        assert live.metrics.value("domicile_failovers_total") > 0
        metrics = live.metrics.read().counters
        hedges = sum(n for (name, _), n in metrics.items() if name == "domicile_hedges_total")
        cascades = sum(n for (name, _), n in metrics.items() if name == "domicile_cascade_total")
        assert hedges > 0
        assert cascades > 0
        assert weather.sent["pre1"] + weather.sent["pre2"] + weather.sent["pre3"] > 0
    # A grade that is late, on a busy machine, is the large tier's.
    assert {one.code for one in done if one.status} <= {
        "ok", "upstream_unavailable", "bad_answer", "no_endpoint_available", "overloaded",
        "no_endpoint_inside_boundary", "no_router_inside_boundary", "upstream_timeout",
        "tier_outside_boundary",
    }  # fmt: skip
    judge(tmp_path, {shot.digest: shot for shot in shots}, weather)


def judge(folder: Path, shots: Mapping[str, Snapshot], weather: Weather) -> None:
    """The log is whole; each decision has one outcome, and was carried out by its own snapshot."""
    assert not verify(folder / "log").findings
    replayer, log = Replayer(Folder(folder / "log")), entries(folder)
    decided = {one.id: one for one in log if one.kind == "decision"}
    ended = [one for one in log if one.kind == "outcome"]
    assert Counter(one.id for one in ended) == Counter(decided.keys())
    tried = 0
    for one in ended:
        shot = shots[str(decided[one.id].body["snapshot"])]
        for attempt in listed(one.body, "attempts"):
            tried += 1
            assert attempt["endpoint"] in shot.policy.endpoints
    assert tried == sum(weather.sent.values())
    for one in decided.values():
        assert replayer.replay(one).differences == ()
