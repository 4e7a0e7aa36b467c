"""Quarantine: at once, also for what is in flight; over restarts; lifted only on purpose."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from router.audit.entry import Entry
from router.audit.errors import AuditError, LogUnavailable
from router.audit.verify import verify
from router.narrowing.quarantine import NotQuarantined
from router.reconcile.imposing import impose
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from tests.router.folders import sound
from tests.router.reloading import World, watched
from tests.router.scripted import refused


async def test_an_endpoint_is_out_and_in_again(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        book = world.watches.quarantine
        for name in ("fra-small", "fra-large", "par-large", "iad-large"):
            await book.impose("endpoint", name, "incident", "boss")
        out = await world.ask()
        assert (out.status, out.code) == (503, "no_endpoint_available")
        assert b'"vetoed":"quarantine"' in out.written
        assert world.transport.sent == []
        assert world.router.live.metrics.value("domicile_vetoes", ("endpoint",)) == 4
        await book.lift("endpoint", "par-large", "over", "boss")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"
        told = [(e.body["event"], e.body["name"], e.body["by"]) for e in world.entries("veto")]
        assert told[-1] == ("lift", "par-large", "boss")
    assert verify(tmp_path / "log").ok


@pytest.mark.parametrize(
    ("what", "name"), [("place", "FR"), ("place", "self:par1"), ("operator", "FR")]
)
async def test_places_and_operators(tmp_path: Path, what: str, name: str) -> None:
    async with watched(sound(tmp_path)) as world:
        for own in ("fra-small", "fra-large"):
            await world.watches.quarantine.impose("endpoint", own, "x", "boss")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"
        await world.watches.quarantine.impose(what, name, "flood", "boss")
        assert (await world.ask()).status == 503


@pytest.mark.parametrize("name", ["DE", "self:fra1", "EU"])
async def test_a_router_in_a_quarantined_place_sends_nothing(tmp_path: Path, name: str) -> None:
    """It processes every call itself: endpoints elsewhere don't help."""
    async with watched(sound(tmp_path)) as world:
        await world.watches.quarantine.impose("place", name, "flood", "boss")
        stopped = await world.ask()
        assert stopped.code == "no_endpoint_available"
        assert b'"vetoed":"quarantine"' in stopped.written
        assert world.transport.sent == []
        await world.watches.quarantine.lift("place", name, "dry", "boss")
        assert (await world.ask()).status == 200


