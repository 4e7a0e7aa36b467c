"""Limits of a key beside its app's and its tenant's: laws, and what a client sees."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from policies.model import App, Limits, Rate, Tenant
from regions.model import Price
from router.auth import KeyRing, Principal, StoredKey
from router.capacity.quotas import Holder, Quotas, demand, holders
from router.errors import RequestError
from router.state.memory import MemoryLedger
from router.state.shared import SharedLedger
from tests.router.capacity.test_quotas_apps import budget
from tests.router.house import KEYS
from tests.router.scripted import Scripted, answer, failure, scripted

NAMES = count()
MICRO = 1_000_000


@dataclass(frozen=True)
class Act:
    """One request of one of three keys, `pause` seconds after the one before. `ends`: it stays
    open, is closed before it ran, or is settled once or twice."""

    pause: float
    key: int
    tokens: int
    micro: int
    ends: str
    used: int


ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from([0.0, 0.0, 0.5, 7.0]),
        st.integers(0, 2),
        st.integers(1, 60),
        st.integers(1, 60),
        st.sampled_from(["open", "closed", "settled", "twice"]),
        st.integers(0, 90),
    ),
    max_size=24,
)


def limits(seconds: float) -> st.SearchStrategy[Limits]:
    """Small ones, so that each is met."""
    rate = st.one_of(st.none(), st.builds(Rate, st.integers(1, 40), st.just(seconds)))
    return st.builds(Limits, rate, rate, st.one_of(st.none(), st.integers(1, 4)), rate)


@dataclass
class Reference:
    """The same limits counted as plainly as can be, one number each."""

    now: float = 0.0
    levels: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    seats: dict[str, int] = field(default_factory=dict)

    def wanted(self, held: Sequence[Holder], **amounts: int) -> dict[tuple[str, str], int]:
        """What of each limit: all of it at most."""
        found = {}
        for whose, own in held:
            for kind, amount in amounts.items():
                rate: Rate | None = getattr(own, kind)
                if rate is not None:
                    self.levels.setdefault((whose, kind), (float(rate.amount), self.now))
                    found[whose, kind] = min(amount, rate.amount)
        return found

    def level(self, held: Sequence[Holder], one: tuple[str, str]) -> float:
        rate: Rate = getattr(dict(held)[one[0]], one[1])
        level, at = self.levels[one]
        return min(float(rate.amount), level + (self.now - at) * rate.amount / rate.seconds)

    def fits(self, held: Sequence[Holder], wanted: dict[tuple[str, str], int]) -> bool:
        return all(self.level(held, one) >= amount - 1e-9 for one, amount in wanted.items())

    def add(self, held: Sequence[Holder], one: tuple[str, str], amount: int) -> None:
        rate: Rate = getattr(dict(held)[one[0]], one[1])
        level = min(float(rate.amount), self.level(held, one) + amount)
        self.levels[one] = level, self.now

    def seated(self, held: Sequence[Holder]) -> bool:
        return all(
            own.concurrency is None or self.seats.get(whose, 0) < own.concurrency
            for whose, own in held
        )

    def sit(self, held: Sequence[Holder], by: int) -> None:
        for whose, own in held:
            if own.concurrency is not None:
                self.seats[whose] = self.seats.get(whose, 0) + by
                assert 0 <= self.seats[whose] <= own.concurrency

    def run(self, held: Sequence[Holder], act: Act) -> bool:
        """Whether a request goes on; everything it takes and gives back."""
        first = self.wanted(held, requests=1)
        if not (self.seated(held) and self.fits(held, first)):
            return False
        then = self.wanted(held, tokens=act.tokens, dollars=act.micro)
        for one, amount in first.items():
            self.add(held, one, -amount)
        if not self.fits(held, then):
            for one, amount in first.items():
                self.add(held, one, amount)
            return False
        for one, amount in then.items():
            self.add(held, one, -amount)
        if act.ends == "open":
            self.sit(held, 1)
        elif act.ends == "closed":
            for one, amount in (first | then).items():
                self.add(held, one, amount)
        else:
            for one, amount in then.items():
                if act.ends == "twice":
                    self.add(held, one, amount - (act.used + 5))
                    self.add(held, one, 5)
                else:
                    self.add(held, one, amount - act.used)
        return True


async def asked(quotas: Quotas, held: Sequence[Holder], act: Act) -> bool:
    """The same of the real one."""
    try:
        found = await quotas.enter(demand(held), f"lease-{next(NAMES)}")
    except RequestError:
        return False
    try:
        await found.tokens(act.tokens, act.micro)
    except RequestError:
        found.close()
        found.close()
        return False
    if act.ends in ("settled", "twice"):
        if act.ends == "twice":
            found.settle(act.used + 5, act.used + 5)
        found.settle(act.used, act.used)
        found.settle(act.used, act.used)
    if act.ends != "open":
        found.close()
        found.close()
    return True


def of_one_app(
    name: str, tenant: Limits, app: Limits, keys: Sequence[Limits]
) -> list[list[Holder]]:
    """Whose limits count for each of these keys."""
    return [
        list(holders(Tenant(name, limits=tenant), App("crm", limits=app), key(n, own)))
        for n, own in enumerate(keys)
    ]


def key(n: int, own: Limits) -> Principal:
    return Principal(f"k{n}", "t", "crm", limits=own)


THREE = st.lists(limits(60.0), min_size=3, max_size=3)


@settings(max_examples=200)
@given(limits(60.0), limits(60.0), THREE, ACTS)
async def test_each_limit_holds_and_a_refusal_leaves_nothing(
    tenant: Limits, app: Limits, keys: list[Limits], acts: list[Act]
) -> None:
    """A request goes on when its key, its app and its tenant all have room; else it takes nothing
    of any. What is reserved is settled once, whatever its end. So none is ever passed, but by what
    was used beyond its reservation, and that is owed."""
    reference = Reference()
    ledger = MemoryLedger(lambda: reference.now)
    quotas = Quotas(ledger, lambda: reference.now)
    whose = of_one_app("t", tenant, app, keys)
    for act in acts:
        reference.now += act.pause
        held = whose[act.key]
        if held:
            assert await asked(quotas, held, act) == reference.run(held, act)
    left = {key: level for key, (level, *_) in ledger._levels.items()}
    for (name, kind), (level, _) in reference.levels.items():
        if f"{name}/{kind}" in left:
            assert left[f"{name}/{kind}"] == pytest.approx(level, abs=1e-6)
    assert ledger._open == {f"{name}/open": n for name, n in reference.seats.items() if n}


@settings(max_examples=25, deadline=None)
@given(limits(86400.0), limits(86400.0), st.lists(limits(86400.0), min_size=3, max_size=3), ACTS)
async def test_the_same_in_redis(
    requires_redis: str, tenant: Limits, app: Limits, keys: list[Limits], acts: list[Act]
) -> None:
    """Of a day nothing comes back while the test runs. Two routers take turns."""
    client: Redis = Redis.from_url(requires_redis)
    reference, name = Reference(), f"t{next(NAMES)}"
    ledgers = [SharedLedger(client, lambda: 0.0, 0.5, timeout=5.0) for _ in range(2)]  # type: ignore[arg-type]
    whose = of_one_app(name, tenant, app, keys)
    for n, act in enumerate(acts):
        held = whose[act.key]
        if held:
            assert await asked(Quotas(ledgers[n % 2]), held, act) == reference.run(held, act)
            await ledgers[n % 2].close()
    assert not any(one.degraded for one in ledgers)
    for (holder, kind), (level, _) in reference.levels.items():
        told = await client.hget(ledgers[0]._key(f"{holder}/{kind}"), "l")
        if told is not None:
            assert float(told) == pytest.approx(level, abs=0.1)
    await client.aclose()


@given(limits(60.0), limits(60.0), limits(60.0), ACTS)
async def test_a_key_gives_no_more_than_its_app_and_tenant(
    tenant: Limits, app: Limits, own: Limits, acts: list[Act]
) -> None:
    """Whatever goes on with a key's limits goes on without them, of the same before it."""
    now = 0.0
    narrow, wide = (Quotas(MemoryLedger(lambda: now), lambda: now) for _ in range(2))
    held = of_one_app("t", tenant, app, [own])[0]
    above = of_one_app("t", tenant, app, [Limits()])[0]
    for act in acts:
        now += act.pause
        if held and await asked(narrow, held, act) and above:
            assert await asked(wide, above, act)


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from([1.0, 10.0, 60.0])), max_size=3))
async def test_who_comes_when_told_gets_in(rates: list[tuple[int, float]]) -> None:
    """Of several limits without room the last to have some is told: the first alone would only
    refuse again."""
    now = 0.0
    quotas = Quotas(MemoryLedger(lambda: now), lambda: now)
    own = [Limits(requests=Rate(*one)) for one in rates] + [Limits()] * 3
    held = of_one_app("t", own[0], own[1], [own[2]])[0]
    for _ in range(40):
        try:
            await quotas.enter(demand(held), "lease")
        except RequestError as error:
            now += max(1, ceil(error.retry_after or 0))
            await quotas.enter(demand(held), "lease")


