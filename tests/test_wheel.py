"""The wheel holds the four packages with all their data, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from house.tree import PACKAGES, Tree

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from this tree, without the wheel's own metadata."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = folder.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def test_it_holds_every_file_of_the_packages(members: set[str]) -> None:
    wanted = {str(path) for path in Tree(ROOT).files if path.parts[0] in PACKAGES}
    assert members == wanted
