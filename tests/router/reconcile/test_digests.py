"""Forged, broken and incomplete chains of digest files."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from router.assess.records import log_files
from router.reconcile.digests import Checked, check, delivered
from router.reconcile.model import UNKNOWN_TIME, Kind
from router.reconcile.times import instant
from router.simulator.cloudtrail import Record
from tests.router.audit.logbox import START
from tests.router.reconcile.made import HOUR, Traffic, Trail, events, keys


def told(seed: int = 1) -> list[Record]:
    return events(Traffic(seed).invocations)


@pytest.fixture
def trail(tmp_path: Path) -> Trail:
    return Trail(tmp_path / "trail", told()).write()


def checked(trail: Trail, **more: object) -> Checked:
    return check([trail.folder], [*log_files(trail.folder)], more.get("keys", keys()))  # type: ignore[arg-type]


def kinds(found: Checked) -> Counter[Kind]:
    return Counter(one.kind for one in found.findings)


def rewrite(path: Path, change: Callable[[dict[str, object]], object]) -> None:
    said = json.loads(gzip.decompress(path.read_bytes()))
    change(said)
    path.write_bytes(gzip.compress(json.dumps(said).encode()))


def of(trail: Trail, region: str = "eu-central-1") -> list[Path]:
    return [path for path in trail.digests if f"_{region}_main" in path.name]


def test_a_sound_trail(trail: Trail) -> None:
    found = checked(trail)
    assert (found.findings, found.notices) == ([], [])
    assert found.states == {"verified": len(trail.files)}
    assert found.digests == len(trail.digests) == 8
    span = (round(START * 1e6), round((START + 4 * HOUR) * 1e6))
    assert set(found.spans.values()) == {span}


def test_empty_hours_prove_that_nothing_was_delivered(tmp_path: Path) -> None:
    trail = Trail(tmp_path / "t", []).write()
    found = checked(trail)
    assert (found.findings, found.digests, found.states) == ([], 4, {})


def test_without_the_newest_signature_only_its_files_are_unsigned(trail: Trail) -> None:
    for path in trail.folder.rglob("*.signature"):
        path.unlink()
    assert (checked(trail).findings, checked(trail).states["unsigned"]) == ([], 0)  # an empty hour
    cut = Trail(trail.folder.with_name("cut"), told(), hours=2).write()
    for path in cut.folder.rglob("*.signature"):
        path.unlink()
    assert checked(cut).findings == []
    assert 0 < checked(cut).states["unsigned"] < len(cut.files)


@pytest.mark.parametrize("hour", [0, 1, 2, 3])
def test_a_changed_digest_is_forged(trail: Trail, hour: int) -> None:
    rewrite(of(trail)[hour], lambda said: said.update(oldestEventTime="2020-01-01T00:00:00Z"))
    found = kinds(checked(trail))
    # Its signature, and the hash that the next one names of it.
    assert found == {Kind.DIGEST_FORGED: 1 if hour == 3 else 2}


def test_a_file_taken_out_of_its_digest_is_found_twice(trail: Trail) -> None:
    path = next(p for p in of(trail) if json.loads(gzip.decompress(p.read_bytes()))["logFiles"])
    rewrite(path, lambda said: said["logFiles"].pop())  # type: ignore[attr-defined]
    assert kinds(checked(trail)) == {Kind.DIGEST_FORGED: 2, Kind.FILE_UNLISTED: 1}


def test_a_chain_signed_by_somebody_else(tmp_path: Path) -> None:
    forged = Trail(tmp_path / "t", told(), signer=generate_private_key(65537, 2048)).write()
    found = checked(forged)
    assert kinds(found) == {Kind.DIGEST_FORGED: 8}
    assert set(found.states) == {"unsigned"}


def test_a_key_that_was_not_given_is_said(tmp_path: Path) -> None:
    def other(said: dict[str, object]) -> dict[str, object]:
        return {**said, "digestPublicKeyFingerprint": "ffff"}

    found = checked(Trail(tmp_path / "t", told(), edit=other).write())
    assert (found.findings, set(found.states)) == ([], {"unsigned"})
    assert len(found.notices) == 8


@pytest.mark.parametrize("hour", [1, 2])
def test_a_digest_that_is_gone_is_missing(trail: Trail, hour: int) -> None:
    path = of(trail)[hour]
    listed = len(json.loads(gzip.decompress(path.read_bytes()))["logFiles"])
    path.unlink()
    found = checked(trail)
    assert kinds(found) == +Counter({Kind.DIGEST_MISSING: 1, Kind.FILE_UNLISTED: listed})
    assert path.name in str(next(f for f in found.findings if f.kind is Kind.DIGEST_MISSING))


def test_the_first_of_a_copy_may_follow_one_that_is_older(trail: Trail) -> None:
    path = of(trail)[0]
    listed = len(json.loads(gzip.decompress(path.read_bytes()))["logFiles"])
    path.unlink()
    found = checked(trail)
    assert kinds(found) == +Counter({Kind.FILE_UNLISTED: listed})
    assert min(found.spans.values()) == (round(START * 1e6), round((START + 4 * HOUR) * 1e6))
    assert (round((START + HOUR) * 1e6), round((START + 4 * HOUR) * 1e6)) in found.spans.values()


def test_validation_begun_anew_is_a_broken_chain(tmp_path: Path) -> None:
    """As when it was turned off between: what was delivered then is not covered."""

    def anew(said: dict[str, object]) -> dict[str, object]:
        late = said["digestStartTime"] == "2027-01-15T10:00:00Z"
        return {**said, "previousDigestS3Object": None} if late else said

    assert kinds(checked(Trail(tmp_path / "t", told(), edit=anew).write())) == {
        Kind.DIGEST_BROKEN: 2
    }


def test_a_hole_and_an_overlap_in_time(tmp_path: Path) -> None:
    for begin, kind in (("10:10:00", Kind.DIGEST_MISSING), ("09:50:00", Kind.DIGEST_BROKEN)):

        def shifted(said: dict[str, object], begin: str = begin) -> dict[str, object]:
            moved = said["digestStartTime"] == "2027-01-15T10:00:00Z"
            return {**said, "digestStartTime": f"2027-01-15T{begin}Z"} if moved else said

        assert kinds(checked(Trail(tmp_path / begin, told(), edit=shifted).write())) == {kind: 2}


def test_a_digest_under_another_name_and_one_that_is_none(trail: Trail) -> None:
    first, second = of(trail)[1], of(trail)[2]
    moved = first.with_name(first.name.replace("eu-central-1", "eu-south-9"))
    moved.write_bytes(first.read_bytes())
    second.with_name("x.json.gz").write_bytes(b"\x1f\x8b nonsense")
    second.with_name("y.json").write_text("[]")
    assert kinds(checked(trail)) == {Kind.DIGEST_FORGED: 3}


def test_two_digests_with_one_name(trail: Trail) -> None:
    path = of(trail)[1]
    twin = trail.folder / "again" / "CloudTrail-Digest" / path.name
    twin.parent.mkdir(parents=True)
    twin.write_bytes(path.read_bytes())
    assert checked(trail).findings == []
    rewrite(twin, lambda said: said.update(logFiles=[]))
    assert kinds(checked(trail))[Kind.DIGEST_FORGED] >= 1


def test_files_newer_than_the_digests_are_no_finding_yet(trail: Trail) -> None:
    late = trail.files[0].name.split("_")
    late[3] = "20270115T1205Z"
    trail.files[0].with_name("_".join(late)).write_bytes(gzip.compress(b'{"Records":[]}'))
    found = checked(trail)
    assert (found.findings, found.states["newer"]) == ([], 1)
    # Of a region without any digest nothing is newer.
    late[2] = "us-east-1"
    trail.files[0].with_name("_".join(late)).write_bytes(gzip.compress(b'{"Records":[]}'))
    assert kinds(checked(trail)) == {Kind.FILE_UNLISTED: 1}


@pytest.mark.parametrize("seed", range(8))
def test_any_byte_of_any_file_that_changes_is_found(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    trail = Trail(tmp_path / "t", told(seed), seed=seed).write()
    path = random.choice([*trail.files, *trail.digests])
    data = bytearray(gzip.decompress(path.read_bytes()))
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(gzip.compress(bytes(data), mtime=0))
    found = checked(trail)
    assert any(path.name in str(one) for one in found.findings), found.findings


def test_when_a_file_was_delivered() -> None:
    name = "1_CloudTrail_eu-west-1_20270115T1205Z_abcTZ.json.gz"
    assert delivered(name) == instant("2027-01-15T12:05:00Z")
    assert delivered("notes.json") == UNKNOWN_TIME


def test_an_empty_digest_without_a_signature_proves_no_hour(trail: Trail) -> None:
    """Else whoever takes out the newest hour puts one there that lists nothing."""
    for path in trail.folder.rglob("*.signature"):
        path.unlink()
    rewrite(of(trail)[-1], lambda said: said.update(logFiles=[]))
    found = checked(trail)
    assert found.unsigned == 2
    assert not found.findings


def test_a_second_trail_does_not_cover_the_hour_between(trail: Trail) -> None:
    hour, begun = round(HOUR * 1e6), round(START * 1e6)
    scope = ("123456789012", "eu-central-1")
    assert checked(trail).reaches(scope, begun, begun + 4 * hour)
    for path in of(trail)[1:]:
        path.unlink()
    later = Trail(trail.folder, [], start=START + 2 * HOUR, hours=2, name="second").write()
    found = checked(later)
    assert [one for one in found.findings if one.kind is not Kind.FILE_UNLISTED] == []
    assert found.spans[scope] == (begun, begun + 4 * hour)
    assert not found.reaches(scope, begun, begun + 4 * hour)
    assert found.reaches(scope, begun + 2 * hour, begun + 4 * hour)


def test_late_files_cover_no_hour(tmp_path: Path) -> None:
    late = Trail(tmp_path, [], hours=1, late="_backfill").write()
    begun = round(START * 1e6)
    assert checked(late).digests == 1
    assert not checked(late).reaches(("123456789012", "eu-central-1"), begun, begun + 1)


def test_one_trail_may_lie_in_two_folders(trail: Trail, tmp_path: Path) -> None:
    """The signature of one day's last digest stands in the next day's first."""
    first, second = tmp_path / "a", tmp_path / "b"
    for number, path in enumerate(sorted([*trail.files, *trail.digests])):
        beside = path.with_name(path.name + ".signature")
        to = (first, second)[number % 2] / path.relative_to(trail.folder)
        to.parent.mkdir(parents=True, exist_ok=True)
        path.rename(to)
        if beside.exists():
            beside.rename(to.with_name(beside.name))
    held = [*log_files(first), *log_files(second)]
    found = check([first, second], held, keys())
    assert (found.findings, found.unsigned) == ([], 0)
    assert found.states == {"verified": len(trail.files)}
    assert found.regions == {"123456789012": ["eu-central-1", "eu-west-1"]}
