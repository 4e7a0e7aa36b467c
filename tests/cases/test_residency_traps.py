"""The residency traps of `tests/cases/residency-traps.yaml`, asked as anyone would ask them."""

from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from regions.catalog import DAY, Catalog, OwnRegion, epoch
from regions.document import parse_as
from regions.footprints.question import question

CASES = Path(__file__).parent / "residency-traps.yaml"


class Ask(BaseModel):
    model_config = ConfigDict(extra="forbid")
    selector: str
    within: str | None = None
    retain_within: str | None = None
    operated_by: str | None = None
    days: int = 1
    verdict: Literal["inside", "outside", "unknown"] = Field(alias="is")
    outside: list[str] | None = None
    missing: str | None = None


class Trap(BaseModel):
    model_config = ConfigDict(extra="forbid")
    id: str
    because: str
    ask: list[Ask]


class Traps(BaseModel):
    model_config = ConfigDict(extra="forbid")
    traps: list[Trap]


@cache
def loaded() -> Catalog:
    return Catalog.load({"self:fra1": OwnRegion("DE", "DE-HE", 50.11, 8.68)})


def cases() -> list[tuple[str, Ask]]:
    traps = parse_as(CASES.read_bytes(), CASES.name, Traps)[1].traps
    return [(f"{trap.id}.{n}", ask) for trap in traps for n, ask in enumerate(trap.ask)]


@pytest.mark.parametrize(("name", "ask"), cases(), ids=[name for name, _ in cases()])
def test_trap(name: str, ask: Ask) -> None:
    catalog = loaded()
    at = epoch(catalog.date) + ask.days * DAY
    answer = question(ask.selector, catalog, at, ask.within, ask.retain_within, ask.operated_by)
    (judgement,) = answer.judgements
    assert judgement.verdict.value == ask.verdict, judgement
    assert answer.exit_code == {"inside": 0, "outside": 3, "unknown": 4}[ask.verdict]
    if ask.outside is not None:
        assert list(judgement.outside) == ask.outside
    if ask.verdict == "unknown":
        assert judgement.missing
        assert any((ask.missing or "") in what for what in judgement.missing)
