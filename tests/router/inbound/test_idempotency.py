"""Idempotency keys through the whole router: once, the same answer, and nothing kept outside."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from policies.model import Grant, Rule, Tenant
from policies.obligations import Redact
from policies.timed import always, ending
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.audit.verify import verify
from router.auth import KeyRing, Principal, StoredKey
from router.errors import RequestError
from router.inbound.idempotency import checked
from router.narrowing.vetoes import Vetoes
from router.state.answers import MemoryAnswers, NoAnswers
from tests.router.house import KEYS
from tests.router.scripted import (
    DONE,
    FakeExchange,
    Reply,
    Scripted,
    answer,
    event,
    failure,
    lost,
    scripted,
    stream,
)


def numbered(host: str, number: int) -> Reply:
    return answer(f"answer {number}")


def key(value: str = "k-1") -> list[tuple[bytes, bytes]]:
    return [(b"idempotency-key", value.encode())]


async def asked(world: Scripted, value: str = "k-1", content: str = "hi") -> FakeExchange:
    return await world.ask(headers=key(value), content=content)


def entries(folder: Path, kind: str) -> list[Shown]:
    found = LogReader(Folder(folder / "log").log("eu-1")).entries()
    return [one for one in found if one.kind == kind]


async def test_the_second_time_gets_the_first_answer(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        first, second = await asked(world), await asked(world)
        assert (first.code, second.code) == ("ok", "ok")
        assert first.written == second.written
        assert len(world.transport.sent) == 1
        assert second.sent["x-domicile-replayed"] == "true"
        for name in ("x-domicile-record", "x-request-id", "x-domicile-region"):
            assert second.sent[name] == first.sent[name]
        assert "x-domicile-replayed" not in first.sent
        assert (await asked(world, "k-2")).written != first.written
        assert world.router.live.inflight.keys == ()
    one, again, _ = entries(tmp_path, "outcome")
    assert (again.body["status"], again.body["attempts"]) == ("replayed", [])
    assert again.body["replays"] == one.id
    assert verify(tmp_path / "log").ok


async def test_without_a_key_nothing_is_kept(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        first, second = await world.ask(), await world.ask()
        assert first.written != second.written


async def test_a_stream_is_given_again_as_it_was(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        return stream(event(content=f"part {number}"), event(content="more"), DONE)

    async with scripted(tmp_path, script) as world:
        first = await world.ask(headers=key(), stream=True)
        second = await world.ask(headers=key(), stream=True)
        assert first.written == second.written
        assert first.sent["content-type"] == second.sent["content-type"]
        assert len(world.transport.sent) == 1


async def test_another_body_is_another_request(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        await asked(world)
        other = await asked(world, content="something else")
        assert (other.status, other.code) == (422, "idempotency_mismatch")
        assert len(world.transport.sent) == 1
    [refusal] = entries(tmp_path, "refusal")
    assert refusal.body["code"] == "idempotency_mismatch"


async def test_keys_are_the_callers_own(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        mine = await asked(world)
        theirs = await world.ask("world", headers=key())
        assert (theirs.code, theirs.written != mine.written) == ("ok", True)


async def test_while_the_first_one_runs_the_second_hears_so(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        gate, send = asyncio.Event(), world.transport.send

        async def held(*given: object) -> object:
            await gate.wait()
            return await send(*given)  # type: ignore[arg-type]

        world.transport.send = held  # type: ignore[method-assign, assignment]
        first = asyncio.create_task(asked(world))
        await asyncio.sleep(0.05)
        second = await asked(world)
        assert (second.status, second.code) == (409, "idempotency_in_flight")
        assert second.sent["retry-after"] == "1"
        gate.set()
        assert (await first).code == "ok"
        assert (await asked(world)).written == first.result().written


@pytest.mark.parametrize("made", [lambda: failure(400), lambda: failure(503)])
async def test_what_failed_is_carried_out_again(tmp_path: Path, made: object) -> None:
    def script(host: str, number: int) -> Reply:
        assert callable(made)
        found: Reply = made() if number < 4 else answer()
        return found

    async with scripted(tmp_path, script) as world:
        while (failed := await asked(world)).code != "ok":
            assert failed.code in ("upstream_refused", "upstream_unavailable")
        assert (await asked(world)).code == "ok"


async def test_a_stream_that_broke_off_is_carried_out_again(tmp_path: Path) -> None:
    def script(host: str, number: int) -> Reply:
        if number == 0 and host == "fra1":
            return stream(event(content="half"), lost())
        return stream(event(content="whole"), DONE)

    async with scripted(tmp_path, script) as world:
        first = await world.ask(headers=key(), stream=True)
        assert b"incomplete" in first.written
        second = await world.ask(headers=key(), stream=True)
        assert b"whole" in second.written
        assert "x-domicile-replayed" not in second.sent


async def test_what_stores_something_is_never_carried_out_twice(tmp_path: Path) -> None:
    """Its fate is unknown, and a second run would store a second time."""

    def script(host: str, number: int) -> Reply | Exception:
        return lost()

    async with scripted(tmp_path, script) as world:
        first = await world.ask(headers=key(), store=True)
        assert first.status in (502, 503)
        second = await world.ask(headers=key(), store=True)
        assert (second.status, second.code) == (409, "idempotency_spent")


async def test_an_answer_too_large_to_keep_is_not_made_twice(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        world.router.idempotency.largest = 10
        assert (await asked(world)).code == "ok"
        second = await asked(world)
        assert (second.status, second.code) == (409, "idempotency_spent")


async def test_nothing_is_kept_outside_a_boundary(tmp_path: Path) -> None:
    """The store lies in Virginia; the tenant's answers may be kept in the EU."""
    async with scripted(tmp_path, numbered) as world:
        world.router.idempotency.region = "self:iad1"
        done = await asked(world)
        assert (done.status, done.code) == (403, "idempotency_outside_boundary")
        assert "self:iad1" in done.written.decode()
        assert world.transport.sent == []
        assert (await world.ask()).code == "ok"