async def test_the_last_to_have_room_is_told_by_redis_too(requires_redis: str) -> None:
    client: Redis = Redis.from_url(requires_redis)
    await client.flushall()
    ledger = SharedLedger(client, lambda: 0.0, 0.5, timeout=5.0)  # type: ignore[arg-type]
    quotas = Quotas(ledger, lambda: 0.0)
    quick, slow = Limits(Rate(2, 1), concurrency=1), Limits(Rate(2, 3600))
    for held in (
        of_one_app("a", quick, slow, [quick])[0],
        of_one_app("b", slow, quick, [quick])[0],
    ):
        found = await quotas.enter(demand(held), "one")
        found.settle(0)
        found.close()
        await ledger.close()
        await quotas.enter(demand(held), "two")
        with pytest.raises(RequestError) as caught:
            await quotas.enter(demand(held), "three")
        assert caught.value.code == "rate_limit"
        assert 1700 < (caught.value.retry_after or 0) <= 1801
    await client.aclose()


async def entered(quotas: Quotas, held: Sequence[Holder]) -> str:
    """The words of a refusal; empty for what goes on."""
    try:
        await quotas.enter(demand(held), f"lease-{next(NAMES)}")
    except RequestError as error:
        return error.message
    return ""


async def test_a_refusal_names_whose_limit_it_is() -> None:
    quotas = Quotas(MemoryLedger(lambda: 0.0), lambda: 0.0)
    two, none = Limits(requests=Rate(2, 60)), Limits()
    for tenant, app, own, told in (
        (two, none, none, "of tenant `t1`"),
        (none, two, none, "of app `crm`"),
        (none, none, two, "of key `k0`"),
        (none, none, Limits(concurrency=2), "the limit of 2 concurrency of key `k0`"),
    ):
        held = of_one_app("t1", tenant, app, [own])[0]
        assert [await entered(quotas, held) for _ in range(2)] == ["", ""]
        assert told in await entered(quotas, held)
        quotas = Quotas(MemoryLedger(lambda: 0.0), lambda: 0.0)


