"""Accepted drift: read, signed, laid over the catalog."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from policies.gathered import PolicyFile
from policies.signatures import ComplianceKey, NotSigned
from regions.catalog import Catalog, epoch
from regions.document import DocumentErrors
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint
from router.config import ConfigError
from router.narrowing.accepted import Accepted, overlaid, read_accepted, sign
from tests.router.folders import sound

CATALOG = Catalog.load({})
NOW = epoch(CATALOG.date) + 86_400
EU = "eu.anthropic.claude-sonnet-4-6"
BASELINE = [PolicyFile("baseline/main.yaml", b"version: 1\n")]


def row(profile: str = EU, source: str = "eu-central-1", members: str = "eu-west-1") -> str:
    return (
        f"  - {{profile: {profile}, source: {source}, members: {members}, "
        'checked_on: 2026-11-29, because: "a test"}\n'
    )


def put(root: Path, *rows: str, name: str = "a.yaml") -> PolicyFile:
    path = root / "baseline" / "accepted-drift" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("version: 1\naccepted:\n" + "".join(rows))
    return PolicyFile(f"accepted-drift/{name}", path.read_bytes())


def read(root: Path, *keys: Ed25519PrivateKey, needed: int = 1) -> Accepted:
    return read_accepted(BASELINE, root, [public(key) for key in keys], needed)


def public(key: Ed25519PrivateKey) -> ComplianceKey:
    pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return ComplianceKey.read(pem)


def places(catalog: Catalog, model: str = EU) -> tuple[str, ...]:
    one = Endpoint("a", "bedrock", "aws", model, "eu-central-1")
    return footprint(one, PLAIN_CALL, catalog, NOW).process.ids


def test_nothing_accepted_changes_nothing(tmp_path: Path) -> None:
    assert overlaid(CATALOG, read(tmp_path)) is CATALOG


def test_members_replace_the_catalog_s_for_that_source_only(tmp_path: Path) -> None:
    put(tmp_path, row(members="eu-central-1 aws:us-east-1"))
    accepted = read(tmp_path)
    found = overlaid(CATALOG, accepted)
    assert places(found) == ("aws:eu-central-1", "aws:us-east-1")
    assert accepted.known == {(EU, "eu-central-1")}
    routes = found.bedrock.profiles[EU].routes
    assert routes["eu-west-2"] == CATALOG.bedrock.profiles[EU].routes["eu-west-2"]
    assert found.digest != CATALOG.digest
    assert found.atlas is CATALOG.atlas


def test_a_profile_that_nobody_knew(tmp_path: Path) -> None:
    put(tmp_path, row("amer.vendor.m", members="us-east-1"))
    assert places(overlaid(CATALOG, read(tmp_path)), "amer.vendor.m") == ("aws:us-east-1",)


@pytest.mark.parametrize(
    "rows",
    [
        (row("global.vendor.m"),),
        (row(), row(members="us-east-1")),
        (row(), row(source="aws:eu-central-1")),
    ],
)
def test_what_contradicts_itself_or_has_no_members(tmp_path: Path, rows: tuple[str, ...]) -> None:
    put(tmp_path, *rows)
    with pytest.raises(ConfigError):
        read(tmp_path)


@pytest.mark.parametrize(
    "text", [row(members="''"), row(source="Frankfurt"), row("eu"), "  - {}\n"]
)
def test_a_row_that_cannot_be_read_names_its_line(tmp_path: Path, text: str) -> None:
    put(tmp_path, text)
    with pytest.raises(DocumentErrors, match=r"accepted-drift/a\.yaml:3"):
        read(tmp_path)


def test_each_file_needs_the_keys(tmp_path: Path) -> None:
    one, two, other = (Ed25519PrivateKey.generate() for _ in range(3))
    file = put(tmp_path, row())
    folder = tmp_path / "baseline" / "accepted-drift"
    for needed, signers in ((1, ()), (1, (other,)), (2, (one,)), (2, (one, other))):
        for n, key in enumerate(signers):
            (folder / f"{n}.sig").write_bytes(sign(file, key))
        with pytest.raises(NotSigned, match=f"needs {needed} signatures"):
            read(tmp_path, one, two, needed=needed)
    (folder / "2.sig").write_bytes(sign(file, two))
    assert read(tmp_path, one, two, needed=2).known
    put(tmp_path, row(members="us-east-1"))  # changed after it was signed
    with pytest.raises(NotSigned):
        read(tmp_path, one, two)


def test_a_broken_signature_file_stops_nobody_elses(tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    file = put(tmp_path, row())
    folder = tmp_path / "baseline" / "accepted-drift"
    (folder / "broken.sig").write_bytes(b"\xff not base64")
    (folder / "short.sig").write_bytes(b"AAAA")
    (folder / "good.sig").write_bytes(sign(file, key))
    assert read(tmp_path, key).known


def test_a_snapshot_is_loaded_with_it(tmp_path: Path) -> None:
    box = sound(tmp_path)
    before = box.snapshot()
    put(tmp_path, row(members="us-east-1"))
    after = box.snapshot()
    assert after.digest != before.digest
    assert after.accepted == {(EU, "eu-central-1")}
    assert places(after.catalog) == ("aws:us-east-1",)
    assert b"accepted-drift/a.yaml" in after.content
