"""Whose signatures a baseline needs: kept beside the log, upheld at every start."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.app import Clocks, Router
from router.audit.disk import LocalDisk
from router.config import ConfigError, load
from router.narrowing.authority import NAME, Authority, AuthorityFile, Beside
from router.settings.handover import worker_log
from router.settings.loading import log_settings
from router.settings.reload import Source
from router.supervisor.supervise import supervise
from tests.router.folders import Box, sound
from tests.router.reloading import watched
from tests.router.settings.test_reload import _signs, keyed


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return sound(tmp_path)


@pytest.fixture
def signed(box: Box) -> Ed25519PrivateKey:
    """The compliance key of the folder, which signed its baseline."""
    key = Ed25519PrivateKey.generate()
    keyed(box, key)
    _signs(box, "old.sig")(key)
    return key


async def started(box: Box) -> None:
    async with watched(box):
        pass


def beside(box: Box) -> Path:
    [found] = (box.root / "log").rglob(NAME)
    return found


def unsigned(box: Box) -> None:
    """What an operator would do to be rid of the signatures."""
    text = box.config.read_text()
    box.config.write_text(text.replace(", signed_by: [file:dpo.pub]", ""))
    (box.root / "baseline" / "old.sig").unlink()
    path = box.root / "baseline" / "main.yaml"
    path.write_text(path.read_text().replace("process: EU, retain: EU", "process: worldwide"))


async def test_a_start_without_the_keys_of_before_needs_their_signature(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    await started(box)
    await started(box)
    unsigned(box)
    with pytest.raises(ConfigError, match="the old ones must sign too: the baseline needs 1"):
        await started(box)
    _signs(box, "old.sig")(signed)  # they agree to be left out, and to what is wider
    await started(box)
    (box.root / "baseline" / "old.sig").unlink()
    await started(box)


async def test_a_start_with_other_keys_needs_the_old_ones(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    await started(box)
    other = Ed25519PrivateKey.generate()
    keyed(box, other)
    (box.root / "baseline" / "old.sig").unlink()
    _signs(box, "new.sig")(other)
    with pytest.raises(ConfigError, match="the old ones must sign too"):
        await started(box)
    _signs(box, "old.sig")(signed)
    await started(box)
    assert len(orjson.loads(beside(box).read_bytes())["keys"]) == 1


async def test_a_reload_that_was_authorised_is_remembered_for_the_next_start(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    other = Ed25519PrivateKey.generate()
    async with watched(box) as world:
        keyed(box, other)
        _signs(box, "new.sig")(other)
        await world.settle()
        assert world.router.live.files.refused == ""
        assert NAME not in world.router.live.notes
    (box.root / "baseline" / "old.sig").unlink()
    await started(box)


def two_workers(box: Box) -> Beside:
    """A start of two workers, as far as whose signatures it needs."""
    config = load(box.config)
    logs = [worker_log(config.router.id, number) for number in (1, 2)]
    found = Beside.of(box.root / "log", config.router.id, logs, LocalDisk())
    found.uphold(config, box.root)
    return found


async def test_another_number_of_workers_forgets_no_key(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    """Whoever started two workers in place of one process was asked for no signature."""
    await started(box)
    old = box.config.read_text(), (box.root / "baseline" / "main.yaml").read_text()
    unsigned(box)
    with pytest.raises(ConfigError, match="the old ones must sign too"):
        two_workers(box)
    box.config.write_text(old[0])
    (box.root / "baseline" / "main.yaml").write_text(old[1])
    _signs(box, "old.sig")(signed)
    two_workers(box)
    unsigned(box)
    with pytest.raises(ConfigError, match="the old ones must sign too"):
        await started(box)


async def test_other_keys_count_for_all_logs(box: Box, signed: Ed25519PrivateKey) -> None:
    """Each worker kept the keys of its start: none could start again once others were in force."""
    await started(box)
    found = two_workers(box)
    other = Ed25519PrivateKey.generate()
    keyed(box, other)
    (box.root / "baseline" / "old.sig").unlink()
    _signs(box, "new.sig")(other)
    with pytest.raises(ConfigError, match="the old ones must sign too"):
        two_workers(box)
    found.keep(Authority.of(load(box.config), box.root))  # as a reload that was authorised does
    two_workers(box)
    await started(box)


async def test_a_supervisor_asks_for_the_signatures_of_before(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    await started(box)
    unsigned(box)
    snapshot = box.snapshot()
    source, log = Source(box.config, {}, ""), log_settings(snapshot.config, box.root)
    with pytest.raises(ConfigError, match="the old ones must sign too"):
        await supervise(source, snapshot, log, 2)


async def test_a_worker_serves_what_it_is_sent_whatever_the_files_say(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    """One that died while files were refused for their keys could not start again."""
    await started(box)
    snapshot = box.snapshot()
    unsigned(box)
    source, log = Source(box.config, {}, "", watched=False), log_settings(snapshot.config, box.root)
    router = await Router.open(snapshot, log, Clocks.real(os.urandom), None, source)
    await router.close(0)


async def test_what_is_kept_and_can_not_be_read_stops_the_start(
    box: Box, signed: Ed25519PrivateKey
) -> None:
    await started(box)
    beside(box).write_text("{}")
    with pytest.raises(ConfigError, match=r"authority\.json` can't be read"):
        await started(box)


async def test_the_snapshot_names_the_keys(box: Box, signed: Ed25519PrivateKey) -> None:
    content = orjson.loads(box.snapshot().content)
    assert content["compliance"]["needed"] == 1
    authority = Authority.of(load(box.config), box.root)
    assert content["compliance"] == authority.written()
    assert content["signed_by"] == [authority.keys[0].id]


def test_as_much_of_the_same_keys(box: Box, signed: Ed25519PrivateKey) -> None:
    one = Authority.of(load(box.config), box.root)
    assert one.includes(Authority(one.keys, 2))
    assert not Authority(one.keys, 2).includes(one)
    assert not one.includes(Authority())
    assert Authority().forbids(load(box.config), box.root) is None


def test_a_file_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = AuthorityFile(tmp_path / "file" / NAME, LocalDisk())
    with pytest.raises(ConfigError, match="can't write"):
        file.keep(Authority())
    assert AuthorityFile(tmp_path / NAME, LocalDisk()).read() == Authority()
