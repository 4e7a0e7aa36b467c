"""Who may change something through the admin listener."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from router.audit.errors import AuditError
from router.errors import RequestError
from router.narrowing.operator import new_token, operator, token_path
from tests.router.folders import sound
from tests.router.reloading import BOSS, CLINIC, watched


def test_a_token_is_for_its_owner_s_eyes(tmp_path: Path) -> None:
    path = token_path(tmp_path, "eu-1")
    path.parent.mkdir()
    path.write_text("old")
    path.chmod(0o644)
    token = new_token(path, os.urandom)
    assert path.read_text().strip() == token
    assert path.stat().st_mode & 0o777 == 0o600
    assert new_token(path, os.urandom) != token


def test_where_none_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="can't write"):
        new_token(tmp_path / "gone" / "admin.token", os.urandom)


async def test_an_operator_s_key_or_the_token(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        live, token = world.router.live, world.watches.token
        assert operator(f"Bearer {BOSS}", live, token) == "boss"
        assert operator(f"Bearer {token}", live, token) == "local"
        written = token_path(tmp_path / "log", "local-1").read_text().strip()
        assert written == token


@pytest.mark.parametrize(
    ("given", "status"),
    [("", 401), (f"Bearer {CLINIC}", 403), ("Bearer local-0", 401), ("Bearer dom-x", 401),
     ("Basic x", 401), ("Bearer", 401), ("Bearer lokäl", 401)],
)  # fmt: skip
async def test_nobody_else(tmp_path: Path, given: str, status: int) -> None:
    async with watched(sound(tmp_path)) as world:
        with pytest.raises(RequestError) as caught:
            operator(given, world.router.live, world.watches.token)
        assert caught.value.status == status
        assert world.watches.token not in caught.value.message
