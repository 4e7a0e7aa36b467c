"""Where a request belongs when this router is outside its boundary."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import Peer
from router.inbound.misdirection import Direction, direct
from tests.router.house import Plan, snapshot

PEERS = (
    Peer(region="self:nowhere", url="https://typo.example.com"),
    Peer(region="self:lon1", url="https://uk.example.com"),
    Peer(region="self:iad1", url="https://us.example.com"),
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("DE", None),
        ("GB", Direction("self:lon1", "https://uk.example.com")),
        ("US", Direction("self:iad1", "https://us.example.com")),
        ("JP", Direction(None, None)),
    ],
)
def test_directions(tmp_path: Path, word: str, expected: Direction | None) -> None:
    shot = snapshot(Plan(peers=PEERS), {}, tmp_path)
    assert direct(shot.policy.atlas.country(word), shot) == expected


def test_errors() -> None:
    home = Direction("self:iad1", "https://us.example.com").error()
    assert (home.status, home.code) == (421, "misdirected")
    assert home.headers["location"] == "https://us.example.com"
    nowhere = Direction(None, None).error()
    assert (nowhere.status, nowhere.code) == (403, "no_router_inside_boundary")
