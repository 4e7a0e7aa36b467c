"""The class of a request: asked for below a ceiling, never above; and what an engine is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from policies.model import App, Policy, Priority, Tenant
from router.admission import parse
from router.audit.layout import Folder
from router.audit.reading import LogReader
from router.auth import Principal
from router.capacity.priority import HEADER, PrioritiesSection, ceiling_of, unread, within
from router.errors import RequestError
from tests.router.capacity.test_pools import classed
from tests.router.crowd import settle_for
from tests.router.made import ATLAS
from tests.router.scripted import Reply, Scripted, answer, scripted
from tests.router.test_steps import Slow

CEILINGS = st.sampled_from([None, *Priority])


@given(CEILINGS, CEILINGS, CEILINGS)
def test_the_lowest_ceiling_that_is_given_counts(
    tenant: Priority | None, app: Priority | None, key: Priority | None
) -> None:
    policy = Policy(
        ATLAS,
        tenants={"t": Tenant("t", priority=tenant)},
        apps={"a": App("a", priority=app)},
    )
    found = ceiling_of(Principal("k", "t", "a", priority=key), policy)
    given_ = [one for one in (tenant, app, key) if one is not None]
    assert found is (max(given_) if given_ else Priority.STANDARD)
    alone = ceiling_of(Principal("k", "t", priority=key), policy)
    assert alone is max([o for o in (tenant, key) if o is not None], default=Priority.STANDARD)


@given(
    st.sampled_from(Priority),
    st.sampled_from([None, *Priority]),
    st.none() | st.integers(-(2**63), 2**63 - 1),
)
def test_nobody_gets_above_the_ceiling(
    ceiling: Priority, said: Priority | None, number: int | None
) -> None:
    header = None if said is None else said.label.encode()
    asked = said if said is not None else Priority.INTERACTIVE if (number or 0) < 0 else None
    if asked is not None and asked < ceiling:
        with pytest.raises(RequestError) as error:
            within(ceiling, header, {"priority": number})
        assert (error.value.code, error.value.status) == ("priority_not_allowed", 403)
        return
    found = within(ceiling, header, {"priority": number})
    assert found >= ceiling
    if said is not None:
        assert found is said
    elif not number:
        assert found is ceiling
    else:
        assert found is (Priority.BATCH if number > 0 else Priority.INTERACTIVE)


@pytest.mark.parametrize("said", [b"urgent", b"", b"0", b"batch,interactive", b"\xff"])
def test_a_header_that_is_no_class_is_refused(said: bytes) -> None:
    with pytest.raises(RequestError, match="interactive, standard, batch") as error:
        within(Priority.INTERACTIVE, said, {})
    assert error.value.code == "invalid_header"


@pytest.mark.parametrize("number", ["1", True, 1.5, [], {"a": 1}])
def test_a_number_that_is_none_is_refused(number: object) -> None:
    with pytest.raises(RequestError) as error:
        within(Priority.INTERACTIVE, None, {"priority": number})
    assert (error.value.code, error.value.param) == ("invalid_request", "priority")


@pytest.mark.parametrize("digits", ["9" * 26, "-" + "9" * 26, str(1 << 63)])
def test_a_number_with_more_digits_than_are_read_is_told_the_range(digits: str) -> None:
    body = parse(b'{"priority": %b}' % digits.encode())
    with pytest.raises(RequestError, match="from -9223372036854775808 to 9223372036854775807"):
        within(Priority.INTERACTIVE, None, body)
    body = parse(b'{"priority": -9223372036854775808}')
    assert within(Priority.INTERACTIVE, None, body) is Priority.INTERACTIVE


@pytest.mark.parametrize(
    "shares", [{"batch": 0.0}, {"batch": 0.6}, {"standard": 0.3, "batch": 0.3}, {"urgent": 0.1}]
)
def test_shares_that_leave_no_room_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        PrioritiesSection.model_validate(shares)


def test_shares_are_of_the_lower_classes() -> None:
    section = PrioritiesSection.model_validate({"standard": "0.3", "batch": "0.1"})
    assert [section.least(one) for one in Priority] == [0.0, 0.3, 0.1]


def test_what_nobody_would_read_is_told() -> None:
    assert list(unread(Policy(ATLAS))) == []
    tenants = {"t": Tenant("t", priority=Priority.BATCH), "u": Tenant("u")}
    apps = {"a": App("a", priority=Priority.BATCH)}
    assert list(unread(Policy(ATLAS, tenants=tenants, apps=apps))) == [
        ("tenants", "t", "priority"),
        ("apps", "a", "priority"),
    ]


# -- through the router --------------------------------------------------------------------


def well(host: str, number: int) -> Reply:
    return answer()


def ceiling(world: Scripted, tenant: str, priority: Priority) -> None:
    live = world.router.live
    policy = live.snapshot.policy
    tenants = {**policy.tenants, tenant: replace(policy.tenants[tenant], priority=priority)}
    live.snapshot = replace(live.snapshot, policy=replace(policy, tenants=tenants))


def asks(*said: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((HEADER, one) for one in said)


def sent(world: Scripted) -> list[object]:
    return [json.loads(one.body).get("priority", "none") for one in world.transport.sent]


def who(folder: Path) -> list[object]:
    entries = LogReader(Folder(folder / "log").log("eu-1")).entries()
    bodies = [one.body["who"] for one in entries if one.kind == "decision"]
    return [one.get("priority") for one in bodies if isinstance(one, dict)]


async def test_the_class_is_refused_above_the_ceiling_and_stands_in_the_log(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        classed(world)
        assert (await world.ask(headers=asks(b"interactive"))).code == "priority_not_allowed"
        assert (await world.ask(priority=-1)).code == "priority_not_allowed"
        assert world.transport.sent == []
        assert (await world.ask()).code == "ok"
        assert (await world.ask(headers=asks(b"batch"))).code == "ok"
        assert (await world.ask(priority=7)).code == "ok"
        ceiling(world, "eu", Priority.INTERACTIVE)
        assert (await world.ask()).code == "ok"
    assert who(tmp_path) == ["standard", "batch", "batch", "interactive"]


async def test_a_ceiling_that_came_while_the_body_came_holds(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        classed(world)
        ceiling(world, "eu", Priority.INTERACTIVE)

        def lower() -> None:
            ceiling(world, "eu", Priority.BATCH)
            policy = replace(world.router.live.snapshot.policy, digest="q" * 64)
            world.router.live.snapshot = replace(world.router.live.snapshot, policy=policy)

        told = await world.run(Slow(world.exchange("eu", asks(b"interactive")), lower))
        assert told.code == "priority_not_allowed"
        assert world.transport.sent == []


async def test_an_engine_is_told_only_if_it_schedules_by_priority(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        classed(world)
        await world.ask(priority=7)
        settle_for(world, fra1={"scheduling": "priority"})
        await world.ask(priority=7)
        await world.ask(priority=0)
        await world.ask(headers=asks(b"batch"))
        ceiling(world, "eu", Priority.INTERACTIVE)
        await world.ask()
        assert sent(world) == ["none", 1, "none", 1, -1]


async def test_without_classes_nothing_is_read_and_nothing_changed(tmp_path: Path) -> None:
    async with scripted(tmp_path, well) as world:
        assert (await world.ask(headers=asks(b"urgent"), priority=7)).code == "ok"
        assert sent(world) == [7]
    assert who(tmp_path) == [None]
