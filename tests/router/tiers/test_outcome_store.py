"""Outcomes on disk: what is kept comes back, a torn line is cut, anything else is told."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.difficulty.audit import Shadow
from classifiers.difficulty.dataset import features_row, read
from classifiers.difficulty.features import extract
from classifiers.view import PromptView
from router.audit.layout import Folder
from router.audit.roster import read_roster
from router.server import serve
from router.tiers.outcome_store import Outcome, OutcomeStore, OutcomesUnreadable, of_router
from tests.cases.built import ENVIRONMENT, MAIN, Files


def outcome(text: str = "what is the capital of france", at: float = 5.0) -> Outcome:
    shadow = Shadow("eu", "question", "latin", "small", 0.0, 1.0)
    features = features_row(extract(PromptView.of_text(text)))
    return Outcome(at, "two", "w", "s", "exact", shadow, features)


@given(st.text(max_size=80))
def test_a_line_comes_back(text: str) -> None:
    one = outcome(text)
    assert Outcome.read(one.line()) == one
    assert one.line().count(b"\n") == 1


def test_the_order_of_words_is_gone() -> None:
    one, other = (outcome(text).features for text in ("alpha beta", "beta alpha"))
    assert one == other


def test_a_model_can_be_trained_from_it(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl")
    store.append(outcome())
    [row] = read([store.path])
    assert (row.pair, row.y_weak, row.y_strong, row.category) == ("w:s", 0.0, 1.0, "question")
    whole = extract(PromptView.of_text("what is the capital of france"))
    assert row.features == whole


def test_two_files_are_kept(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl", limit=3 * len(outcome().line()))
    for at in range(8):
        store.append(outcome(at=float(at)))
    assert [one.at for one in store.read()] == [3.0, 4.0, 5.0, 6.0, 7.0]


def test_a_torn_line_is_cut_off(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl")
    store.mend()
    store.append(outcome())
    with store.path.open("ab") as file:
        file.write(outcome().line()[:40])
    assert len(list(store.read())) == 1
    store.mend()
    store.append(outcome(at=9.0))
    assert [one.at for one in store.read()] == [5.0, 9.0]


@pytest.mark.parametrize(
    "line",
    [
        b"{}", b"[]", b"nonsense", outcome().line().replace(b'"v":1', b'"v":2'),
        outcome().line().replace(b'"y_weak":0.0', b'"y_weak":7'),
        outcome().line().replace(b'"y_weak":0.0', b'"y_weak":true'),
    ],
)  # fmt: skip
def test_anything_else_is_told_with_its_place(tmp_path: Path, line: bytes) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl")
    store.append(outcome())
    with store.path.open("ab") as file:
        file.write(line.strip() + b"\n")
    with pytest.raises(OutcomesUnreadable, match=r"o.jsonl:2: no outcome"):
        list(store.read())


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(store: OutcomeStore) -> int:
    """Append until the disk is full; how many lines were taken."""
    for count in range(10_000):
        try:
            store.append(outcome(at=float(count)))
        except OSError:
            return count
    raise AssertionError("never full")


def test_a_full_disk_tears_no_line(tiny_disk: Path) -> None:
    """A part of a line in mid-file kept the next start from reading any of it."""
    store = OutcomeStore(tiny_disk / "o.jsonl")
    written = fill(store)
    with pytest.raises(OSError, match="No space"):
        store.append(outcome())
    assert [one.at for one in store.read()] == list(range(written))
    store.path.rename(tiny_disk / "p.jsonl")
    (tiny_disk / "p.jsonl").unlink()
    store.append(outcome(at=7.0))
    assert [one.at for one in store.read()] == [7.0]


def test_what_follows_a_torn_line_in_service_is_whole(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl")
    store.append(outcome(at=1.0))
    with store.path.open("ab") as file:
        file.write(b"\0" * 200_000)  # as a file system may leave it after a loss of power
    store.append(outcome(at=2.0))
    assert [one.at for one in store.read()] == [1.0, 2.0]


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "kept" / "o.jsonl")
    store.append(outcome())
    shutil.rmtree(tmp_path / "kept")
    store.append(outcome(at=2.0))
    assert [one.at for one in store.read()] == [2.0]


def test_alarms_are_kept_as_a_whole_for_the_owner_only(tmp_path: Path) -> None:
    store = OutcomeStore(tmp_path / "eu-1.w2.jsonl")
    assert store.read_alarms() == ()
    store.keep_alarms([("two", 0.05, "tenant=eu", 5.0)])
    assert store.read_alarms() == (("two", 0.05, "tenant=eu", 5.0),)
    assert store.alarms.name == "eu-1.w2.alarms.json"
    assert store.alarms.stat().st_mode & 0o077 == 0
    store.keep_alarms([])
    assert store.read_alarms() == ()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[1]", "5", "{}", '{"v": 2, "alarms": []}', '{"v": 1, "alarms": {}}',
        '{"v": 1, "alarms": [["two"]]}', '{"v": 1, "alarms": [["two", "x", "g", 1]]}',
    ],
)  # fmt: skip
def test_alarms_that_can_not_be_read_are_told(tmp_path: Path, text: str) -> None:
    store = OutcomeStore(tmp_path / "o.jsonl")
    store.alarms.write_text(text)
    with pytest.raises(OutcomesUnreadable, match=r"o\.alarms\.json: no alarms"):
        store.read_alarms()


def test_the_stores_of_a_router_are_its_own(tmp_path: Path) -> None:
    for name in ("eu-1.jsonl", "eu-1.w1.jsonl.1", "eu-1.w3.alarms.json", "eu-10.jsonl", "x.txt"):
        (tmp_path / name).touch()
    used, gone = of_router(tmp_path, "eu-1", ["eu-1.w1", "eu-1.w2"])
    # The second of them may write its own before the first has read it.
    assert [one.path.name for one in used] == ["eu-1.w1.jsonl", "eu-1.w2.jsonl"]
    assert [one.path.name for one in gone] == ["eu-1.jsonl", "eu-1.w3.jsonl"]


async def test_a_router_does_not_start_without_the_alarms_it_may_have_had(tmp_path: Path) -> None:
    main = MAIN.replace("id: eu-1\n", "id: eu-1\n  listen: 127.0.0.1:0\n  admin: 127.0.0.1:0\n")
    path = Files(main=main + "grading: {outcomes: kept}\n").write(tmp_path)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "eu-1.jsonl").write_bytes(b"nonsense\n")
    with pytest.raises(OutcomesUnreadable, match=r"kept/eu-1.jsonl:1: no outcome"):
        await serve(path, ENVIRONMENT)
    lines, _ = read_roster(Folder(tmp_path / "log"))
    assert [line.event for line in lines] == ["start", "stop"], "its log was left open"
