"""Whole reconciliations of generated traffic: everything planted is found, and nothing else."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from router.audit.commands import UsageError
from router.audit.layout import Folder
from router.reconcile.model import Kind, Result, Source
from router.reconcile.ours import whole_since
from router.reconcile.run import KEPT, Asked, reconcile, sizes
from tests.router.audit import sealable
from tests.router.audit.logbox import START, LogBox
from tests.router.reconcile import planted
from tests.router.reconcile.made import (
    FRA,
    LOCAL,
    SONNET,
    Traffic,
    Trail,
    events,
    facts,
    keys,
    logged,
)
from tests.router.reconcile.planted import Delivered, Expected, Plants

SEEDS = int(os.environ.get("DOMICILE_AUDIT_SEEDS", "12"))
NOW = round((START + 6 * 3600) * 1e6)


def run(folder: Path, trail: Path, **more: object) -> Result:
    asked = {"folder": folder, "given": {Source.CLOUDTRAIL: [trail]}, "at": NOW, "keys": keys(),
             "facts": facts, **more}  # fmt: skip
    return reconcile(Asked(**asked))  # type: ignore[arg-type]


def found(result: Result) -> Expected:
    return Counter((one.kind, one.record) for one in result.findings)


async def made(traffic: Traffic, root: Path) -> tuple[Path, Plants]:
    folder = await logged(traffic, root)
    return folder, Plants(traffic, Random(traffic.seed))


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path, seed: int) -> None:
    traffic = Traffic(seed)
    folder, _ = await made(traffic, tmp_path)
    told = traffic.invocations
    Random(seed).shuffle(told)
    Trail(tmp_path / "trail", events(told), seed=seed).write()
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert [*map(str, result.findings)] == []
    assert set(result.files) == {"verified"}
    assert result.whole
    (covered,) = result.coverage
    answered = sum(one.result == "ok" for one in traffic.attempts)
    assert covered.by_id >= answered
    assert covered.missing == covered.pending == covered.not_observable == 0
    assert result.calls["cloudtrail"] == {"paired": len(told)}


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_everything_planted_is_found_and_nothing_else(tmp_path: Path, seed: int) -> None:
    folder, plants = await made(Traffic(seed, 60), tmp_path)
    for plant in plants.random.sample(planted.EVENTS, 8):
        plant(plants)
    plants.random.shuffle(plants.events)
    trail = Trail(tmp_path / "trail", planted.as_records(plants.events), seed=seed).write()
    delivered = Delivered(trail, plants, plants.random)
    for change in planted.FILES:
        change(delivered)
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert found(result) == +plants.expected
    assert result.exit_code == 3
    for one in result.findings:
        assert one.where is not None, one


async def test_a_lost_file_is_named_and_so_is_every_call_in_it(tmp_path: Path) -> None:
    folder, plants = await made(Traffic(3, 60), tmp_path)
    trail = Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    planted.lost_file(Delivered(trail, plants, plants.random))
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert found(result) == plants.expected
    assert plants.expected[Kind.FILE_MISSING, ""] == 1
    assert sum(plants.expected.values()) > 1


async def test_without_digests_it_says_so(tmp_path: Path) -> None:
    traffic = Traffic(5)
    folder, _ = await made(traffic, tmp_path)
    trail = Trail(tmp_path / "trail", events(traffic.invocations)).write()
    for digest in trail.digests:
        digest.unlink()
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert (result.exit_code, result.whole, result.findings) == (4, False, [])
    assert any("no digest files" in one for one in result.notices)


async def test_digests_that_end_too_early_prove_nothing_of_the_rest(tmp_path: Path) -> None:
    traffic = Traffic(5)
    folder, _ = await made(traffic, tmp_path)
    trail = Trail(tmp_path / "trail", events(traffic.invocations)).write()
    for digest in trail.digests:
        if digest.name.endswith("T120000Z.json.gz"):
            digest.unlink()  # of an hour without events: every file is still listed
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert (result.findings, result.whole) == ([], False)
    assert sum("don't reach over all of it" in one for one in result.notices) == 2


async def test_digests_without_keys_are_only_hashes(tmp_path: Path) -> None:
    traffic = Traffic(5)
    folder, _ = await made(traffic, tmp_path)
    Trail(tmp_path / "trail", events(traffic.invocations)).write()
    result = await asyncio.to_thread(lambda: run(folder, tmp_path / "trail", keys={}))
    assert (result.findings, set(result.files), result.whole) == ([], {"unsigned"}, False)


async def test_what_may_be_on_its_way_is_pending(tmp_path: Path) -> None:
    traffic = Traffic(6, endpoints=(LOCAL,))
    folder, plants = await made(traffic, tmp_path)
    planted.missing(plants)
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    soon = round((START + 3 * 3600) * 1e6)
    early = await asyncio.to_thread(
        lambda: run(folder, tmp_path / "trail", at=soon, grace=3 * 3600.0)
    )
    assert (early.findings, early.coverage[0].pending, early.exit_code) == ([], 1, 4)
    late = await asyncio.to_thread(lambda: run(folder, tmp_path / "trail", at=soon, grace=1.0))
    assert found(late) == plants.expected


async def test_a_period_bounds_both_sides(tmp_path: Path) -> None:
    """Calls and attempts before it still pair, so that its edge invents nothing."""
    folder, plants = await made(Traffic(7, 60), tmp_path)
    planted.bypass(plants)
    told = str(plants.events[-1]["eventTime"])
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    middle = round((START + 5400) * 1e6)
    first = await asyncio.to_thread(lambda: run(folder, tmp_path / "trail", until=middle))
    second = await asyncio.to_thread(lambda: run(folder, tmp_path / "trail", since=middle))
    kinds = [[one.kind for one in result.findings] for result in (first, second)]
    assert sorted(kinds) == [[], [Kind.BYPASS]], told
    whole = await asyncio.to_thread(run, folder, tmp_path / "trail")
    counted = [result.coverage[0].attempts for result in (first, second, whole)]
    assert counted[0] + counted[1] == counted[2]
    assert min(counted) > 0


async def test_known_principals_are_counted_and_no_finding(tmp_path: Path) -> None:
    folder, plants = await made(Traffic(8), tmp_path)
    planted.bypass(plants)
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    who = "arn:aws:iam::123456789012:user/mallory"
    result = await asyncio.to_thread(lambda: run(folder, tmp_path / "trail", exempt=[who]))
    assert result.findings == []
    assert result.calls["cloudtrail"]["exempt"] == 1


async def test_what_no_source_shows_is_not_observable(tmp_path: Path) -> None:
    folder, plants = await made(Traffic(9, endpoints=(SONNET, FRA)), tmp_path)
    own = sum(one.made is FRA and one.listed for one in plants.traffic.attempts)
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert result.findings == []
    (unseen,) = [one for one in result.coverage if not one.source]
    assert (unseen.provider, unseen.not_observable > 0) == ("self", True)
    assert unseen.not_observable >= own
    assert result.exit_code == 4


async def test_only_so_many_of_a_kind_are_kept_and_all_are_counted(tmp_path: Path) -> None:
    folder, plants = await made(Traffic(10), tmp_path)
    base = plants.call(plants.victim(SONNET)[1])
    for _ in range(KEPT + 5):
        event = plants.fresh(base)
        event["requestID"] = str(plants.traffic.uuid())
        event["userIdentity"] = {"arn": "arn:aws:iam::123456789012:user/mallory"}
        plants.events.append(event)
    Trail(tmp_path / "trail", planted.as_records(plants.events)).write()
    result = await asyncio.to_thread(run, folder, tmp_path / "trail")
    assert len(result.findings) == KEPT
    assert result.kinds == {"bypass": KEPT + 5}
    assert any(f"{KEPT + 5} findings" in one for one in result.notices)


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no log"):
        run(tmp_path, tmp_path)
    (tmp_path / "eu-1" / "segments").mkdir(parents=True)
    with pytest.raises(UsageError, match="is not there"):
        run(tmp_path, tmp_path / "nowhere")


def test_sizes_are_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"x" * 10)
    (tmp_path / "notes.txt").write_bytes(b"x" * 5)
    assert sizes({Source.CLOUDTRAIL: [tmp_path], Source.AZURE: [tmp_path / "notes.txt"]}) == 15


async def test_calls_of_released_lines_are_not_taken_for_bypasses(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    await sealable.fill(box)
    first, *_ = Folder(box.folder).log("eu-1").segments()
    first.path.unlink()
    (tmp_path / "trail").mkdir()
    with pytest.raises(UsageError, match=r"were released.*`--period`"):
        run(box.folder, tmp_path / "trail")
    since = whole_since(Folder(box.folder))
    with pytest.raises(UsageError, match="were released"):
        run(box.folder, tmp_path / "trail", since=since - 1)
    assert run(box.folder, tmp_path / "trail", since=since, until=since + 1).findings == []
