"""Auditors see what may be viewed from where they sit, send nothing, and leave a trace."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from regions.document import DocumentErrors
from router import public
from router.audit.note import parse_checkpoint
from router.audit.tree import verify_inclusion
from router.auth import load_keys
from router.config import ConfigError
from router.settings.loading import load_snapshot
from tests.router.folders import AT, two_continents
from tests.router.reloading import CLINIC, World, watched

SHOP = "dom-shop"
IDS = {
    CLINIC: "id: clinic-1, tenant: clinic",
    SHOP: "id: shop-1, tenant: shop",
    "dom-all": 'id: all, tenant: "*", role: auditor, view_from: DE',
    "dom-own": "id: own, tenant: clinic, role: auditor, view_from: DE",
    "dom-far": "id: far, tenant: clinic, role: auditor, view_from: US",
    "dom-nowhere": "id: nowhere, tenant: clinic, role: auditor",
}


def keys() -> str:
    lines = (
        f"  - {{sha256: {hashlib.sha256(key.encode()).hexdigest()}, {words}}}\n"
        for key, words in IDS.items()
    )
    return "version: 1\nkeys:\n" + "".join(lines)


@asynccontextmanager
async def filled(root: Path) -> AsyncIterator[World]:
    """Two requests of the clinic, one of the shop, one refused."""
    box = two_continents(root)
    (root / "keys.yaml").write_text(keys())
    async with watched(box) as world:
        for key, model in ((CLINIC, "assistant"), (SHOP, "assistant"), (CLINIC, "assistant")):
            await world.run(world.arrive(key, model))
        await world.run(world.arrive(CLINIC, "abroad"))
        yield world


async def get(world: World, key: str, path: str, **asked: int) -> httpx.Response:
    app = public.build(world.router.live)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://r") as client:
        return await client.get(path, params=asked, headers={"authorization": f"Bearer {key}"})


async def entries(world: World, key: str, **asked: int) -> Mapping[str, object]:
    found = await get(world, key, "/domicile/v1/audit/entries", **asked)
    assert found.status_code == 200, found.text
    body: Mapping[str, object] = found.json()
    return body


def kinds(body: Mapping[str, object]) -> list[str]:
    shown = body["entries"]
    assert isinstance(shown, list)
    return [one["kind"] for one in shown]


def tenants(body: Mapping[str, object]) -> set[str]:
    shown = body["entries"]
    assert isinstance(shown, list)
    return {one["body"]["who"]["tenant"] for one in shown if "who" in one["body"]}


async def test_one_tenants_auditor_sees_that_tenant_with_its_outcomes(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        body = await entries(world, "dom-own")
        assert kinds(body) == ["decision", "outcome", "decision", "outcome", "refusal"]
        assert tenants(body) == {"clinic"}
        assert body["hidden"] == 0


async def test_all_tenants_auditor_sees_the_rest_too(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        body = await entries(world, "dom-all")
        assert tenants(body) == {"clinic", "shop"}
        assert {"administration", "decision", "outcome", "refusal"} <= set(kinds(body))
        assert body["hidden"] == 0


@pytest.mark.parametrize("key", ["dom-far", "dom-nowhere"])
async def test_from_outside_there_are_only_counts(tmp_path: Path, key: str) -> None:
    async with filled(tmp_path) as world:
        body = await entries(world, key)
        assert (body["entries"], body["hidden"]) == ([], 5)


async def test_pages_join_without_gap_or_overlap(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        whole = await entries(world, "dom-own")
        after, found = -1, list[object]()
        for _ in range(99):
            body = await entries(world, "dom-own", after=after, limit=2)
            shown = body["entries"]
            assert isinstance(shown, list)
            found += shown
            if body["next"] is None:
                break
            assert isinstance(body["next"], int)
            after = body["next"]
        assert found == whole["entries"]


async def test_every_reading_is_in_the_log_before_it_is_answered(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        before = len(world.entries("administration"))
        await entries(world, "dom-far")
        read = world.entries("administration")[before:]
        assert [one.body["by"] for one in read] == ["far"]
        assert (read[0].body["event"], read[0].body["shown"], read[0].body["hidden"]) == (
            "read", 0, 5,
        )  # fmt: skip
        world.router.live.log._failure = "disk full"
        refused = await get(world, "dom-own", "/domicile/v1/audit/entries")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "log_unavailable")
        world.router.live.log._failure = ""


async def test_one_record_with_its_proof(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        decision = world.entries("decision")[0]
        path = f"/domicile/v1/records/{decision.place.log}/{decision.place.index}"
        body = (await get(world, "dom-own", path)).json()
        assert body["kind"] == "decision"
        path_of = [bytes.fromhex(one) for one in body["inclusion"]]
        root = parse_checkpoint(body["checkpoint"]).root
        leaf = bytes.fromhex(body["leaf"])
        assert verify_inclusion(leaf, body["index"], body["size"], path_of, root)
        foreign = world.entries("decision")[1]
        other = f"/domicile/v1/records/{foreign.place.log}/{foreign.place.index}"
        for key, at in (("dom-own", other), ("dom-far", path), ("dom-own", path + "999")):
            assert (await get(world, key, at)).status_code == 404
        assert (await get(world, "dom-all", other)).status_code == 200
        reads = [one for one in world.entries("administration") if one.body["event"] == "read"]
        assert [one.body["shown"] for one in reads] == [1, 0, 0, 0, 1]


async def test_others_read_nothing_here_and_auditors_send_nothing(tmp_path: Path) -> None:
    async with filled(tmp_path) as world:
        found = await get(world, CLINIC, "/domicile/v1/audit/entries")
        assert (found.status_code, found.json()["error"]["code"]) == (403, "role_not_allowed")
        sent = len(world.transport.sent)
        for key in ("dom-own", "dom-all"):
            exchange = await world.run(world.arrive(key))
            assert (exchange.status, exchange.code) == (403, "role_not_allowed")
        assert len(world.transport.sent) == sent


@pytest.mark.parametrize(
    "words",
    ['tenant: "*"', 'tenant: "*", role: operator', "tenant: clinic, view_from: DE"],
)
def test_only_auditors_have_every_tenant_or_a_view(words: str) -> None:
    text = f"version: 1\nkeys:\n  - {{id: a, sha256: {'0' * 64}, {words}}}\n"
    with pytest.raises((ValueError, DocumentErrors), match="auditors"):
        load_keys(text.encode(), "keys.yaml")


def test_a_view_from_nowhere_known_does_not_load(tmp_path: Path) -> None:
    box = two_continents(tmp_path)
    words = "id: a, tenant: clinic, role: auditor, view_from: Atlantis"
    (tmp_path / "keys.yaml").write_text(f"version: 1\nkeys:\n  - {{sha256: {'0' * 64}, {words}}}\n")
    with pytest.raises(ConfigError, match="Atlantis"):
        load_snapshot(box.config, {}, AT)
