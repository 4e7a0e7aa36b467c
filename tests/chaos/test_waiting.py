"""Who waits in the socket of a worker that dies again: served by the others where Linux is told so.

What `docs/serving.md` and decision 54 say of `net.ipv4.tcp_migrate_req`, in a network namespace of
its own, so that no setting of the machine changes.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.namespaces import why_not
from tests.router.supervisor.running import ROOT

COUNT = 400
SETTING = Path("/proc/sys/net/ipv4/tcp_migrate_req")
INSIDE = 'ip link set lo up && echo "$1" > /proc/sys/net/ipv4/tcp_migrate_req && shift && exec "$@"'


def answered(how: str, setting: int) -> int:
    """How many of those that waited in both sockets were served; the rest was reset."""
    waiting = (sys.executable, "-m", "tests.chaos.waiting", how, str(COUNT))
    command = ("unshare", "--net", "sh", "-c", INSIDE, "sh", str(setting), *waiting)
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    served, reset = map(int, ran.stdout.split())
    assert served + reset == COUNT
    return served


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize("how", ["closed", "shut"])
def test_the_kernel_gives_them_to_the_others_where_it_is_told_to(how: str) -> None:
    if not SETTING.exists():
        pytest.skip("needs Linux 5.14")
    if reason := why_not():
        pytest.skip(f"no network namespaces here: {reason}")
    assert answered(how, 1) == COUNT
    without = answered(how, 0)
    assert COUNT / 4 < without < COUNT * 3 / 4, "those in the socket that is left, and no other"
