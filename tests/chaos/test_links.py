"""Regions behind links that are cut, slow and lossy: nothing leaks, and all comes back.

Real processes in three network namespaces without a default route, joined by user-space links.
Skipped by name where namespaces of one's own are not permitted.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.chaos import judging
from tests.chaos.links import PHASES, RATE
from tests.chaos.namespaces import why_not
from tests.chaos.town import INSIDE
from tests.router.supervisor.running import ROOT

Heard = list[object]


def between(folder: Path, name: str) -> list[Heard]:
    """What clients that may use the EU only heard of requests they made in one phase.

    Those who hung up, and those of the key that may ask one thing at a time, are left out.
    """
    (phase,) = (row for row in judging.rows(folder / "events.jsonl") if row[0] == name)
    _, _, began, ended = phase
    rows = (row for row in judging.rows(folder / "load.jsonl") if isinstance(row, list))
    return [row for row in rows if row[2] == "clinic" and not row[8] and began <= row[0] < ended]


def ends(heard: list[Heard]) -> Counter[str]:
    """How they ended: an endpoint, or a code."""
    return Counter(str(row[9] if row[4] == 200 else row[5]) for row in heard)


@pytest.mark.slow
@pytest.mark.chaos
def test_cut_slow_and_lossy_links(tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(f"no network namespaces here: {reason}")
    inside = ["unshare", "--net", "sh", "-c", INSIDE, "sh"]
    command = [sys.executable, "-m", "tests.chaos.links", str(tmp_path)]
    ran = subprocess.run([*inside, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert (tmp_path / "code").read_text() == "0", (tmp_path / "router.stderr").read_text()
    faults = judging.Faults()
    figures = judging.judged(tmp_path, faults)
    assert not faults.counts, faults.told
    assert figures["requests"] == int(RATE * sum(seconds for _, seconds in PHASES))
    phases = {name: ends(between(tmp_path, name)) for name, _ in PHASES}
    sys.stdout.write(f"\n{figures}\n{phases}\n")
    held_up(phases)


def held_up(phases: dict[str, Counter[str]]) -> None:
    """What each phase must have come to."""
    cut = phases["one cut"]
    assert cut["par"] > 20, "the other region serves"
    assert set(cut) <= {"par", "fra"}, "nobody fails whom another region can serve"
    assert phases["joined"]["fra"] > 0, "the region is back"
    # Longer than a request's deadline; but many were asked before the cut was felt, or are
    # answered once it ends: how many depends on the machine.
    both = phases["both cut"]
    refused = both.total() - both["fra"] - both["par"]
    assert refused > 0
    assert set(both) <= {
        "fra",
        "par",
        "deadline",
        "upstream_timeout",
        "upstream_unavailable",
        "overloaded",
    }
    assert phases["joined again"]["fra"] + phases["joined again"]["par"] > 0
    for name in ("lossy", "slow"):
        assert set(phases[name]) <= {"fra", "par"}, "packets are sent again"
        assert phases[name].total() > 20
