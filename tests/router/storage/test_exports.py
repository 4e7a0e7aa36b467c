"""A router's own sinks follow its log; one that fails is shown and keeps no other waiting."""

from __future__ import annotations

import json
from pathlib import Path

from router.audit.entry import Entry
from router.config import ExportSection
from router.loading import log_settings
from router.storage.exports import export_watch
from tests.router.folders import AT, ROUTER, TWO_CONTINENTS, TWO_RULES, write
from tests.router.reloading import watched

PLAIN = "log: {dir: log, signing_key: file:log.key}"


async def test_every_sink_gets_every_event(tmp_path: Path) -> None:
    exports = "[{file: a.jsonl, format: ocsf}, {file: b.cef, format: cef}]"
    config = ROUTER.replace(PLAIN, PLAIN.replace("log.key}", f"log.key, exports: {exports}}}"))
    async with watched(write(tmp_path, TWO_CONTINENTS, TWO_RULES, config)) as world:
        await world.ask()
        await world.ask()
        live = world.router.live
        sections = live.snapshot.config.log.exports
        settings = log_settings(live.snapshot.config, tmp_path)
        watch = export_watch(live, settings, sections, tmp_path)
        await live.log.record(Entry("administration", "", AT, {"event": "after the outcomes"}))
        await watch.look()
        assert live.metrics.value("domicile_export_behind", ("a.jsonl",)) == 0
        told = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
        requests = [one for one in told if one["activity_name"] == "Inference"]
        assert len(requests) == 2
        assert len((tmp_path / "b.cef").read_text().splitlines()) == len(told)


async def test_a_sink_that_fails_is_shown_and_the_next_has_its_turn(tmp_path: Path) -> None:
    async with watched(write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)) as world:
        await world.ask()
        live = world.router.live
        (tmp_path / "taken").mkdir()
        sections = (
            ExportSection(file="taken", format="otel"),
            ExportSection(file="b.cef", format="cef"),
        )
        settings = log_settings(live.snapshot.config, tmp_path)
        watch = export_watch(live, settings, sections, tmp_path)
        await watch.look()
        assert "export taken" in live.notes
        assert (tmp_path / "b.cef").exists()
        (tmp_path / "taken").rmdir()
        await watch.look()
        assert "export taken" not in live.notes
