"""A router seals its own log to a real S3 API, and the log comes back from there alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from router.audit.layout import Folder
from router.audit.log import PATIENCE
from router.audit.reading import every
from router.config import ConfigError
from router.decisions.replay import Replayer
from router.settings.config_log import SealSection
from router.settings.loading import log_settings
from router.storage.seal import SealWatch, bucket, seal_watch
from tests.ministack import CREDENTIALS, Ministack, ministack
from tests.router.cli.conftest import Domicile, domicile
from tests.router.folders import ROUTER, TWO_CONTINENTS, TWO_RULES, write
from tests.router.reloading import World, watched

__all__ = ["domicile"]
KEYS = {"S3_KEYS": '{"aws_access_key_id": "test", "aws_secret_access_key": "test"}'}
PLAIN = "log: {dir: log, signing_key: file:log.key}"


@pytest.fixture(scope="module")
def s3(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]
) -> Iterator[Ministack]:
    with ministack(tmp_path_factory.mktemp("ministack"), free_port()) as server:
        for name in ("acme-log", "acme-elsewhere", "acme-soft", "acme-outside"):
            server.bucket(name, "eu-west-1" if name == "acme-elsewhere" else "eu-central-1")
        yield server


@asynccontextmanager
async def sealing(
    root: Path, url: str, name: str, more: str = "", baseline: str = TWO_CONTINENTS
) -> AsyncIterator[World]:
    """A router whose log is sealed after every entry or two; all its tenants are in the EU."""
    seal = (
        f"{{s3: {name}, region: aws:eu-central-1, retain: 3y, size: 1KiB, "
        f'endpoint: "{url}", credentials: env:S3_KEYS{more}}}'
    )
    config = ROUTER.replace(PLAIN, PLAIN.replace("log.key}", f"log.key,\n      seal: {seal}}}"))
    assert "seal:" in config
    async with watched(write(root, baseline, TWO_RULES, config), environment=KEYS) as world:
        yield world


def watch(world: World) -> SealWatch:
    live = world.router.live
    settings = log_settings(live.snapshot.config, world.box.root)
    return seal_watch(live, settings, KEYS, world.box.root)


async def test_a_log_is_sealed_restored_and_replayed(
    tmp_path: Path, s3: Ministack, domicile: Domicile
) -> None:
    async with sealing(tmp_path / "live", s3.url, "acme-log", ", prefix: eu/") as world:
        for _ in range(5):
            await world.ask()
        await asyncio.sleep(5 * PATIENCE)  # outcomes, which nobody waits for, are on disk
        await watch(world).look()
        live = world.router.live
        assert "seal" not in live.notes
        sealed = live.metrics.value("domicile_log_sealed")
        assert sealed == Folder(tmp_path / "live" / "log").log(live.log_name).segments()[-1].first
    copy = tmp_path / "copy"
    ran = domicile(
        "audit", "restore", copy, "--s3", "acme-log", "--region", "aws:eu-central-1",
        "--prefix", "eu/", "--endpoint", s3.url, "--key", tmp_path / "live" / "log.key",
        "--json", env=CREDENTIALS,
    )  # fmt: skip
    assert ran.code == 0, ran.out
    assert ran.json["logs"] == {live.log_name: sealed}
    assert ran.json["not_immutable"] == []
    decisions = [one for one in every(Folder(copy)) if one.kind == "decision"]
    assert decisions
    asked = domicile(
        "audit", "query", "s3://acme-log/eu/", "--region", "aws:eu-central-1", "--s3-api", s3.url,
        "--tenant", "clinic", "--json", env=CREDENTIALS,
    )  # fmt: skip
    assert asked.code == 0, asked.err
    assert len(asked.out.splitlines()) == len(decisions)
    replayer = Replayer(Folder(copy))
    assert not any(replayer.replay(one).differences for one in decisions)


async def test_what_is_sealed_can_not_be_deleted_and_a_marker_hides_nothing(
    tmp_path: Path, s3: Ministack, domicile: Domicile
) -> None:
    async with sealing(tmp_path / "live", s3.url, "acme-log", ", prefix: held/") as world:
        for _ in range(3):
            await world.ask()
        await watch(world).look()
    client = s3.client("eu-central-1")
    listed = client.list_object_versions(Bucket="acme-log", Prefix="held/")["Versions"]
    assert isinstance(listed, list)
    for row in listed:
        with pytest.raises(ClientError, match="AccessDenied"):
            client.delete_object(  # type: ignore[attr-defined]
                Bucket="acme-log", Key=row["Key"], VersionId=row["VersionId"],
                BypassGovernanceRetention=True,
            )  # fmt: skip
        client.delete_object(Bucket="acme-log", Key=row["Key"])  # type: ignore[attr-defined]
    ran = domicile(
        "audit", "restore", tmp_path / "copy", "--s3", "acme-log", "--prefix", "held/",
        "--region", "aws:eu-central-1", "--endpoint", s3.url, env=CREDENTIALS,
    )  # fmt: skip
    assert ran.code == 0, ran.out
    assert "consistent, unanchored" in ran.out


async def test_a_local_copy_goes_when_it_is_old_enough(
    tmp_path: Path, s3: Ministack, domicile: Domicile
) -> None:
    more = ", prefix: gone/, local: 1h"
    async with sealing(tmp_path / "live", s3.url, "acme-log", more) as world:
        live, seal = world.router.live, watch(world)
        log = Folder(tmp_path / "live" / "log").log(live.log_name)
        for _ in range(4):
            await world.ask()
        *sealed, _ = log.segments()
        await seal.look()
        world.now[0] += 3601
        await seal.look()
        assert all(one.path.exists() for one in sealed), "no checkpoint covers the entry yet"
        await live.log.tick()
        await seal.look()
        assert "seal" not in live.notes
        assert not any(one.path.exists() for one in sealed)
        assert len(world.entries("administration")) > len(sealed)
    key = tmp_path / "live" / "log.key"
    ran = domicile("audit", "verify", tmp_path / "live" / "log", "--key", key)
    assert ran.code == 0, ran.out
    assert "released: " in ran.out
    assert "sealed below `gone/" in ran.out
    ran = domicile(
        "audit", "restore", tmp_path / "copy", "--s3", "acme-log", "--prefix", "gone/",
        "--region", "aws:eu-central-1", "--endpoint", s3.url, "--key", key, env=CREDENTIALS,
    )  # fmt: skip
    assert ran.code == 0, ran.out
    restored = Folder(tmp_path / "copy").log(live.log_name).segments()
    assert [one.first for one in restored][: len(sealed)] == [one.first for one in sealed]


async def test_a_bucket_in_another_region_gets_nothing(tmp_path: Path, s3: Ministack) -> None:
    async with sealing(tmp_path, s3.url, "acme-elsewhere") as world:
        for _ in range(3):
            await world.ask()
        await watch(world).look()
        assert "is in `eu-west-1`" in world.router.live.notes["seal"]
    listed = s3.client("eu-west-1").list_object_versions(Bucket="acme-elsewhere")
    assert not listed.get("Versions")


async def test_a_record_that_may_not_be_kept_there_is_not_sealed(
    tmp_path: Path, s3: Ministack
) -> None:
    # `check` refuses such a configuration before; this is the second line.
    baseline = TWO_CONTINENTS.replace("retain: EU}", "retain: FR}")
    async with sealing(tmp_path, s3.url, "acme-outside", "", baseline) as world:
        for _ in range(3):
            await world.ask()
        await watch(world).look()
        assert "may not be kept in `aws:eu-central-1`" in world.router.live.notes["seal"]
        assert "seal: " in " ".join(world.router.live.degraded())


async def test_governance_is_shown_as_not_immutable(
    tmp_path: Path, s3: Ministack, domicile: Domicile
) -> None:
    async with sealing(tmp_path / "live", s3.url, "acme-soft", ", mode: GOVERNANCE") as world:
        for _ in range(3):
            await world.ask()
        await watch(world).look()
        assert "not immutable" in world.router.live.notes["seal"]
    ran = domicile(
        "audit", "restore", tmp_path / "copy", "--s3", "acme-soft",
        "--region", "aws:eu-central-1", "--endpoint", s3.url, env=CREDENTIALS,
    )  # fmt: skip
    assert ran.code == 1
    assert "not immutable: " in ran.out


async def test_a_store_that_is_away_is_shown_and_asked_again(
    tmp_path: Path, free_port: Callable[[], int]
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with sealing(tmp_path, url, "acme-log") as world:
        await asyncio.wait_for(watch(world).look(), 60)
        assert "s3://acme-log" in world.router.live.notes["seal"]


def test_credentials_must_be_aws_keys(tmp_path: Path) -> None:
    section = SealSection.model_validate(
        {"s3": "b", "region": "self:fra1", "retain": "1y", "credentials": "env:T"}
    )
    with pytest.raises(ConfigError, match="has no S3"):
        bucket(section, None)