async def test_a_candidates_own_boundary_counts_too(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        live = world.router.live
        policy = live.snapshot.policy
        us = always(policy.atlas.country("US") | policy.atlas.jurisdiction("EU"))
        grant = policy.tenants["eu"].grant
        assert grant is not None
        wider = replace(policy.tenants["eu"], grant=replace(grant, retain=us))
        tenants = {**policy.tenants, "eu": wider}
        live.snapshot = replace(live.snapshot, policy=replace(policy, tenants=tenants))
        world.router.idempotency.region = "self:iad1"
        assert (await asked(world)).code == "ok"
        world.router.idempotency.region = "self:lon1"
        assert (await asked(world, "k-2")).code == "idempotency_outside_boundary"


async def test_what_may_not_be_called_any_more_is_not_given_again(tmp_path: Path) -> None:
    """Law 8: a stored answer is decided again when it is used."""
    async with scripted(tmp_path, numbered) as world:
        first = await asked(world)
        used = first.sent["x-domicile-endpoint"]
        live = world.router.live
        models = {
            name: replace(one, tiers={t: tuple(e for e in n if e != used)
                                      for t, n in one.tiers.items()})
            for name, one in live.snapshot.policy.models.items()
        }  # fmt: skip
        policy = replace(live.snapshot.policy, models=models, digest="q" * 64)
        live.snapshot = replace(live.snapshot, policy=policy)
        assert (await asked(world)).code == "idempotency_outside_boundary"


async def test_a_vetoed_endpoints_answer_is_not_given_again(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        first = await asked(world)
        used = first.sent["x-domicile-endpoint"]
        world.router.live.vetoes.put("quarantine", Vetoes(endpoints={used: "quarantine: x"}))
        assert (await asked(world)).code == "idempotency_outside_boundary"


async def changed(world: Scripted, **fields: object) -> None:
    """Load another policy."""
    live = world.router.live
    content = json.dumps(os.urandom(8).hex()).encode()
    digest = hashlib.sha256(content).hexdigest()
    policy = replace(live.snapshot.policy, digest=digest, **fields)  # type: ignore[arg-type]
    live.snapshot = replace(live.snapshot, policy=policy, digest=digest, content=content)
    await live.snapshot.keep(live.log)


async def test_another_place_of_the_same_name_did_not_answer(tmp_path: Path) -> None:
    """Law 12: files, or a second router of the same store, call another place by that name."""
    async with scripted(tmp_path, numbered) as world:
        first = await asked(world)
        used = first.sent["x-domicile-endpoint"]
        endpoints = world.router.live.snapshot.policy.endpoints
        other = {"fra1": "self:par1", "par1": "self:fra1"}[used]
        await changed(world, endpoints={**endpoints, used: replace(endpoints[used], source=other)})
        assert (await asked(world)).code == "idempotency_outside_boundary"
        assert (await asked(world, "k-2")).code == "ok"
        await changed(world, endpoints=endpoints)
        assert (await asked(world)).written == first.written


async def test_what_would_be_sent_otherwise_now_is_not_given_again(tmp_path: Path) -> None:
    """Law 7: an answer made of what is to be cut out today."""
    async with scripted(tmp_path, numbered) as world:
        said = "write to ada@example.org"
        first = await asked(world, content=said)
        assert first.code == "ok"
        await changed(world, rules=(Rule("cut", obligations=(Redact(frozenset({"email"})),)),))
        assert (await asked(world, content=said)).code == "idempotency_outside_boundary"
        assert (await asked(world, "k-2", content=said)).code == "ok"
        assert b"ada@example.org" not in world.transport.sent[-1].body
        assert (await asked(world, "k-2", content=said)).sent["x-domicile-replayed"] == "true"


@pytest.mark.parametrize(("left", "code"), [(500.0, "idempotency_spent"), (700.0, "ok")])
async def test_nothing_is_kept_for_longer_than_it_may(
    tmp_path: Path, left: float, code: str
) -> None:
    """Law 13: the grant ends while the key still counts."""
    async with scripted(tmp_path, numbered) as world:
        atlas = world.router.live.snapshot.policy.atlas
        within = ending(atlas.jurisdiction("EU"), time.time() + left, atlas.country("DE"))
        tenants = {"eu": Tenant("eu", Grant.within(within))}
        await changed(world, tenants=tenants)
        assert (await asked(world)).code == "ok"
        assert (await asked(world)).code == code
        store = world.router.idempotency.store
        assert isinstance(store, MemoryAnswers)
        assert [held.answer is None for held in store._held.values()] == [code != "ok"]


async def test_what_lapses_before_it_is_given_is_decided_again(tmp_path: Path) -> None:
    """Law 8: the entry may take long to become durable."""
    async with scripted(tmp_path, numbered) as world:
        atlas = world.router.live.snapshot.policy.atlas
        end = time.time() + 3600
        within = ending(atlas.jurisdiction("EU"), end, atlas.country("DE"))
        await changed(world, tenants={"eu": Tenant("eu", Grant.within(within))})
        assert (await asked(world)).code == "ok"
        world.router.idempotency.stamp = lambda: end
        assert (await asked(world)).code == "decided_again"


async def test_a_key_that_moved_to_another_tenant_meanwhile_gets_no_answer(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        assert (await asked(world)).code == "ok"
        live = world.router.live
        idempotency = world.router.idempotency
        end = time.time() + 3600
        atlas = live.snapshot.policy.atlas
        within = ending(atlas.jurisdiction("EU"), end, atlas.country("DE"))
        await changed(world, tenants={n: Tenant(n, Grant.within(within)) for n in ("eu", "world")})

        def moved() -> float:
            """The grant lapses, and the key is given to another tenant, while it is committed."""
            text = hashlib.sha256(KEYS["eu"].encode()).digest()
            ring = KeyRing([StoredKey(text, Principal("key-eu", "world"))])
            live.snapshot = replace(live.snapshot, keys=ring)
            idempotency.stamp = time.time
            return end

        idempotency.stamp = moved
        done = await asked(world)
        assert done.code == "decided_again"
        assert done.sent["retry-after"] == "1"
        assert "x-domicile-replayed" not in done.sent


@pytest.mark.parametrize("value", [b"", b"x" * 256, b"a b", "ä".encode(), b"\x00"])
async def test_a_key_that_is_none(tmp_path: Path, value: bytes) -> None:
    with pytest.raises(RequestError) as refused:
        checked([value])
    assert refused.value.code == "invalid_header"
    with pytest.raises(RequestError):
        checked([b"one", b"two"])


async def test_several_workers_without_a_store_refuse_keys(tmp_path: Path) -> None:
    async with scripted(tmp_path, numbered) as world:
        world.router.idempotency.store = NoAnswers()
        done = await asked(world)
        assert (done.status, done.code) == (503, "idempotency_unavailable")
        assert "state.redis" in done.written.decode()
        assert world.transport.sent == []


async def test_no_key_stays_taken(tmp_path: Path) -> None:
    """However a request ends: refused at the log, gone, failed."""
    async with scripted(tmp_path, numbered) as world:
        store = world.router.idempotency.store
        assert isinstance(store, MemoryAnswers)
        world.router.live.log._failure = "disk full"
        assert (await asked(world)).code == "log_unavailable"
        world.router.live.log._failure = ""
        leaving = world.exchange(headers=key("gone"))
        leaving.leave()
        await world.run(leaving)
        assert store._held == {}
