"""What the log says was decided comes out the same again; whatever differs is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import orjson
import pytest

from router.audit.layout import Folder
from router.audit.lines import Value
from router.audit.reading import LogReader, Shown, every, named
from router.decisions.replay import Replayer, sample
from router.settings import loading
from tests.router.folders import two_continents
from tests.router.reloading import BOSS, CLINIC, watched

HEADER = b"x-domicile-attr-data_class"
Change = Callable[[dict[str, Value]], None]


async def filled(root: Path) -> Path:
    """A log with plain, narrowed and refused requests."""
    async with watched(two_continents(root)) as world:
        for value in (b"internal", b"health", b"public,health"):
            await world.run(world.arrive(CLINIC, "assistant", (HEADER, value)))
        await world.ask(BOSS)
        assert (await world.run(world.arrive(CLINIC, "abroad"))).status == 403
    return root / "log"


def decisions(log: Path) -> list[Shown]:
    return [one for one in every(Folder(log)) if one.kind in ("decision", "refusal")]


async def test_everything_comes_out_the_same(tmp_path: Path) -> None:
    log = await filled(tmp_path)
    found = decisions(log)
    assert {one.kind for one in found} == {"decision", "refusal"}
    assert len(found) == 5
    replayer = Replayer(Folder(log))
    assert [replayer.replay(one).differences for one in found] == [()] * 5
    assert len(replayer.worlds) == 1


async def test_an_upgraded_package_decides_by_the_facts_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(tmp_path)

    def gone() -> object:
        raise AssertionError("the package's own facts were read")

    monkeypatch.setattr("regions.catalog.package_data", gone)
    monkeypatch.setattr(loading, "package_data", gone)
    replayer = Replayer(Folder(log))
    assert not any(replayer.replay(one).differences for one in decisions(log))


def widened(body: dict[str, Value]) -> None:
    allowed = body["allowed"]
    assert isinstance(allowed, dict)
    allowed["process"] = [*allowed["process"], "self:iad1"]  # type: ignore[misc]


def abroad(body: dict[str, Value]) -> None:
    body["plan"] = [*body["plan"], "iad-large"]  # type: ignore[misc]


def let_in(body: dict[str, Value]) -> None:
    candidates = body["candidates"]
    assert isinstance(candidates, dict)
    candidates["iad-large"] = "eligible"


def unsaid(body: dict[str, Value]) -> None:
    attributes = body["attributes"]
    assert isinstance(attributes, dict)
    attributes["zone"] = {"values": ["blue"], "closed": True, "from": []}


def forgotten(body: dict[str, Value]) -> None:
    allowed = body["allowed"]
    assert isinstance(allowed, dict)
    allowed["rules"] = []


def left_out(body: dict[str, Value]) -> None:
    body["plan"] = []


def elsewhere(body: dict[str, Value]) -> None:
    who = body["who"]
    assert isinstance(who, dict)
    who["policy"] = "0" * 64


def longer(body: dict[str, Value]) -> None:
    body["good_until"] = 4_000_000_000


def lost(body: dict[str, Value]) -> None:
    body["snapshot"] = "0" * 64


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (widened, "allowed.process: "),
        (abroad, "plan: `iad-large` was not eligible"),
        (let_in, "candidate `iad-large`: "),
        (unsaid, "attributes: `zone` doesn't follow"),
        (forgotten, "allowed.rules: "),
        (left_out, "is missing"),
        (elsewhere, "policy: recorded 0000"),
        (longer, "good_until: recorded 4000000000"),
        (lost, "is not stored beside the log"),
    ],
)
async def test_whatever_differs_is_a_finding(tmp_path: Path, change: Change, told: str) -> None:
    log = await filled(tmp_path)
    shown = next(one for one in decisions(log) if "health" in str(one.body["attributes"]))
    body = orjson.loads(orjson.dumps(shown.body))
    change(body)
    found = Replayer(Folder(log)).replay(replace(shown, body=body)).differences
    assert any(told in one for one in found), found


async def test_an_altered_snapshot_is_a_finding(tmp_path: Path) -> None:
    log = await filled(tmp_path)
    shown = decisions(log)[0]
    path = Folder(log).snapshot(str(shown.body["snapshot"]))
    path.write_bytes(path.read_bytes().replace(b"self:fra1", b"self:par1"))
    assert "was altered" in Replayer(Folder(log)).replay(shown).differences[0]


async def test_a_refusal_that_need_not_have_been_is_a_finding(tmp_path: Path) -> None:
    log = await filled(tmp_path)
    shown = next(one for one in decisions(log) if one.kind == "decision")
    body = {**shown.body, "code": "no_endpoint_inside_boundary"}
    body.pop("plan")
    found = Replayer(Folder(log)).replay(replace(shown, kind="refusal", body=body)).differences
    assert any("doesn't follow from the policy" in one for one in found)


async def test_records_are_found_by_every_name(tmp_path: Path) -> None:
    log = await filled(tmp_path)
    shown = decisions(log)[0]
    leaf = LogReader(Folder(log).log(shown.place.log)).inclusion(
        shown.place.index, shown.place.index + 1
    )
    for record in (
        f"{shown.place.log}/{shown.place.index}",
        f"{shown.place.log}/{shown.place.index}/{leaf.leaf.hex()}",
    ):
        assert named(Folder(log), record) == [shown]
    assert shown in named(Folder(log), shown.id)
    assert named(Folder(log), "req-nobody") == []


async def test_a_sample_is_fair_and_repeatable(tmp_path: Path) -> None:
    log = await filled(tmp_path)
    every_one = decisions(log)
    assert sample(every(Folder(log)), 99, Random(1)) == every_one
    seen = [sample(every(Folder(log)), 2, Random(seed)) for seed in range(40)]
    assert seen[0] == sample(every(Folder(log)), 2, Random(0))
    assert all(len(one) == 2 for one in seen)
    assert {one.place.index for two in seen for one in two} == {s.place.index for s in every_one}
