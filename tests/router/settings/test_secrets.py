"""Secrets are found by reference, and no message shows one."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config import ConfigError
from router.settings.secrets import MAX_SECRET, resolve


def test_from_environment_and_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("value\n")
    assert resolve("file:key", {}, tmp_path) == b"value"
    assert resolve(f"file:{tmp_path / 'key'}", {}, Path("/")) == b"value"
    assert resolve("env:A", {"A": " v "}, tmp_path) == b"v"


@pytest.mark.parametrize("reference", ["env:NONE", "file:none", "hunter2", "env:", "ftp:x"])
def test_what_leads_nowhere(tmp_path: Path, reference: str) -> None:
    with pytest.raises(ConfigError):
        resolve(reference, {}, tmp_path)


def test_a_huge_file_is_no_secret(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"x" * (MAX_SECRET + 1))
    with pytest.raises(ConfigError, match="over"):
        resolve("file:key", {}, tmp_path)
