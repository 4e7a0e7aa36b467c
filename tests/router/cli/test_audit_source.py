"""`audit query` over a bucket in memory. Against a real S3 API: `tests/router/storage`."""

from __future__ import annotations

import json

import pytest

from router.audit.layout import Folder
from router.audit.reading import LogReader
from tests.router.audit.logbox import LogBox
from tests.router.audit.shelf import Shelf
from tests.router.cli.conftest import Domicile


def test_a_bucket_is_asked_like_a_folder(domicile: Domicile, box: LogBox, shelf: Shelf) -> None:
    words = ("--outcome", "ok", "--json")
    there = domicile("audit", "query", "s3://b/logs/", "--region", "aws:eu-central-1", *words)
    assert there.code == 0, there.err
    here = domicile("audit", "query", box.folder, *words)
    rows = [json.loads(line) for line in there.out.splitlines()]
    assert rows
    assert rows == [json.loads(line) for line in here.out.splitlines()][: len(rows)]


def test_a_folder_says_what_is_no_longer_in_it(
    domicile: Domicile, box: LogBox, shelf: Shelf
) -> None:
    words = ("audit", "query", box.folder, "--json")
    before = domicile(*words)
    assert "released" not in before.err
    first, *_ = Folder(box.folder).log("eu-1").segments()
    first.path.unlink()
    after = domicile(*words)
    assert "the lines of 1 segments were released" in after.err
    assert 0 < len(after.out.splitlines()) < len(before.out.splitlines())


def test_every_reader_of_a_folder_says_what_is_no_longer_in_it(
    domicile: Domicile, box: LogBox, shelf: Shelf
) -> None:
    first, second, *_ = Folder(box.folder).log("eu-1").segments()
    gone, *_ = [one.id for one in LogReader(Folder(box.folder).log("eu-1")).of(first) if one.id]
    to = box.root / "events"
    calls = (("show", box.folder), ("export", box.folder, to, "--format", "ocsf", "--force"))
    assert all("released" not in domicile("audit", *words).err for words in calls)
    first.path.unlink()
    for words in calls:
        assert "brought back by `audit restore`" in domicile("audit", *words).err
    missed = domicile("audit", "prove", box.folder, gone)
    assert missed.code == 2
    assert "were released, see `audit restore`" in missed.err
    assert "released" not in domicile("audit", "show", box.folder, "--record",
                                      f"eu-1/{second.first + 1}").err  # fmt: skip


@pytest.mark.parametrize(
    ("source", "region", "code"),
    [
        ("s3://b/logs/", "", 2),
        ("s3:///logs/", "aws:eu-central-1", 2),
        ("s3://b/other/", "aws:eu-central-1", 1),
        ("s3://b/logs/", "gcp:europe-west3", 1),
    ],
)
def test_what_can_not_be_asked(
    domicile: Domicile, shelf: Shelf, source: str, region: str, code: int
) -> None:
    more = ("--region", region) if region else ()
    assert domicile("audit", "query", source, *more, "--json").code == code
