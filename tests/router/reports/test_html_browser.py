"""The page in a real browser: it is drawn, nothing in it runs, nothing is asked of anybody."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from router.reports.html import html
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import NASTY, filled, report

CHROMIUM = shutil.which("chromium")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
RUNS = "<script>document.title = 'taken'</script>"


def browse(page: Path, *words: str) -> tuple[str, str]:
    """What Chromium says about a page: standard output, and what it logs."""
    assert CHROMIUM is not None
    profile = page.with_suffix(".profile")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={profile}", *words, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
async def test_it_is_drawn_and_nothing_in_it_runs(plain: LogBox, tmp_path: Path) -> None:
    names = (*NASTY, RUNS)
    await filled(plain, [Did(name, because=name) for name in names])
    page = tmp_path / "r.html"
    page.write_text(html(report(plain)))
    shot = tmp_path / "r.png"
    dom, logged = await asyncio.to_thread(
        browse, page, "--dump-dom", f"--screenshot={shot}", "--window-size=1000,1400"
    )
    assert "<title>Residency report, all tenants</title>" in dom
    assert "taken" in dom, "the name is there, as text"
    assert dom.count("<script") == 0
    for word in ("Refused to", "Uncaught", "violates", "net::ERR"):
        assert word not in logged, logged
    head = shot.read_bytes()[:24]
    assert struct.unpack(">II", head[16:24]) == (1000, 1400)
    assert shot.stat().st_size > 20_000, "a white page is smaller"
