"""Make `.venv` fit a lock file: create it, install with hashes, link the project, leave a stamp.

Runs under the machine's own python, so: standard library only. Called by `run`; two calls at once
wait for each other. No build back end is needed: the project is linked by a path file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "domicile-stamp.json"
LOCKS = {"runtime": ROOT / "requirements.lock", "dev": ROOT / "requirements-dev.lock"}

LAUNCHER = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import sys
from {module} import {function}
sys.exit({function}())
"""


class Stop(Exception):
    """Set-up cannot go on; the message says what to do."""


def digest(kind: str) -> str:
    """What an installation of lock `kind` is made from: lock, project file, this script, place."""
    parts = (LOCKS[kind], ROOT / "pyproject.toml", Path(__file__))
    whole = b"\0".join(part.read_bytes() for part in parts) + str(ROOT).encode()
    return hashlib.sha256(whole).hexdigest()


def stamps() -> dict[str, str]:
    """Digests of what is installed, by lock; empty when nothing is, or when `.venv` is broken."""
    try:
        found = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and PYTHON.exists() else {}


def run(*command: str | Path, quiet: bool = False) -> bool:
    """Run a command with its output on stderr; true when it exits 0."""
    out = subprocess.DEVNULL if quiet else sys.stderr
    return (
        subprocess.run(list(map(str, command)), stdout=out, stderr=out, check=False).returncode == 0
    )


def create() -> None:
    """Create `.venv` with pip in it, unless a working one stands there."""
    if run(PYTHON, "-c", "import pip", quiet=True) if PYTHON.exists() else False:
        return
    if find_spec("venv") is None or find_spec("ensurepip") is None:
        package = "python{}.{}-venv".format(*sys.version_info)
        raise Stop(f"this python has no venv; first run: apt-get install -y {package}")
    working = PYTHON.exists() and run(PYTHON, "-c", "", quiet=True)
    if working and run(PYTHON, "-m", "ensurepip", quiet=True):
        return
    print(f"creating {VENV}", file=sys.stderr)
    if not run(sys.executable, "-m", "venv", "--clear", VENV):
        raise Stop("could not create .venv; see the message above")


def pinned(name: str) -> str:
    """The lines of the development lock that pin `name`, hashes included."""
    lines = LOCKS["dev"].read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}=="))
    ends = (i for i in range(start + 1, len(lines)) if not lines[i].startswith(" "))
    return "\n".join(lines[start : next(ends, len(lines))]) + "\n"


def fast_installer() -> Path | None:
    """`uv` inside `.venv`, installed by pip with its pinned hash; None when it can't be had."""
    uv = VENV / "bin" / "uv"
    if uv.exists():
        return uv
    with tempfile.TemporaryDirectory() as folder:
        lock = Path(folder) / "uv.lock.txt"
        lock.write_text(pinned("uv"))
        pip = (PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes")
        return uv if run(*pip, "-r", lock, quiet=True) else None


def install(kind: str) -> None:
    """Install lock `kind`: by uv where possible, else by pip. Hashes are checked either way."""
    lock = LOCKS[kind]
    print(f"installing {lock.name}", file=sys.stderr)
    uv = fast_installer()
    if uv is not None:
        fast = (uv, "pip", "install", "--quiet", "--python", PYTHON, "--compile-bytecode")
        if run(*fast, "--require-hashes", "-r", lock):
            return
        print("uv could not; trying pip", file=sys.stderr)
    if not run(PYTHON, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", lock):
        raise Stop(f"could not install {lock.name}; see the message above")


def link() -> None:
    """Make the source tree importable in `.venv`, with its metadata and its `domicile` command."""
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([PYTHON, "-c", where], capture_output=True, text=True, check=True)
    site = Path(found.stdout.strip())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name, version = project["name"], project["version"]
    (site / f"{name}.pth").write_text(f"{ROOT}\n")
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for script, target in project["scripts"].items():
        module, function = target.split(":")
        path = VENV / "bin" / script
        path.write_text(LAUNCHER.format(python=PYTHON, module=module, function=function))
        path.chmod(0o755)


def compile_scorer() -> None:
    """Compile what is faster in C; the project works without, so that a failure is only told."""
    command = (VENV / "bin" / "domicile", "classifier", "compile", "--json")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().rsplit("\n", 1)[-1]
        print(f"the difficulty scorer stays in Python: {last}", file=sys.stderr)


def fit(kind: str) -> None:
    """Bring `.venv` to lock `kind`; at once when the stamp says it is there."""
    want = digest(kind)
    if stamps().get(kind) == want:
        return
    with (ROOT / ".venv.lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        if stamps().get(kind) == want:  # the other call did it
            return
        create()
        install(kind)
        link()
        compile_scorer()
        # the development lock holds the runtime lock, at the same versions
        kinds = LOCKS if kind == "dev" else (kind,)
        fresh = STAMP.with_suffix(".new")
        fresh.write_text(json.dumps({name: digest(name) for name in kinds}))
        os.replace(fresh, STAMP)


def main() -> int:
    """Fit `.venv` to the lock named by the first argument, `runtime` or `dev`."""
    kind = sys.argv[1] if len(sys.argv) > 1 else "dev"
    if kind not in LOCKS:
        print(f"run: no lock `{kind}`; there are: {', '.join(LOCKS)}", file=sys.stderr)
        return 2
    try:
        fit(kind)
    except Stop as stop:
        print(f"run: {stop}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