async def test_two_keys_of_an_app_share_its_limits_and_nothing_else() -> None:
    quotas = Quotas(MemoryLedger(lambda: 0.0), lambda: 0.0)
    old, new = of_one_app("t", Limits(), Limits(Rate(5, 60)), [Limits(Rate(3, 60))] * 2)
    assert [bool(await entered(quotas, old)) for _ in range(4)] == [False, False, False, True]
    assert [bool(await entered(quotas, new)) for _ in range(3)] == [False, False, True]
    assert "app `crm`" in await entered(quotas, new)


async def test_headers_show_what_a_client_may_still_do() -> None:
    """Not the limit that is nearest to its end in parts of itself: of that more is left."""
    quotas = Quotas(MemoryLedger(lambda: 0.0), lambda: 0.0)
    busy, own = Limits(Rate(100, 60)), Limits(Rate(5, 60))
    for _ in range(90):
        await quotas.enter(demand(holders(Tenant("t", limits=busy))), "a")
    found = await quotas.enter(demand(of_one_app("t", busy, Limits(), [own])[0]), "b")
    assert found.headers["x-ratelimit-limit-requests"] == "5"
    assert found.headers["x-ratelimit-remaining-requests"] == "4"


def test_nothing_is_held_where_nothing_is_limited() -> None:
    assert holders(Tenant("t"), App("a"), Principal("k", "t", "a")) == ()
    assert holders(None, None, Principal("k", "t", limits=Limits(Rate(1, 60)))) == ()


def bound(world: Scripted, own: Limits, *names: str) -> None:
    """Give keys limits: `eu`'s own, and further ones of the same tenant and app."""
    live = world.router.live
    texts = [KEYS["eu"], *(f"dom-{name}" for name in names)]
    ring = KeyRing(
        StoredKey(hashlib.sha256(text.encode()).digest(), Principal(f"key-{n}", "eu", limits=own))
        for n, text in enumerate(texts)
    )
    live.snapshot = replace(live.snapshot, keys=ring)


async def test_a_keys_limits_are_its_own(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        bound(world, Limits(Rate(3, 3600), Rate(10_000, 3600), 2), "second")
        answers = [await world.ask() for _ in range(4)]
        assert [done.code for done in answers] == ["ok", "ok", "ok", "rate_limit"]
        assert answers[0].sent["x-ratelimit-remaining-requests"] == "2"
        assert answers[0].sent["x-ratelimit-limit-tokens"] == "10000"
        assert b"3 requests of key `key-0`" in answers[3].written
        assert 1100 < int(answers[3].sent["retry-after"]) <= 1200
        assert (await world.ask("second")).code == "ok"
        limited = world.router.live.metrics.value("domicile_limited_total", ("key", "requests"))
        assert limited == 1
        assert world.router.live.concurrency.total == 0


async def test_a_keys_seats_may_be_more_than_those_of_keys_without(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        world.router.live.concurrency.limit = 0
        assert (await world.ask()).code == "concurrency_limit"
        bound(world, Limits(concurrency=1))
        assert (await world.ask()).code == "ok"


async def test_a_keys_tokens_are_settled_and_what_fails_costs_none(tmp_path: Path) -> None:
    for name, reply in (("ok", answer), ("no", lambda: failure(503))):
        (tmp_path / name).mkdir()
        async with scripted(tmp_path / name, lambda host, number, made=reply: made()) as world:  # type: ignore[misc]
            bound(world, Limits(tokens=Rate(1000, 3600)))
            done = [await world.ask(max_tokens=800) for _ in range(20)]
            assert {one.status for one in done} == {200 if name == "ok" else 503}


async def test_a_key_has_a_budget(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        budget(world, 1000 * MICRO, Price(100.0, 100.0))
        bound(world, Limits(dollars=Rate(10_000, 3600)))
        done = [await world.ask(max_tokens=8) for _ in range(25)]
        assert 8 <= sum(one.code == "ok" for one in done) <= 19
        assert done[-1].code == "budget_spent"
        assert b"budget of 0.01 dollars of key `key-0`" in done[-1].written
        assert 1 <= int(done[-1].sent["retry-after"]) <= 3700
