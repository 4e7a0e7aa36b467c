"""`domicile audit restore`: exit codes and words, over a bucket in memory.

Against a real S3 API: `tests/router/storage/test_seal.py`.
"""

from pathlib import Path

from tests.router.audit.logbox import LogBox
from tests.router.audit.shelf import Shelf
from tests.router.cli.conftest import Domicile, Ran


def run(domicile: Domicile, box: LogBox, *words: str | Path) -> Ran:
    key = box.key_file
    place = ("--s3", "b", "--region", "aws:eu-central-1", "--prefix", "logs/", "--key", key)
    return domicile("audit", "restore", box.root / "copy", *place, *words)


def test_what_was_sealed_is_restored_and_verified(
    domicile: Domicile, box: LogBox, shelf: Shelf
) -> None:
    ran = run(domicile, box, "--against", box.folder / "eu-1" / "checkpoint", "--json")
    assert ran.code == 0
    assert ran.json["objects"] == len(shelf.objects)
    assert ran.json["findings"] == []
    again = run(domicile, box)
    assert (again.code, "is not empty" in again.err) == (1, True)


def test_what_could_be_deleted_is_a_finding(domicile: Domicile, box: LogBox, shelf: Shelf) -> None:
    shelf.mode = "GOVERNANCE"
    ran = run(domicile, box)
    assert ran.code == 1
    assert "not immutable: logs/eu-1/" in ran.out


def test_another_key_is_a_finding(
    domicile: Domicile, box: LogBox, shelf: Shelf, tmp_path: Path
) -> None:
    other = LogBox(tmp_path / "other")
    ran = domicile(
        "audit", "restore", box.root / "copy", "--s3", "b", "--region", "aws:eu-central-1",
        "--prefix", "logs/", "--key", other.key_file,
    )  # fmt: skip
    assert ran.code == 1
    assert "finding: " in ran.out


def test_usage(domicile: Domicile, box: LogBox, shelf: Shelf) -> None:
    assert run(domicile, box, "--against", box.root / "gone").code == 2
    assert domicile("audit", "restore", box.root / "copy", "--s3", "b").code == 2
