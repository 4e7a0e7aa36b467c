import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from house import install


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two locks, where `install` works instead of here."""
    (tmp_path / "requirements.lock").write_text("")
    (tmp_path / "requirements-dev.lock").write_text(
        'tool==1 ; python_version > "3" \\\n    --hash=sha256:aa\n    # via x\n'
        "uv==2 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
        "zebra==1 \\\n    --hash=sha256:dd\n"
    )
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "thing"\nversion = "7.0"\n[project.scripts]\nthing = "pack.age:main"\n'
    )
    monkeypatch.setattr(install, "ROOT", tmp_path)
    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(install, "PYTHON", tmp_path / ".venv" / "bin" / "python")
    monkeypatch.setattr(install, "STAMP", tmp_path / ".venv" / "domicile-stamp.json")
    locks = {"runtime": tmp_path / "requirements.lock", "dev": tmp_path / "requirements-dev.lock"}
    monkeypatch.setattr(install, "LOCKS", locks)
    return tmp_path


def test_the_pinned_lines_hold_one_package_and_its_hashes(project: Path) -> None:
    assert install.pinned("uv") == "uv==2 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    assert install.pinned("zebra").startswith("zebra==1")


def test_the_digest_changes_with_the_lock_and_the_project_file(project: Path) -> None:
    before = install.digest("runtime"), install.digest("dev")
    (project / "requirements.lock").write_text("x==1")
    after = install.digest("runtime"), install.digest("dev")
    assert before[0] != after[0]
    assert before[1] == after[1]
    (project / "pyproject.toml").write_text("")
    assert install.digest("dev") != after[1]


@pytest.mark.parametrize("text", ["", "[]", "{broken", "3"])
def test_a_broken_stamp_means_nothing_is_installed(project: Path, text: str) -> None:
    venv.create(project / ".venv")
    (project / ".venv" / "domicile-stamp.json").write_text(text)
    assert install.stamps() == {}


def test_a_stamp_without_its_python_means_nothing_is_installed(project: Path) -> None:
    (project / ".venv").mkdir()
    (project / ".venv" / "domicile-stamp.json").write_text('{"dev": "x"}')
    assert install.stamps() == {}


def test_a_python_without_venv_is_told_the_exact_command(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install, "find_spec", lambda _name: None)
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    with pytest.raises(install.Stop, match=f"apt-get install -y {package}"):
        install.create()


def test_the_linked_project_has_command_metadata_and_import(project: Path) -> None:
    venv.create(project / ".venv")
    (project / "pack").mkdir()
    (project / "pack" / "age.py").write_text("import sys\ndef main(): print(sys.argv[1:])\n")
    install.link()
    command = [str(project / ".venv" / "bin" / "thing"), "a b", "--c"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "['a b', '--c']\n"
    code = "import importlib.metadata as m; print(m.version('thing'))"
    python = project / ".venv" / "bin" / "python"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "7.0\n"


@pytest.fixture
def steps(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that `fit` takes, none of which does anything."""
    taken: list[str] = []

    def create() -> None:
        venv.create(project / ".venv")
        taken.append("create")

    monkeypatch.setattr(install, "create", create)
    monkeypatch.setattr(install, "install", taken.append)
    monkeypatch.setattr(install, "link", lambda: taken.append("link"))
    monkeypatch.setattr(install, "compile_scorer", lambda: taken.append("compile"))
    return taken


@pytest.mark.parametrize("text", ["exit 0", "echo no C compiler >&2; exit 1"])
def test_a_scorer_that_is_not_compiled_is_told_and_stops_nothing(
    project: Path, capfd: pytest.CaptureFixture[str], text: str
) -> None:
    command = project / ".venv" / "bin" / "domicile"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\n{text}\n")
    command.chmod(0o755)
    install.compile_scorer()
    told = "the difficulty scorer stays in Python: no C compiler\n"
    assert capfd.readouterr().err == (told if "exit 1" in text else "")


def test_a_fitting_venv_is_left_alone(steps: list[str]) -> None:
    install.fit("runtime")
    install.fit("runtime")
    assert steps == ["create", "runtime", "link", "compile"]


def test_the_development_lock_serves_the_runtime_too(steps: list[str]) -> None:
    install.fit("dev")
    install.fit("runtime")
    assert steps == ["create", "dev", "link", "compile"]


def test_the_runtime_lock_does_not_serve_development(steps: list[str]) -> None:
    install.fit("runtime")
    install.fit("dev")
    assert steps == ["create", "runtime", "link", "compile", "create", "dev", "link", "compile"]


def test_a_failed_installation_leaves_no_stamp(
    project: Path, steps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_kind: str) -> None:
        raise install.Stop("no network")

    monkeypatch.setattr(install, "install", fail)
    with pytest.raises(install.Stop, match="no network"):
        install.fit("dev")
    assert not install.STAMP.exists()


def test_two_calls_at_once_install_once(project: Path, steps: list[str]) -> None:
    slow = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from house import install
root = Path(sys.argv[1])
install.ROOT, install.VENV = root, root / ".venv"
install.PYTHON, install.STAMP = root / ".venv/bin/python", root / ".venv/domicile-stamp.json"
install.LOCKS = {"runtime": root / "requirements.lock", "dev": root / "requirements-dev.lock"}
def put(kind):
    with (root / "log").open("a") as log: log.write(kind + "\\n")
    time.sleep(0.3)
install.create = lambda: __import__("venv").create(root / ".venv")
install.install, install.link, install.compile_scorer = put, lambda: None, lambda: None
install.fit("dev")
"""
    command = [sys.executable, "-c", slow, str(project), os.getcwd()]
    calls = [subprocess.Popen(command) for _ in range(3)]
    assert [call.wait(60) for call in calls] == [0, 0, 0]
    assert (project / "log").read_text() == "dev\n"
    assert json.loads(install.STAMP.read_text()).keys() == {"runtime", "dev"}
