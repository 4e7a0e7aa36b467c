"""A stored snapshot loads as the world it was taken of, or says what is wrong with it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import orjson
import pytest

from regions.countries import Countries
from regions.model import Footprint, Retention
from router.audit.layout import Folder
from router.decisions.replayed import WorldMissing, stored, world
from router.narrowing.drifted import with_drift
from router.snapshot import Snapshot
from tests.router.folders import two_continents


def put(root: Path, *parts: bytes) -> str:
    """Store files by their digests; gives the last one's."""
    digest = ""
    for data in parts:
        digest = sha256(data).hexdigest()
        path = Folder(root).snapshot(digest)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    return digest


def kept(root: Path, snapshot: Snapshot) -> str:
    return put(root, *snapshot.attached.values(), snapshot.content)


def test_it_is_the_world_it_was_taken_of(tmp_path: Path) -> None:
    snapshot = two_continents(tmp_path).snapshot()
    assert kept(tmp_path, snapshot) == snapshot.digest
    found = world(Folder(tmp_path), snapshot.digest)
    assert (found.router, found.region) == (snapshot.config.router.id, "self:fra1")
    assert found.policy.digest == snapshot.policy.digest
    assert found.catalog.digest == snapshot.catalog.digest
    assert found.peers == ("self:iad1",)


def test_drift_is_part_of_it(tmp_path: Path) -> None:
    base = two_continents(tmp_path).snapshot()
    atlas = base.policy.atlas
    wider = Footprint(
        atlas.place("self:fra1", "self:iad1"), Retention(0, "seen"), Countries.of(["DE"])
    )
    drifted = with_drift(base, {"fra-large": wider})
    found = world(Folder(tmp_path), kept(tmp_path, drifted))
    assert found.drifted["fra-large"].process.ids == ("self:fra1", "self:iad1")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": 9}, "doesn't hold the policy"),
        ({"catalog": "0" * 64}, "don't have the catalog's digest"),
        ({"baseline": {"main.yaml": "version: 1\nnonsense: 3\n"}}, "can't be loaded here"),
        ({"data": "0" * 64}, "is not stored beside the log"),
        ({"router": []}, "can't be loaded here"),
    ],
)
def test_what_is_wrong_with_it_is_said(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    snapshot = two_continents(tmp_path).snapshot()
    content = {**orjson.loads(snapshot.content), **change}
    digest = put(tmp_path, *snapshot.attached.values(), orjson.dumps(content))
    with pytest.raises(WorldMissing, match=told):
        world(Folder(tmp_path), digest)


def test_only_a_digest_is_a_name(tmp_path: Path) -> None:
    for name in ("../log.key", "", "A" * 64):
        with pytest.raises(WorldMissing):
            stored(Folder(tmp_path), name)


def test_what_is_no_json_object_is_no_snapshot(tmp_path: Path) -> None:
    for data in (b"[]", b"{", b"\xff"):
        with pytest.raises(WorldMissing, match="no JSON object"):
            world(Folder(tmp_path), put(tmp_path, data))
