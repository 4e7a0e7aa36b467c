"""Putting a snapshot in force: stored and recorded first, and all or nothing."""

from __future__ import annotations

import gc
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from regions.atlas import Atlas
from regions.countries import Countries
from regions.model import Footprint, Retention
from router.audit.errors import LogUnavailable
from router.audit.layout import Folder
from router.audit.verify import verify
from router.settings.swap import moved, origins
from router.snapshot import Snapshot
from router.transport.client import HttpTransport
from router.transport.messages import Origin
from tests.cases.built import BASELINE, Files, built
from tests.router.folders import sound
from tests.router.reloading import World, watched
from tests.router.scripted import answer


def wide(snapshot: Snapshot) -> Footprint:
    atlas = snapshot.policy.atlas
    return Footprint(
        atlas.place("self:fra1", "self:iad1"), Retention(0, "a test"), Countries.of(["DE", "US"])
    )


def break_log(world: World) -> None:
    def fail(*given: object) -> object:
        raise LogUnavailable("disk full")

    world.router.live.log.record = fail  # type: ignore[method-assign, assignment]


async def test_a_snapshot_is_stored_before_anything_names_it(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        world.change("rules/example.yaml", "red zone", "red area")
        new = world.box.snapshot()
        await world.watches.swap.reload(new)
        assert world.router.live.snapshot is new
        assert Folder(tmp_path / "log").snapshot(new.digest).read_bytes() == new.content
    assert verify(tmp_path / "log").ok


async def test_when_the_log_is_down_the_old_one_serves_on(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        old, record = world.router.live.snapshot, world.router.live.log.record
        world.change("rules/example.yaml", "red zone", "red area")
        break_log(world)
        with pytest.raises(LogUnavailable):
            await world.watches.swap.reload(world.box.snapshot())
        assert world.router.live.snapshot is old
        assert world.watches.swap.base is old
        world.router.live.log.record = record  # type: ignore[method-assign]


async def test_when_the_log_is_down_drift_is_vetoed_all_the_same(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        live = world.router.live
        old, record = live.snapshot, live.log.record
        break_log(world)
        with pytest.raises(LogUnavailable):
            await world.watches.swap.drift({"fra-large": wide(old)})
        assert live.snapshot is old
        live.log.record = record  # type: ignore[method-assign]
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"


async def test_drift_is_in_the_snapshot_and_ends_with_it(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        base = world.router.live.snapshot
        await world.watches.swap.drift({"fra-large": wide(base)})
        assert set(world.router.live.snapshot.drifted) == {"fra-large"}
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"
        await world.watches.swap.drift({})
        assert world.router.live.snapshot.digest == base.digest
        assert (await world.ask()).sent["x-domicile-endpoint"] == "fra-large"
        whys = [e.body["why"] for e in world.entries("snapshot")]
        assert whys == ["start", "drift", "drift"]


async def test_drift_goes_over_to_another_catalog(tmp_path: Path) -> None:
    """A region more numbers all places anew; what had drifted is still the same places."""
    async with watched(sound(tmp_path)) as world:
        await world.watches.swap.drift({"fra-large": wide(world.router.live.snapshot)})
        world.change("baseline/main.yaml", "  self:fra1: {country: DE}\n",
                     "  self:aaa1: {country: FI}\n  self:fra1: {country: DE}\n")  # fmt: skip
        await world.watches.swap.reload(world.box.snapshot())
        drifted = world.router.live.snapshot.drifted["fra-large"]
        assert drifted.process.ids == ("self:fra1", "self:iad1")
        assert (await world.ask()).sent["x-domicile-endpoint"] == "par-large"


async def test_connections_to_origins_that_are_gone_drain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drained: list[Origin] = []
    transport = HttpTransport()
    monkeypatch.setattr(transport, "drain", drained.append)
    async with watched(sound(tmp_path), real=transport) as world:
        world.change("baseline/main.yaml", "http://127.0.0.1:3", "http://127.0.0.1:7")
        new = world.box.snapshot()
        await world.watches.swap.reload(new)
        assert [one.port for one in drained] == [3]
        assert {one.port for one in origins(new)} == {1, 2, 4, 7}
        drained.clear()


async def test_a_key_that_comes_back_is_no_longer_vetoed(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        keys = tmp_path / "keys.yaml"
        text = keys.read_text()
        keys.write_text("version: 1\nkeys: []\n")
        await world.watches.swap.reload(world.box.snapshot())
        assert set(world.router.live.vetoes.current.keys) == {"clinic-1", "boss"}
        keys.write_text(text)
        await world.watches.swap.reload(world.box.snapshot())
        assert dict(world.router.live.vetoes.current.keys) == {}
        assert (await world.ask()).status == 200


def atlases() -> int:
    """How many there are, once everything unused is gone."""
    gc.collect()
    return sum(type(one) is Atlas for one in gc.get_objects())


async def test_a_snapshot_that_was_replaced_is_forgotten(tmp_path: Path) -> None:
    """Whatever was kept for requests alike: else each reload would leave a whole catalog behind."""
    async with watched(sound(tmp_path)) as world:
        names = ["red zone", *(f"zone {number}" for number in range(6))]
        counts = []
        for before, after in pairwise(names):
            world.change("rules/example.yaml", before, after)
            await world.watches.swap.reload(world.box.snapshot())
            assert (await world.run(world.arrive())).status == 200
            counts.append(atlases())
        assert counts[-1] == counts[1], counts


async def test_the_room_to_wait_in_is_as_large_as_the_files_say(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        room = world.router.pipeline._steps.ranking.placing.room  # type: ignore[attr-defined]
        base = world.box.snapshot()
        section = base.config.router
        limits = section.limits.model_copy(update={"waiting": 7})
        router = section.model_copy(update={"limits": limits})
        config = base.config.model_copy(update={"router": router})
        assert room.bound != 7
        await world.watches.swap.reload(replace(base, config=config))
        assert room.bound == 7


async def test_what_was_known_of_another_server_is_not_held_against_this_one(
    tmp_path: Path,
) -> None:
    """Of three replicas the dead first one was taken out, and the second had its mark."""

    def three(*urls: str) -> Snapshot:
        text = BASELINE.replace('url: "http://fra1"', f"urls: {json.dumps(urls)}")
        return Files(baseline=text).load(tmp_path)

    async with built(tmp_path, lambda host, number: answer()) as world:
        live, watches = world.router.live, world.router.watches
        assert watches is not None
        await watches.swap.reload(three("http://a", "http://b", "http://c"))
        for key in ("fra/0", "par"):
            live.health.mark(key, live.loop_time(), 1e9)
        before = live.snapshot
        await watches.swap.reload(three("http://b", "http://c"))
        assert moved(before, live.snapshot) == {"fra/0", "fra/1"}
        assert live.health.marked(live.loop_time()) == ("par",)
        before = live.snapshot
        await watches.swap.reload(three("http://b", "http://c", "http://d"))
        assert moved(before, live.snapshot) == frozenset()
