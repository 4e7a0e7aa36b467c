"""Which ledger a configuration asks for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from router.config import Config, ConfigError, load
from router.state.memory import MemoryLedger
from router.state.opening import open_ledger
from router.state.shared import SharedLedger

BASE = """\
version: 1
router: {id: eu-1, region: aws:eu-central-1}
keys: {file: k}
policies: {baseline: [b]}
log: {dir: log, signing_key: file:k}
"""
STATE = "state: {redis: env:REDIS_URL, region: aws:eu-central-1, share: 0.25}\n"


def config(tmp_path: Path, text: str) -> Config:
    (tmp_path / "domicile.yaml").write_text(text)
    return load(tmp_path / "domicile.yaml")


def test_memory_by_default(tmp_path: Path) -> None:
    found = open_ledger(config(tmp_path, BASE), {}, tmp_path, lambda: 0.0)
    assert isinstance(found, MemoryLedger)


@pytest.mark.parametrize("url", ["redis://127.0.0.1:6379/0", "rediss://u:p@h:6380"])
def test_redis_by_reference(tmp_path: Path, url: str) -> None:
    found = open_ledger(config(tmp_path, BASE + STATE), {"REDIS_URL": url}, tmp_path, lambda: 0.0)
    assert isinstance(found, SharedLedger)


@pytest.mark.parametrize("environment", [{}, {"REDIS_URL": "http://h"}])
def test_a_wrong_reference(tmp_path: Path, environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        open_ledger(config(tmp_path, BASE + STATE), environment, tmp_path, lambda: 0.0)


def test_a_router_that_counts_alone_does_not_load_redis() -> None:
    script = "import sys, router.state.opening; print([n for n in sys.modules if 'redis' in n][:3])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
