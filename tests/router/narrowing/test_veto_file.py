"""The state file of vetoes: durable, whole, and never guessed at."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.audit.disk import LocalDisk
from router.narrowing.veto_file import Drift, Imposed, State, VetoFile, VetoFileBroken

ONE = Imposed(what="place", name="aws:eu-west-1", reason="flood", by="boss", at=1.5)
TWO = Imposed(what="endpoint", name="a", reason="ill", by="local", at=2.0)
DRIFT = Drift(endpoint="a", at=3.0, process=["unknown"], retain=[], operate=["any"])


def test_no_file_means_nothing_is_in_force(tmp_path: Path) -> None:
    assert VetoFile.open(tmp_path, "eu-1", LocalDisk()).state == State()


def test_what_is_saved_is_there_after_a_restart(tmp_path: Path) -> None:
    file = VetoFile.open(tmp_path, "eu-1", LocalDisk())
    file.save(State(imposed=(ONE, TWO), drifts=(DRIFT,)))
    again = VetoFile.open(tmp_path, "eu-1", LocalDisk()).state
    assert again == State(imposed=(ONE, TWO), drifts=(DRIFT,))


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format":2}', b'{"imposed":[{"what":"all"}]}', b'{"more":1}']
)
def test_a_file_that_cannot_be_read_stops_the_start(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "eu-1" / "vetoes.json"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(VetoFileBroken, match="what is quarantined is not known"):
        VetoFile.open(tmp_path, "eu-1", LocalDisk())


def test_a_folder_in_its_place_stops_it_too(tmp_path: Path) -> None:
    (tmp_path / "eu-1" / "vetoes.json").mkdir(parents=True)
    with pytest.raises(VetoFileBroken, match="can't read"):
        VetoFile.open(tmp_path, "eu-1", LocalDisk())


def test_a_failed_write_leaves_the_old_state(tmp_path: Path) -> None:
    file = VetoFile.open(tmp_path, "eu-1", LocalDisk())
    (tmp_path / "eu-1" / "vetoes.json").mkdir(parents=True)
    with pytest.raises(VetoFileBroken, match="can't write"):
        file.save(State(imposed=(ONE,)))
    assert file.state == State()
