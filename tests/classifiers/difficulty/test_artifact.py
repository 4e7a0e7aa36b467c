"""An artifact is bytes: they round-trip, damage is found, the name is the digest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.difficulty import artifact as module
from classifiers.difficulty.artifact import Artifact, ArtifactError, decode, load, save


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


def test_features_of_another_version_are_refused(artifact: Artifact) -> None:
    data = artifact.encode().replace(b'"which"', b'"witch"')
    with pytest.raises(ArtifactError, match="other features"):
        decode(data)


def test_a_file_above_the_limit_is_not_written(artifact: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "big.bin"
    with pytest.raises(ArtifactError, match="fewer pairs"):
        save(replace(artifact, card={"filler": "x" * module.LIMIT}), path)
    assert not path.exists()
