"""An hour of chaos at 200 requests a second, a fifth of them streams: what must hold, held.

`./run soak tests/soak/test_hour.py`; DOMICILE_SOAK_SECONDS, _RATE, _SEED and _FOLDER (which is
kept) change it. Everything runs as processes of its own, in a network namespace where that is
permitted, so that links can be cut and nothing has a way out. See `docs/soak.md`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import judging
from tests.chaos.namespaces import why_not
from tests.chaos.town import INSIDE
from tests.conftest import missing
from tests.router.supervisor.running import ROOT

SECONDS = float(os.environ.get("DOMICILE_SOAK_SECONDS", "3600"))
RATE = float(os.environ.get("DOMICILE_SOAK_RATE", "200"))
SEED = int(os.environ.get("DOMICILE_SOAK_SEED", "1"))
MORE_TASKS = 6
MORE_DESCRIPTORS = 12
"""Loops between two looks, and the connections of a probe: what comes and goes at rest."""


def soaked(folder: Path) -> str:
    """Run it; gives why links were not cut, if they weren't."""
    reason = why_not()
    figures = (str(folder), str(RATE), str(SECONDS), str(SEED))
    command = [sys.executable, "-m", "tests.soak.hour", *figures]
    if not reason:
        command = ["unshare", "--net", "sh", "-c", INSIDE, "sh", *command, "cuts"]
    ended = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return reason


def leaked(folder: Path) -> dict[str, object]:
    """The first worker, which lived through it all, at rest before and after; nothing is left."""
    rest = json.loads((folder / "rest.json").read_text())
    before, after = rest["before"], rest["after"]
    assert rest["code"] == 0, "the router did not end in good order"
    assert rest["left"] == [], "processes that outlive the router"
    assert (after["open"], after["tokens"]) == (0, 0)
    assert before["pids"][:2] == after["pids"][:2], "the first worker was not to die"
    for what, more in (("tasks", MORE_TASKS), ("descriptors", MORE_DESCRIPTORS)):
        assert len(before[what]) == len(after[what])
        for was, count in zip(before[what], after[what], strict=True):
            assert count <= was + more, (what, before[what], after[what])
    minutes = [row["memory"][1] for row in judging.rows(folder / "samples.jsonl")]
    return {
        "memory of the first worker, MiB": {
            "at rest before": round(before["memory"][1] / 1024, 1),
            "at rest after": round(after["memory"][1] / 1024, 1),
            "at most": round(max(minutes) / 1024, 1),
        },
        "tasks before, after": [before["tasks"], after["tasks"]],
        "descriptors before, after": [before["descriptors"], after["descriptors"]],
        "seconds": round(rest["ended"] - rest["began"], 1),
    }


def judge(folder: Path, reason: str) -> judging.Faults:
    """Everything about a folder's evidence, printed and left in `told.json`."""
    faults = judging.Faults()
    figures = judging.judged(folder, faults)
    told = {**figures, "events": judging.events(folder), **leaked(folder)}
    told |= {"faults": dict(faults.counts), "links not cut": reason}
    sys.stdout.write("\n" + json.dumps(told, indent=1) + "\n" + verified(folder))
    (folder / "told.json").write_text(json.dumps(told, indent=1))
    assert figures["requests"] == int(RATE * SECONDS)
    return faults


def verified(folder: Path) -> str:
    """What `domicile audit verify` says of the log."""
    script = "from router.cli.main import main; main()"
    command = [sys.executable, "-c", script, "audit", "verify", str(folder / "log")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.soak
@pytest.mark.chaos
def test_an_hour_of_chaos(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip(missing("redis-server"))
    kept = os.environ.get("DOMICILE_SOAK_FOLDER")
    folder = Path(kept) if kept else tmp_path
    folder.mkdir(exist_ok=True)
    assert not any(folder.iterdir()), f"`{folder}` holds evidence of another run"
    faults = judge(folder, soaked(folder))
    assert not faults.counts, faults.told
