"""An artifact is bytes: they round-trip, damage is found, the name is the digest."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from math import isfinite
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty import artifact as module
from classifiers.difficulty.artifact import Artifact, ArtifactError, decode, load, save
from classifiers.difficulty.scorer import Difficulty
from classifiers.view import PromptView


def test_round_trip(artifact: Artifact, tmp_path: Path) -> None:
    version = save(artifact, tmp_path / "m.bin")
    again = load(tmp_path / "m.bin")
    assert again.pairs == artifact.pairs
    assert again.tables == artifact.tables
    assert again.version() == version == artifact.version()
    assert version.startswith("toy@")


def test_any_change_changes_the_version(artifact: Artifact) -> None:
    assert replace(artifact, card={"rows": 1}).version() != artifact.version()
    name = min(artifact.tables)
    tables = artifact.tables[name]
    changed = replace(tables, weak=bytes([tables.weak[0] ^ 1]) + tables.weak[1:])
    other = replace(artifact, tables={**artifact.tables, name: changed})
    assert other.version() != artifact.version()


@settings(max_examples=60)
@given(st.binary(max_size=64))
def test_other_bytes_are_refused(data: bytes) -> None:
    for body in (data, module.MAGIC + data):
        with pytest.raises(ArtifactError):
            decode(body)


@pytest.mark.parametrize("cut", [1, 100, 10_000])
def test_a_short_or_long_file_is_refused(artifact: Artifact, cut: int) -> None:
    data = artifact.encode()
    with pytest.raises(ArtifactError, match="cut short"):
        decode(data[:-cut])
    with pytest.raises(ArtifactError, match="cut short"):
        decode(data + bytes(cut))


def test_a_header_with_damaged_numbers_is_refused_or_can_be_scored(artifact: Artifact) -> None:
    data = artifact.encode()
    start = len(module.MAGIC) + 4
    header = data[start : start + int.from_bytes(data[start - 4 : start], "big")]
    places = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", header))
    for place in Random(1).sample(places, 60):
        for new in (b"NaN", b"1e999", b"null", b'"x"', b"[]", b"{}", b"1e300", b"0"):
            text = header[: place.start()] + new + header[place.end() :]
            body = data[start + len(header) :]
            try:
                found = decode(module.MAGIC + len(text).to_bytes(4, "big") + text + body)
            except ArtifactError:
                continue
            score = Difficulty(found, "w", "s").score(PromptView.of_text("What is the sky for?"))
            assert isfinite(score.probability)


def test_what_is_written_is_never_half_there(
    artifact: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.bin"
    save(artifact, path)
    path.chmod(0o640)
    (tmp_path / "link.bin").symlink_to(path)
    save(replace(artifact, name="other"), tmp_path / "link.bin")
    assert (load(path).name, path.stat().st_mode & 0o777) == ("other", 0o640)

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(artifact, path)
    assert load(path).name == "other"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.bin", "m.bin"]


def test_features_of_another_version_are_refused(artifact: Artifact) -> None:
    data = artifact.encode().replace(b'"which"', b'"witch"')
    with pytest.raises(ArtifactError, match="other features"):
        decode(data)


def test_a_file_above_the_limit_is_not_written(artifact: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    with pytest.raises(ArtifactError, match="fewer pairs"):
        save(replace(artifact, card={"filler": "x" * module.LIMIT}), path)
    assert not path.exists()


def test_what_is_no_file_is_not_put_away_for_one(artifact: Artifact, tmp_path: Path) -> None:
    """`--output /dev/null` put a file in the place of the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"no file is there: '.*pipe'"):
        save(artifact, pipe)
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_an_error_names_the_file_that_was_asked_for(artifact: Artifact, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file or directory: '.*/none/m\.bin'$"):
        save(artifact, tmp_path / "none" / "m.bin")
