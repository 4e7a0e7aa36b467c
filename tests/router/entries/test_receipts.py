"""A receipt tells the place only where there is one to tell."""

from __future__ import annotations

import json
from pathlib import Path

from regions.countries import Countries
from regions.model import Footprint, Retention
from router.audit.note import parse_checkpoint
from router.audit.receipt import parse_receipt
from router.audit.verify import verify
from router.entries.receipts import place_headers
from tests.router.made import ATLAS, candidacy
from tests.router.scripted import answer, scripted


def test_one_region_is_told() -> None:
    assert place_headers(candidacy("a", "self:par1").footprint.process) == {
        "x-domicile-region": "self:par1"
    }


def test_several_regions_are_told_as_the_footprint() -> None:
    places = ATLAS.place("self:fra1", "self:par1")
    footprint = Footprint(places, Retention.nothing("test"), Countries.of(["DE"]))
    found = place_headers(footprint.process)
    assert found == {"x-domicile-footprint": "self:fra1,self:par1"}


def test_an_area_is_no_region() -> None:
    places = ATLAS.place("area:self:DE")
    footprint = Footprint(places, Retention.nothing("test"), Countries.of(["DE"]))
    found = place_headers(footprint.process)
    assert found == {"x-domicile-footprint": "area:self:DE"}


async def test_an_answer_carries_a_receipt_that_verifies(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu")
        later = await world.ask("eu")
        folder = world.router.live.log_name
    told = [
        {"record": one.sent["x-domicile-record"], "head": one.sent["x-domicile-head"]}
        for one in (done, later)
    ]
    receipts = [parse_receipt(json.dumps(one)) for one in told]
    assert {one.log for one in receipts} == {folder}
    verdict = verify(next(tmp_path.rglob("roster.jsonl")).parent, against=receipts)
    assert verdict.ok
    assert verdict.logs[0].anchored == parse_checkpoint(receipts[1].checkpoint).size
