"""`domicile check`: its words and exit codes."""

import asyncio
from pathlib import Path

from redis.asyncio import Redis

from router.cli.init import BASELINE, RULES
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from tests.router.cli.conftest import Domicile
from tests.router.folders import sound, two_continents, write


def test_what_is_well_is_shown_with_what_grants_mean(domicile: Domicile, tmp_path: Path) -> None:
    box = sound(tmp_path)
    ran = domicile("check", "--config", box.config)
    assert (ran.code, ran.err) == (0, "")
    for word in ("clinic", "EU", "worldwide", "check: ok", "on_trial"):
        assert word in ran.out


def test_json_names_versions_and_sources(domicile: Domicile, tmp_path: Path) -> None:
    box = sound(tmp_path)
    told = domicile("check", "--config", box.config, "--json").json
    assert told["ok"] is True
    assert told["snapshot"] == box.snapshot().digest
    assert told["tenants"] == {
        "clinic": {"process": "EU", "retain": "EU", "operate": "any"},
        "shop": {"process": "worldwide", "retain": "worldwide", "operate": "any"},
    }
    assert {"setting": "router.workers", "value": "1", "source": "default"} in _effective(told)


def _effective(told: dict[str, object]) -> list[object]:
    found = told["effective"]
    assert isinstance(found, list)
    return found


def test_effective_settings_are_shown_when_asked_for(domicile: Domicile, tmp_path: Path) -> None:
    box = write(tmp_path)
    ran = domicile("check", "--config", box.config, "--effective")
    assert "router.limits.deadline" in ran.out
    assert "router.limits.deadline" not in domicile("check", "--config", box.config).out


def test_every_error_is_a_line_and_the_code_is_one(program: Domicile, tmp_path: Path) -> None:
    box = write(tmp_path, rules=RULES.replace("process_within: DE", "process_within: eu"))
    (tmp_path / "keys.yaml").unlink()
    ran = program("check", "--config", box.config)
    assert ran.code == 1
    lines = ran.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("error: ") for line in lines)
    assert "check: 2 errors" in ran.out
    told = program("check", "--config", box.config, "--json")
    assert (told.code, told.json["ok"]) == (1, False)
    errors = told.json["errors"]
    assert isinstance(errors, list)
    assert len(errors) == 2


def test_the_file_is_searched_as_serve_searches_it(domicile: Domicile, tmp_path: Path) -> None:
    box = write(tmp_path)
    assert domicile("check", env={"DOMICILE_CONFIG": str(box.config)}).code == 0
    ran = domicile("check", "--config", tmp_path / "none.yaml")
    assert ran.code == 1
    assert "`domicile init` writes one" in ran.err


def test_a_tenant_this_router_may_not_serve_is_an_error(domicile: Domicile, tmp_path: Path) -> None:
    box = two_continents(tmp_path)
    ran = domicile("check", "--config", box.config)
    assert ran.code == 1
    assert "store_outside" in ran.err, "the log would hold what may not be kept here"
    assert "nowhere: no grant" in ran.out
    told = domicile("check", "--config", box.config, "--json").json
    tenants = told["tenants"]
    assert isinstance(tenants, dict)
    assert tenants["nobody"] is None


async def test_live_asks_the_endpoints_too(domicile: Domicile, tmp_path: Path) -> None:
    async with SimulatedFleet({"self:local": ReplicaSpec(models=("my-model",))}) as fleet:
        [replica] = fleet
        text = BASELINE.replace("http://127.0.0.1:8000", replica.url)
        box = write(tmp_path, text)
        ran = await asyncio.to_thread(domicile, "check", "--config", box.config, "--live")
        assert (ran.code, ran.err) == (0, "")
        assert "endpoint `local-model`: `local-model` has its model (live_present)" in ran.out
        (tmp_path / "baseline" / "main.yaml").write_text(text.replace(": my-model", ": another"))
        ran = await asyncio.to_thread(domicile, "check", "--config", box.config, "--live")
        assert ran.code == 1
        assert "no model `another`; it has my-model (live_model_missing)" in ran.err
        assert domicile("check", "--config", box.config).code == 0


async def test_live_asks_the_redis_too(
    domicile: Domicile, tmp_path: Path, requires_redis: str
) -> None:
    box, redis = write(tmp_path), Redis.from_url(requires_redis)
    (tmp_path / "redis.url").write_text(requires_redis)
    state = 'state: {redis: "file:redis.url", region: self:local}\n'
    box.config.write_text(box.config.read_text() + state)
    await redis.config_set("maxmemory", "50mb")
    await redis.config_set("maxmemory-policy", "volatile-lru")
    try:
        for options, told in ((), False), (("--live",), True):
            ran = await asyncio.to_thread(domicile, "check", "--config", box.config, *options)
            assert ("state_evicts" in ran.out) is told
    finally:
        await redis.config_set("maxmemory", "0")
        await redis.config_set("maxmemory-policy", "noeviction")
        await redis.aclose()
