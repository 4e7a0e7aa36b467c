"""The demo's files are files that a router loads."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.demo.files import KEYS, ROUTERS, TENANTS, write
from router.settings.loading import load_snapshot

URLS = dict.fromkeys(("fra", "par", "iad", "bedrock"), "http://127.0.0.1:9")
PORTS = {"eu-1": (1001, 1002), "us-1": (1003, 1004)}


@pytest.mark.parametrize("router", sorted(ROUTERS))
def test_they_load(tmp_path: Path, router: str) -> None:
    write(tmp_path, URLS, PORTS)
    snapshot = load_snapshot(tmp_path / f"{router}.yaml", {}, 0.0)
    assert snapshot.region == ROUTERS[router]
    assert set(snapshot.policy.tenants) == set(TENANTS) == set(KEYS)
    assert len(snapshot.keys) == len(KEYS)
    assert [peer.region for peer in snapshot.config.router.peers] == [
        region for name, region in ROUTERS.items() if name != router
    ]


def test_keys_are_private(tmp_path: Path) -> None:
    write(tmp_path, URLS, PORTS)
    assert (tmp_path / "eu-1.key").stat().st_mode & 0o077 == 0
    for key in KEYS.values():
        assert key not in (tmp_path / "keys.yaml").read_text()
