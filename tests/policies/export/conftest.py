"""The oracle for AWS policies: iam-simulate, installed once into a cache outside the tree."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

PACKAGE = "@cloud-copilot/iam-simulate@0.1.173"
Check = Mapping[str, object]
Oracle = Callable[[Mapping[str, object], Sequence[Check]], list[bool]]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "domicile-tests" / "iam-simulate-0.1.173"


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Asks iam-simulate about many checks at once. Skips without node, npm or the package."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("`node` and `npm` are not installed")
    folder = _cache()
    if not (folder / "node_modules/@cloud-copilot/iam-simulate").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
        ran = subprocess.run([npm, "install", *options, PACKAGE], check=False, timeout=300)
        if ran.returncode != 0:
            pytest.skip(f"npm can't install `{PACKAGE}`")
    script = Path(__file__).with_name("simulate.mjs")

    def ask(policies: Mapping[str, object], checks: Sequence[Check]) -> list[bool]:
        question = json.dumps({"policies": policies, "checks": checks})
        ran = subprocess.run(
            [node, str(script), str(folder)],
            input=question, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[-2000:]
        answers: list[bool] = json.loads(ran.stdout)
        return answers

    return ask
