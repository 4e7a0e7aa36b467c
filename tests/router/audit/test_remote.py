"""A bucket is asked as the folder that was sealed into it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from router.audit.layout import Folder
from router.audit.query import Question, ask, ask_rows, export
from router.audit.remote import NothingThere, parquet, sealed, sealed_rows
from router.audit.restore import restore
from router.audit.rows import rows
from router.audit.sealing import SealRefused
from tests.router.audit.logbox import LogBox
from tests.router.audit.sealable import fill, sealer
from tests.router.audit.shelf import Shelf

LATER = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
async def shelf(box: LogBox) -> Shelf:
    await fill(box)
    shelf = Shelf()
    list(sealer(box, shelf).run())
    return shelf


def test_rows_of_sealed_segments_are_those_of_the_restored_folder(
    box: LogBox, shelf: Shelf, tmp_path: Path
) -> None:
    restore(shelf, "logs/", tmp_path / "copy")
    into = tmp_path / "into"
    into.mkdir()
    told: list[int] = []
    found = list(sealed_rows(shelf, "logs/", into, told.append))
    assert found == list(rows(Folder(tmp_path / "copy")))
    assert len(found) > 10
    assert sum(told) == len(sealed(shelf, "logs/")["eu-1"])
    assert not list(into.iterdir()), "a segment lies there only while it is read"


def test_a_question_to_a_bucket(box: LogBox, shelf: Shelf, tmp_path: Path) -> None:
    request = next(iter(rows(Folder(box.folder)))).request
    table = ask_rows(sealed_rows(shelf, "logs/", tmp_path), Question(request=request))
    assert sum(len(batch) for batch in table.batches) == 1


def test_parquet_files_are_brought_and_asked(box: LogBox, shelf: Shelf, tmp_path: Path) -> None:
    made, into = tmp_path / "a.parquet", tmp_path / "into"
    into.mkdir()
    count = export(box.folder, made)
    for name in ("x/1.parquet", "x/2.parquet", "x/readme.txt"):
        shelf.create(name, made.read_bytes(), LATER)
    assert parquet(shelf, "x/", into) == 2
    found = ask(into, Question())
    assert sum(len(batch) for batch in found.batches) == 2 * count
    assert parquet(shelf, "logs/", into) == 0


def test_nothing_there_and_spoiled_objects(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(NothingThere, match="lie below `other/`"):
        list(sealed_rows(shelf, "other/", tmp_path))
    key = sealed(shelf, "logs/")["eu-1"][0][1]
    shelf.objects[key] = (b"no zstd", LATER)
    with pytest.raises(SealRefused, match=r"can't be unpacked|does not say"):
        list(sealed_rows(shelf, "logs/", tmp_path))
