"""A caller reads its own entries, with a proof that verifies, and no others."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from router.audit.openings import PERIOD, Scope, content
from router.audit.reading import NotInLog
from router.audit.tree import verify_inclusion
from router.auth import Principal
from router.entries.reading_records import read_record
from tests.router.scripted import answer, scripted


async def test_ones_own_record_with_its_proof(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu")
        name, index, leaf = done.sent["x-domicile-record"].split("/")
        log = world.router.live.log
        found = await read_record(log, name, int(index), Principal("key-eu", "eu"))
        assert (found.kind, found.leaf, found.index) == ("decision", leaf, int(index))
        size, root = found.checkpoint.split("\n")[1:3]
        path = [bytes.fromhex(one) for one in found.inclusion]
        assert int(size) == found.size
        assert verify_inclusion(
            bytes.fromhex(leaf), int(index), found.size, path, base64.b64decode(root)
        )
        for tenant in ("world", "us", ""):
            with pytest.raises(NotInLog) as foreign:
                await read_record(log, name, int(index), Principal("k", tenant))
            with pytest.raises(NotInLog) as missing:
                await read_record(log, name, 10_000, Principal("k", tenant))
            # Somebody else's and nobody's are told in the same words.
            shape = str(foreign.value).replace(index, "N")
            assert shape == str(missing.value).replace("10000", "N")


async def test_a_tenant_is_given_what_binds_its_text_until_that_is_erased(tmp_path: Path) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu")
        name, index, _ = done.sent["x-domicile-record"].split("/")
        log, own = world.router.live.log, Principal("key-eu", "eu")
        found = await read_record(log, name, int(index), own)
        assert found.content_key is not None
        key = base64.urlsafe_b64decode(found.content_key + "=")
        assert content(key, await done.body(1 << 20)) == found.body["content"]
        # The same, from the side file: another period's key is in force by now.
        log.openings.key("eu", world.router.live.stamp() + 2 * PERIOD)
        assert (await read_record(log, name, int(index), own)).content_key == found.content_key
        log.openings.erase(Scope(tenant="eu"))
        assert (await read_record(log, name, int(index), own)).content_key is None


async def test_what_belongs_to_nobody_is_nobodys(tmp_path: Path) -> None:
    """Snapshots and heartbeats have no tenant."""
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        with pytest.raises(NotInLog):
            await read_record(world.router.live.log, "eu-1", 0, Principal("k", "eu"))
