"""Network namespaces: whether this machine permits them."""

from __future__ import annotations

import shutil
import subprocess

PROGRAMS = ("unshare", "ip", "nft")
_TRIED = "ip link set lo up && nft list ruleset"


def why_not() -> str:
    """Why no namespace of one's own can be had here; empty when it can."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"`{program}` is not installed"
    tried = subprocess.run(
        ["unshare", "--net", "sh", "-c", _TRIED], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else tried.stderr.strip() or "not permitted"
