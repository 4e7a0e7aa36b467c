"""The steps of one request, each seen through what the client hears and what the log holds."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from policies.attributes import Declaration
from policies.conditions import Is
from policies.model import Rule
from policies.obligations import NoStore, Redact, TierRange
from policies.timed import always, ending
from regions.catalog import Catalog
from regions.model import Tier
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.config import Peer
from tests.router.house import OWN, Plan
from tests.router.scripted import FakeExchange, Reply, answer, scripted

CLASSES = Declaration(
    "data_class", frozenset({"public", "health"}), frozenset({"public"}),
    frozenset({"header", "body", "key"}),
)  # fmt: skip
ATLAS = Catalog.load(OWN).atlas
HEALTH_IN_FRANCE = Rule(
    "health-in-france",
    Is("data_class", frozenset({"health"})),
    process=always(ATLAS.country("FR") | ATLAS.country("DE")),
    because="a test",
)
IN_FRANCE = Rule("in-france", process=always(ATLAS.country("FR")))
PLAN = Plan(rules=(HEALTH_IN_FRANCE,), declared={"data_class": CLASSES})


def always_good(host: str, number: int) -> Reply:
    return answer()


def entries(folder: Path) -> list[Shown]:
    return list(LogReader(Folder(folder / "log").log("eu-1")).entries())


def attribute(value: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"x-domicile-attr-data_class", value.encode()),)


async def test_a_header_narrows(tmp_path: Path) -> None:
    async with scripted(tmp_path, always_good, PLAN) as world:
        wide = await world.ask("world")
        narrow = await world.ask("world", attribute("health"))
        assert (wide.code, narrow.code) == ("ok", "ok")
    decisions = [e for e in entries(tmp_path) if e.kind == "decision"]
    plans = [e.body["plan"] for e in decisions]
    assert plans == [["fra1", "par1", "iad1"], ["fra1", "par1"]]
    allowed = decisions[1].body["allowed"]
    assert isinstance(allowed, dict)
    assert "'rule': 'health-in-france'" in str(allowed["rules"])


async def test_metadata_narrows_too(tmp_path: Path) -> None:
    async with scripted(tmp_path, always_good, PLAN) as world:
        await world.ask("world", metadata={"domicile-attr-data_class": "health"})
    plan = next(e.body["plan"] for e in entries(tmp_path) if e.kind == "decision")
    assert plan == ["fra1", "par1"]


@pytest.mark.parametrize(
    ("header", "code"),
    [(b"x-domicile-attr-data_class: secret", "attribute_unknown"),
     (b"x-domicile-attr-data_clas: health", "attribute_unknown"),
     (b"x-domicile-attr-data_class: ", "attribute_unknown"),
     (b"x-domicile-tier: enormous", "invalid_header")],
)  # fmt: skip
async def test_what_is_not_declared_is_refused(tmp_path: Path, header: bytes, code: str) -> None:
    name, _, value = header.partition(b": ")
    async with scripted(tmp_path, always_good, PLAN) as world:
        done = await world.ask("eu", ((name, value),))
        assert (done.status, done.code) == (400, code)
        assert world.transport.sent == []


async def test_a_router_outside_the_boundary_refuses_early_and_late(tmp_path: Path) -> None:
    peers = (Peer(region="self:par1", url="https://fr.example.com"),)
    plan = Plan(rules=(IN_FRANCE,), peers=peers)
    async with scripted(tmp_path, always_good, plan) as world:
        done = await world.ask()
        assert (done.status, done.code) == (421, "misdirected")
        assert done.sent["location"] == "https://fr.example.com"
        metrics = world.router.live.metrics
        assert metrics.value("domicile_misdirected_total", ("early",)) == 1
    late = Plan(
        rules=(Rule("r", HEALTH_IN_FRANCE.condition, process=IN_FRANCE.process),),
        declared=PLAN.declared,
        peers=peers,
    )
    folder = tmp_path / "late"
    folder.mkdir()
    async with scripted(folder, always_good, late) as world:
        done = await world.ask("eu", metadata={"domicile-attr-data_class": "health"})
        assert (done.status, done.code) == (421, "misdirected")
        assert world.router.live.metrics.value("domicile_misdirected_total", ("late",)) == 1
        assert world.transport.sent == []
    assert [e.kind for e in entries(tmp_path) if e.kind == "misdirected"] == ["misdirected"]
    assert [e.kind for e in entries(folder) if e.kind == "refusal"] == ["refusal"]


async def test_every_refusal_is_recorded_with_its_reasons(tmp_path: Path) -> None:
    rule = Rule("needs-baa", require=frozenset({"baa"}))
    async with scripted(tmp_path, always_good, Plan(rules=(rule,))) as world:
        done = await world.ask()
        assert (done.status, done.code) == (403, "no_endpoint_inside_boundary")
        assert done.sent["x-should-retry"] == "false"
        record = done.sent["x-domicile-record"].split("/")
        error = json.loads(done.written)["error"]
        assert error["record"].split("/") == record
        assert {"endpoint": "fra1", "excluded": ["assurance_missing: baa"]} in error["reasons"]
    refusal = next(e for e in entries(tmp_path) if e.kind == "refusal")
    assert refusal.place.index == int(record[1])
    assert refusal.body["code"] == "no_endpoint_inside_boundary"


async def test_silence_that_causes_a_refusal_is_explained(tmp_path: Path) -> None:
    silent = Declaration("country", frozenset({"DE", "US"}), sources=frozenset({"header"}))
    rules = (
        Rule("us", Is("country", frozenset({"US"})), process=always(ATLAS.country("DE"))),
        Rule("de", Is("country", frozenset({"DE"})), require=frozenset({"baa"})),
    )
    plan = Plan(rules=rules, declared={"country": silent})
    async with scripted(tmp_path, always_good, plan) as world:
        done = await world.ask()
        assert done.status == 403
        assert "x-domicile-attr-country" in json.loads(done.written)["error"]["message"]


async def test_obligations_change_what_leaves(tmp_path: Path) -> None:
    plan = Plan(rules=(Rule("r", obligations=(NoStore(),)),))
    async with scripted(tmp_path, always_good, plan) as world:
        # Stored where the endpoint stores is judged by its footprint; the flag itself is cut.
        done = await world.ask(store=False, temperature=0.5)
        assert done.code == "ok"
        sent = json.loads(world.transport.sent[0].body)
        assert sent["store"] is False
        assert sent["temperature"] == 0.5


async def test_conflicting_obligations(tmp_path: Path) -> None:
    rules = (
        Rule("a", obligations=(TierRange(ceiling=Tier.SMALL),)),
        Rule("b", obligations=(TierRange(floor=Tier.LARGE),)),
    )
    async with scripted(tmp_path, always_good, Plan(rules=rules)) as world:
        assert (await world.ask()).code == "obligations_conflict"


async def test_a_tier_that_policy_rules_out(tmp_path: Path) -> None:
    rule = Rule("small-only", obligations=(TierRange(ceiling=Tier.SMALL),))
    async with scripted(tmp_path, always_good, Plan(rules=(rule,))) as world:
        done = await world.ask()
        assert done.status == 403


async def test_concurrency_is_given_back(tmp_path: Path) -> None:
    async with scripted(tmp_path, always_good) as world:
        for _ in range(3):
            await world.ask()
            await world.ask(model="other")
            await world.ask(messages="bad")
        assert world.router.live.concurrency.total == 0
        assert world.router.live.inflight.keys == ()


async def test_usage_and_price_are_settled(tmp_path: Path) -> None:
    async with scripted(tmp_path, always_good) as world:
        await world.ask()
        assert world.router.live.metrics.value("domicile_tokens_total", ("fra1", "input")) == 3
    outcome = next(e for e in entries(tmp_path) if e.kind == "outcome")
    assert outcome.body["tokens"] == [3, 2]
    assert outcome.body["place"] == "not observable"
    ran = outcome.body["ran"]
    assert isinstance(ran, dict)
    assert ran["process"] == ["self:fra1"]


async def test_an_endpoint_can_not_keep_its_outcome_out_of_the_log(tmp_path: Path) -> None:
    """By counts that no entry may hold: the request would stay open, its place untold."""

    def absurd(host: str, number: int) -> Reply:
        usage = {"prompt_tokens": 3, "completion_tokens": 1 << 53}
        message = {"role": "assistant", "content": "hi"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny",
                "choices": [choice], "usage": usage}  # fmt: skip
        return Reply(200, chunks=[json.dumps(body).encode()])

    async with scripted(tmp_path, absurd) as world:
        await world.ask()
        assert world.router.live.metrics.value("domicile_log_failures_total", ()) == 0
    told = [one.body for one in entries(tmp_path) if one.kind == "outcome"]
    assert [(one["endpoint"], one["status"]) for one in told] == [("fra1", "ok")]


async def test_identifiers_do_not_leave_when_policy_says_so(tmp_path: Path) -> None:
    plan = Plan(rules=(Rule("r", obligations=(Redact(frozenset({"iban"})),)),))
    iban = "DE89 3704 0044 0532 0130 00"
    async with scripted(tmp_path, always_good, plan) as world:
        done = await world.ask(messages=[{"role": "user", "content": f"pay {iban} now"}])
        assert done.code == "ok"
        assert b"pay [iban] now" in world.transport.sent[0].body
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
        image = await world.ask(messages=[{"role": "user", "content": [part]}])
        assert (image.status, image.code) == (400, "redaction_impossible")
        assert len(world.transport.sent) == 1


class Slow(FakeExchange):
    """A body that comes late; something happens before it is there."""

    def __init__(self, like: FakeExchange, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(like._body, like.head.headers)
        self._meanwhile = meanwhile

    async def body(self, limit: int) -> bytes:
        await asyncio.sleep(0.3)
        self._meanwhile()
        return await super().body(limit)


async def test_what_lapsed_while_the_body_came_is_decided_at_the_new_time(tmp_path: Path) -> None:
    """Decided at the old time again, it would lapse again until it is given up."""
    process = ending(ATLAS.jurisdiction("EU"), time.time() + 0.2, ATLAS.country("DE"))
    async with scripted(tmp_path, always_good, Plan(rules=(Rule("moving", process=process),))) as s:
        told = await s.run(Slow(s.exchange()))
        assert (told.code, told.sent["x-domicile-region"]) == ("ok", "self:fra1")
        assert s.transport.at("par1") == 0


async def test_a_policy_loaded_while_the_body_came_decides(tmp_path: Path) -> None:
    """Else a client that sends slowly would choose under which policy it runs."""
    async with scripted(tmp_path, always_good) as s:
        live = s.router.live

        def tighten() -> None:
            policy = replace(live.snapshot.policy, digest="q" * 64, tenants={})
            live.snapshot = replace(live.snapshot, policy=policy)

        told = await s.run(Slow(s.exchange(), tighten))
        assert told.code == "no_grant"
        assert s.transport.sent == []