async def test_a_key(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        await world.watches.quarantine.impose("key", "clinic-1", "leaked", "boss")
        assert (await world.ask()).status == 503
        assert world.transport.sent == []


async def test_a_request_in_flight_feels_it_at_its_next_attempt(tmp_path: Path) -> None:
    async with watched(sound(tmp_path), lambda host, number: refused()) as world:
        send = world.transport.send

        async def vetoing(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            if request.method == "POST":  # no probe
                await world.watches.quarantine.impose("place", "EU", "now", "boss")
            return await send(request, timeouts)

        world.transport.send = vetoing  # type: ignore[method-assign]
        assert (await world.ask()).status == 503
        assert len(world.transport.sent) == 1


async def test_it_outlasts_a_restart(tmp_path: Path) -> None:
    box = sound(tmp_path)
    async with watched(box) as world:
        await world.watches.quarantine.impose("place", "EU", "flood", "boss")
    async with watched(box) as world:
        assert (await world.ask()).code == "no_endpoint_available"
        await world.watches.quarantine.lift("place", "EU", "dry", "boss")
    async with watched(box) as world:
        assert (await world.ask()).status == 200


async def test_a_broken_state_file_stops_the_start_and_frees_the_log(tmp_path: Path) -> None:
    box = sound(tmp_path)
    state = tmp_path / "log" / "local-1" / "vetoes.json"
    async with watched(box):
        pass
    state.write_text("{")
    with pytest.raises(AuditError, match="no list of vetoes"):
        async with watched(box):
            pass
    state.unlink()
    async with watched(box) as world:
        assert (await world.ask()).status == 200


@pytest.mark.parametrize(
    ("what", "name", "why"),
    [
        ("endpoint", "fra-larg", "there is no endpoint"),
        ("place", "EUU", "EUU"),
        ("operator", "aws:eu-west-1", "operators are bounded by countries"),
        ("key", "nobody", "there is no key `nobody` here; see the keys file"),
        ("tenant", "clinic", "can't be quarantined"),
    ],
)
async def test_a_name_that_nothing_bears_is_refused(
    tmp_path: Path, what: str, name: str, why: str
) -> None:
    async with watched(sound(tmp_path)) as world:
        with pytest.raises(NotQuarantined, match=why):
            await world.watches.quarantine.impose(what, name, "x", "boss")
        assert world.watches.quarantine.imposed == ()
        with pytest.raises(NotQuarantined, match="is not quarantined"):
            await world.watches.quarantine.lift(what, name, "x", "boss")


async def test_a_reason_is_asked_for(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        with pytest.raises(NotQuarantined, match="say why"):
            await world.watches.quarantine.impose("place", "EU", "", "boss")


async def test_repeating_it_changes_the_reason_only(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        await world.watches.quarantine.impose("place", "EU", "flood", "boss")
        await world.watches.quarantine.impose("place", "EU", "storm", "boss")
        [one] = world.watches.quarantine.imposed
        assert one.reason == "storm"


async def test_what_is_imposed_while_a_lift_is_recorded_stands(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        book, log = world.watches.quarantine, world.router.live.log
        await book.impose("endpoint", "fra-large", "x", "boss")
        record, began, go = log.record, asyncio.Event(), asyncio.Event()

        async def slow(entry: Entry) -> object:
            log.record = record  # type: ignore[method-assign]
            began.set()
            await go.wait()
            return await record(entry)

        log.record = slow  # type: ignore[method-assign, assignment]
        lift = asyncio.create_task(book.lift("endpoint", "fra-large", "over", "boss"))
        await began.wait()
        await book.impose("endpoint", "fra-large", "again", "boss")
        go.set()
        await lift
        assert [one.reason for one in book.imposed] == ["again"]
        assert "fra-large" in world.router.live.vetoes.current.endpoints


def break_log(world: World) -> None:
    """No entry can be written any more."""

    def fail(*given: object) -> object:
        raise LogUnavailable("disk full")

    world.router.live.log.record = fail  # type: ignore[method-assign, assignment]


async def test_when_the_log_is_down_it_narrows_and_does_not_lift(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        record = world.router.live.log.record
        await world.watches.quarantine.impose("endpoint", "fra-large", "x", "boss")
        break_log(world)
        with pytest.raises(LogUnavailable):
            await world.watches.quarantine.impose("endpoint", "par-large", "x", "boss")
        with pytest.raises(LogUnavailable):
            await world.watches.quarantine.lift("endpoint", "fra-large", "x", "boss")
        assert set(world.router.live.vetoes.current.endpoints) == {"fra-large", "par-large"}
        world.router.live.log.record = record  # type: ignore[method-assign]


def add_copy(world: World) -> None:
    """Write `par-large` once more, as `copy`."""
    _, _, rest = (world.box.root / "baseline" / "main.yaml").read_text().partition("  par-large: ")
    what, _, _ = rest.partition("  iad-large: ")
    world.change("baseline/main.yaml", "  iad-large: {", f"  copy: {what}  iad-large: {{")


async def test_another_name_lifts_nothing(tmp_path: Path) -> None:
    """Renamed, an endpoint that was taken out answered at once."""
    box = sound(tmp_path)
    async with watched(box) as world:
        book, board = world.watches.quarantine, world.router.live.vetoes
        for name in ("fra-small", "fra-large", "iad-large"):
            await book.impose("endpoint", name, "incident", "boss")
        await book.impose("endpoint", "par-large", "incident", "boss")
        world.change("baseline/main.yaml", "par-large", "paris")
        world.change("baseline/main.yaml", "features: [tools]", "context: 9000, features: [tools]")
        await world.watches.swap.reload(box.snapshot())
        for name in ("par-large", "paris"):
            assert name in board.current.endpoints
        assert (await world.ask()).status == 503
        assert world.transport.sent == []
    async with watched(box) as world:  # nor does a restart
        assert (await world.ask()).status == 503
        book = world.watches.quarantine
        await book.impose("endpoint", "paris", "incident", "boss")
        await book.lift("endpoint", "paris", "over", "boss")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "paris"
        told = [e.body["name"] for e in world.entries("veto") if e.body["event"] == "lift"]
        assert told == ["par-large", "paris"]
    assert verify(tmp_path / "log").ok


async def test_a_name_that_came_back_is_still_out_and_so_is_a_copy(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        book, board = world.watches.quarantine, world.router.live.vetoes
        await book.impose("endpoint", "par-large", "incident", "boss")
        add_copy(world)
        await world.watches.swap.reload(world.box.snapshot())
        assert set(board.current.endpoints) == {"par-large", "copy"}
        await book.impose("endpoint", "par-large", "worse", "boss")
        assert set(board.current.endpoints) == {"par-large", "copy"}
        assert board.current.endpoints["copy"] == "quarantine: worse (as `par-large`)"


async def test_a_plan_made_before_a_reload_finds_its_copy_out_as_well(tmp_path: Path) -> None:
    """Its own next attempt may be at a name that no file has any more."""
    async with watched(sound(tmp_path), lambda host, number: refused()) as world:
        book = world.watches.quarantine
        await book.impose("endpoint", "par-large", "incident", "boss")
        add_copy(world)
        world.change("baseline/main.yaml", "par-large, iad-large]", "par-large, copy, iad-large]")
        await world.watches.swap.reload(world.box.snapshot())
        send, again = world.transport.send, [True]

        async def reloading(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            if request.method == "POST" and again:
                again.clear()
                world.change("baseline/main.yaml", "copy", "other")
                await world.watches.swap.reload(world.box.snapshot())
            return await send(request, timeouts)

        world.transport.send = reloading  # type: ignore[method-assign]
        assert (await world.ask()).status == 503
        assert not again
        assert 3 not in {one.origin.port for one in world.transport.sent if one.method == "POST"}
        assert {"par-large", "copy", "other"} <= set(world.router.live.vetoes.current.endpoints)
        await book.lift("endpoint", "other", "over", "boss")
        assert world.router.live.vetoes.current.endpoints == {}


async def test_a_plan_made_before_a_reload_finds_what_is_imposed_after_it(tmp_path: Path) -> None:
    """Under the name that it has since: nobody can give the one that the plan has."""
    async with watched(sound(tmp_path), lambda host, number: refused()) as world:
        send, again = world.transport.send, [True]

        async def renaming(request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
            if request.method == "POST" and again:
                again.clear()
                world.change("baseline/main.yaml", "par-large", "paris")
                await world.watches.swap.reload(world.box.snapshot())
                await world.watches.quarantine.impose("endpoint", "paris", "incident", "boss")
            return await send(request, timeouts)

        world.transport.send = renaming  # type: ignore[method-assign]
        assert (await world.ask()).status == 503
        assert not again
        assert 3 not in {one.origin.port for one in world.transport.sent if one.method == "POST"}


async def test_who_stood_beside_it_under_a_name_of_its_own_is_not_meant(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        add_copy(world)
        await world.watches.swap.reload(world.box.snapshot())
        await world.watches.quarantine.impose("endpoint", "par-large", "incident", "boss")
        assert set(world.router.live.vetoes.current.endpoints) == {"par-large"}


async def test_what_reconciling_imposed_by_name_alone_is_bound_at_the_start(tmp_path: Path) -> None:
    box = sound(tmp_path)
    async with watched(box) as world:
        log = world.router.live.log_name
    impose(tmp_path / "log", log, {"par-large": "ran outside"}, 1.0)
    async with watched(box):
        pass
    world.change("baseline/main.yaml", "par-large", "paris")
    async with watched(box) as world:
        assert set(world.router.live.vetoes.current.endpoints) == {"par-large", "paris"}


async def test_what_could_not_be_written_outlasts_a_reload(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        book, board = world.watches.quarantine, world.router.live.vetoes
        path = tmp_path / "log" / world.router.live.log_name / "vetoes.json"
        path.mkdir()  # nothing can take its place
        with pytest.raises(AuditError):
            await book.impose("endpoint", "par-large", "incident", "boss")
        world.change("rules/example.yaml", "red zone", "red area")
        await world.watches.swap.reload(world.box.snapshot())
        assert "par-large" in board.current.endpoints


async def test_another_id_makes_a_leaked_key_no_better(tmp_path: Path) -> None:
    box = sound(tmp_path)
    async with watched(box) as world:
        await world.watches.quarantine.impose("key", "clinic-1", "leaked", "boss")
        world.change("keys.yaml", "clinic-1", "clinic-1b")
        await world.watches.swap.reload(box.snapshot())
        assert (await world.ask()).status == 503
        assert world.transport.sent == []
    async with watched(box) as world:
        keys = world.router.live.vetoes.current.keys
        assert keys["clinic-1b"] == "quarantine: leaked (as `clinic-1`)"
        assert "boss" not in keys
        await world.watches.quarantine.lift("key", "clinic-1b", "a mistake", "boss")
        assert (await world.ask()).status == 200
