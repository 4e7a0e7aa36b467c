"""A router's own sinks follow its log; one that fails is shown and keeps no other waiting."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from router.audit.entry import Entry
from router.config import ConfigError
from router.settings.config_log import ExportSection
from router.settings.loading import log_settings
from router.storage.exports import export_watch
from router.transport.client import HttpTransport
from tests.rawserver import RawServer
from tests.router.folders import AT, ROUTER, TWO_CONTINENTS, TWO_RULES, write
from tests.router.reloading import watched
from tests.router.storage.test_sinks import Collector, status

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
        watch = export_watch(live, settings, sections, tmp_path, world.transport, {})
        await live.log.record(Entry("administration", "", AT, {"event": "after the outcomes"}))
        await watch.look()
        assert live.metrics.value("domicile_export_behind", ("a.jsonl",)) == 0
        told = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
        requests = [one for one in told if one["activity_name"] == "Inference"]
        assert len(requests) == 2
        assert len((tmp_path / "b.cef").read_text().splitlines()) == len(told)


async def test_a_collector_follows_a_router_over_its_own_transport(tmp_path: Path) -> None:
    """With a token by reference; what it doesn't take is shown and counted, and comes again."""
    collector = Collector(status(503))
    async with RawServer(collector) as server:
        name = f"127.0.0.1:{server.port}"
        url = f"http://{name}/in"
        sections = [
            ExportSection(http=url, region="self:fra1", format="ocsf", token="env:COLLECTOR"),
            ExportSection(syslog="tcp://127.0.0.1:1", region="self:fra1", format="cef"),
            ExportSection(file="a.cef", format="cef"),
        ]
        async with watched(write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)) as world:
            await world.ask()
            live = world.router.live
            settings = log_settings(live.snapshot.config, tmp_path)
            real = HttpTransport()
            given = {"COLLECTOR": "t0ken"}
            watch = export_watch(live, settings, sections, tmp_path, real, given)
            await live.log.record(Entry("administration", "", AT, {"event": "after"}))
            await watch.look()
            assert "answered 503" in live.notes[f"export {name}"]
            assert "connecting" in live.notes["export 127.0.0.1:1"]
            assert (tmp_path / "a.cef").exists()
            failures = "domicile_export_failures_total"
            assert live.metrics.value(failures, (name,)) == 1
            await asyncio.sleep(1.1)
            await watch.look()
            assert f"export {name}" not in live.notes
            assert live.metrics.value("domicile_export_behind", (name,)) == 0
            taken = live.metrics.value("domicile_export_events_total", (name,))
            assert taken == len(collector.taken) > 2
            assert b"authorization: Bearer t0ken" in collector.heads[0]
            await real.close()


async def test_what_may_not_be_kept_at_a_sink_is_shown(tmp_path: Path) -> None:
    """`check` refuses such a sink; should it run all the same, nothing leaves."""
    collector = Collector()
    async with RawServer(collector) as server:
        url = f"http://127.0.0.1:{server.port}"
        section = ExportSection(http=url, region="aws:us-east-1", format="ocsf")
        async with watched(write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)) as world:
            await world.ask()
            live = world.router.live
            await live.log.record(Entry("administration", "", AT, {"event": "after"}))
            settings = log_settings(live.snapshot.config, tmp_path)
            real = HttpTransport()
            watch = export_watch(live, settings, [section], tmp_path, real, {})
            await watch.look()
            name = f"127.0.0.1:{server.port}"
            assert live.metrics.value("domicile_export_withheld_total", (name,)) == 1
            assert "withheld" in " ".join(live.notes)
            await real.close()


@pytest.mark.parametrize("token", ["env:GONE", "file:odd"])
async def test_a_token_that_leads_nowhere_is_refused(tmp_path: Path, token: str) -> None:
    (tmp_path / "odd").write_bytes(b"a\nb")
    url = "https://collector.example.com"
    section = ExportSection(http=url, region="self:fra1", format="ocsf", token=token)
    async with watched(write(tmp_path, TWO_CONTINENTS, TWO_RULES, ROUTER)) as world:
        live = world.router.live
        settings = log_settings(live.snapshot.config, tmp_path)
        with pytest.raises(ConfigError):
            export_watch(live, settings, [section], tmp_path, world.transport, {})


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
        watch = export_watch(live, settings, sections, tmp_path, world.transport, {})
        await watch.look()
        assert "export taken" in live.notes
        assert (tmp_path / "b.cef").exists()
        (tmp_path / "taken").rmdir()
        await watch.look()
        assert "export taken" not in live.notes
