"""`domicile regions sync` and `accept`, against a stub of Bedrock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from regions.catalog import Catalog
from router.narrowing.accepted import read_accepted
from router.settings.loading import read_files
from router.simulator.bedrock import BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from tests.router.cli.conftest import Domicile, Ran
from tests.router.narrowing.test_accepted import public
from tests.router.watch.test_drift import EU, SIX, folder, now_lists

SOURCE = "eu-central-1"


@pytest.fixture
async def stub() -> AsyncIterator[BedrockStub]:
    """What the catalog says of Frankfurt, to the letter."""
    facts = Catalog.load({}).bedrock
    routes = {
        n: {SOURCE: p.routes[SOURCE]} for n, p in facts.profiles.items() if SOURCE in p.routes
    }
    routes |= {n: {SOURCE: ("us-east-1",)} for n, s in facts.global_sources.items() if SOURCE in s}
    async with BedrockStub(BedrockSpec(BedrockWorld.of(routes)), wall=time.time) as running:
        running.retention.update(dict.fromkeys(SIX, "none"))
        yield running


async def run(domicile: Domicile, *words: str | Path) -> Ran:
    return await asyncio.to_thread(domicile, "regions", *words)


async def test_nothing_differs(tmp_path: Path, stub: BedrockStub, domicile: Domicile) -> None:
    config = folder(tmp_path, stub).config
    ran = await run(domicile, "sync", "--config", config)
    assert (ran.code, ran.err) == (0, "")
    assert "sync: 0 profiles and 0 endpoints differ (eu-central-1)" in ran.out


async def test_a_new_member_is_exit_code_3(
    tmp_path: Path, stub: BedrockStub, domicile: Domicile
) -> None:
    config = folder(tmp_path, stub).config
    now_lists(stub, *SIX, "eu-west-2")
    ran = await run(domicile, "sync", "--config", config, "--json")
    assert (ran.code, ran.json["drifted"]) == (3, True)
    profiles = ran.json["profiles"]
    assert isinstance(profiles, list)
    [found] = [one for one in profiles if one["profile"] == EU]
    assert found["added"] == ["eu-west-2"]
    assert found["widened"]
    shown = await run(domicile, "sync", "--config", config)
    assert shown.code == 3
    assert "endpoint `sonnet-eu` runs beyond its footprint" in shown.out
    assert "aws:eu-west-2" in shown.out


async def test_what_is_not_read_is_exit_code_1(
    tmp_path: Path, stub: BedrockStub, domicile: Domicile
) -> None:
    config = folder(tmp_path, stub).config
    stub.kill()
    ran = await run(domicile, "sync", "--config", config)
    assert (ran.code, "connect_failed" in ran.err) == (1, True)


async def test_a_draft_is_signed_and_then_accepted(
    tmp_path: Path, stub: BedrockStub, domicile: Domicile
) -> None:
    box = folder(tmp_path, stub)
    now_lists(stub, *SIX, "eu-west-2")
    draft = tmp_path / "baseline" / "accepted-drift" / "december.yaml"
    assert (await run(domicile, "sync", "--config", box.config, "--write", draft)).code == 3
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "dpo.key").write_bytes(pem)
    signed = await run(domicile, "accept", draft, "--key", tmp_path / "dpo.key")
    assert signed.code == 0
    draft.with_suffix(".yaml.sig").write_text(signed.out)
    baseline = read_files(("baseline/main.yaml",), tmp_path)
    assert (EU, SOURCE) in read_accepted(baseline, tmp_path, [public(key)], 1).known


@pytest.mark.parametrize(("content", "key"), [("version: 2\n", True), ("version: 1\n", True),
                                              ("version: 1\naccepted: []\n", False)])  # fmt: skip
async def test_nothing_else_is_signed(
    tmp_path: Path, domicile: Domicile, content: str, key: bool
) -> None:
    file, named = tmp_path / "a.yaml", tmp_path / "key"
    file.write_text(content)
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    named.write_bytes(pem if key else b"no key")
    ran = await run(domicile, "accept", file, "--key", named)
    assert (ran.code, ran.out) == (1, "")
    missing = await run(domicile, "accept", tmp_path / "gone", "--key", named)
    assert (missing.code, "can't read" in missing.err) == (1, True)
