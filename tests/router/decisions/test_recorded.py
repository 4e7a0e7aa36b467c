"""Requests are read back from a log as the router wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.recorded import Known
from router.audit.commands import UsageError
from router.audit.entry import Entry
from router.decisions.recorded import NotARequest, recorded
from tests.cases.built import built
from tests.router.audit.logbox import LogBox
from tests.router.scripted import answer


async def test_decisions_and_refusals_are_read(tmp_path: Path) -> None:
    headers = ((b"x-domicile-attr-data_class", b"health"),)
    async with built(tmp_path, lambda host, number: answer()) as world:
        await world.ask("eu", headers)
        await world.ask("eu", model="not-there")
    found = list(recorded(tmp_path / "log"))
    assert [one.model for one in found] == ["assistant", "unknown"]
    decided = found[0]
    assert (decided.tenant, decided.purpose, decided.router) == ("eu", "interactive", "self:fra1")
    said = {known.name: known for known in decided.attributes}["data_class"]
    assert said == Known("data_class", frozenset({("health", "header")}), said.closed)


def test_without_a_log_there_is_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        list(recorded(tmp_path))


async def test_an_entry_of_another_form_is_said(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    log = await box.open()
    await log.record(Entry("decision", "r1", box.clock.now, {"plan": []}))
    await log.close()
    with pytest.raises(NotARequest, match="`decision` can't be read"):
        list(recorded(box.folder))
