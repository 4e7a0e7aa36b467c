"""The page in a real browser: it is drawn, nothing in it runs, nothing is asked of anybody."""

from __future__ import annotations

import asyncio
import json
import struct
import subprocess
from pathlib import Path

from router.reports.html import html
from tests.browser import CHROMIUM, QUIET, Browser, needs_chromium
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import NASTY, filled, report

RUNS = "<script>document.title = 'taken'</script>"


def browse(page: Path, *words: str) -> tuple[str, str]:
    """What Chromium says about a page: standard output, and what it logs."""
    assert CHROMIUM is not None
    profile = page.with_suffix(".profile")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={profile}", *words, page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, done.stderr


@needs_chromium
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


@needs_chromium
async def test_every_link_leads_to_what_it_names(plain: LogBox, tmp_path: Path) -> None:
    await filled(plain, [Did("clinic"), Did("bank", because="no_endpoint_inside_boundary")])
    page = tmp_path / "r.html"
    page.write_text(html(report(plain)))
    shown = await asyncio.to_thread(follow, Browser(tmp_path / "profile"), page)
    assert len(shown) >= 4, "figures and contents link to what is behind them"
    assert all(shown.values()), shown
    assert any(link.startswith("#e") for link in shown)


def follow(browser: Browser, page: Path) -> dict[str, bool]:
    """Every link of a page, clicked: whether what it names came into sight."""
    try:
        browser.open(page)
        links = browser.run("[...document.links].map((one) => one.getAttribute('href'))")
        shown = {
            link: browser.run(CLICK.replace("LINK", json.dumps(link)))
            for link in dict.fromkeys(links)
        }
        assert browser.asked() == [page.as_uri()], "the page asks nobody anything"
        assert browser.complaints() == []
        return shown
    finally:
        browser.close()


CLICK = """(() => {
  [...document.links].find((one) => one.getAttribute("href") === LINK).click();
  const target = document.querySelector(":target"), box = target?.getBoundingClientRect();
  return Boolean(box && location.hash === LINK && box.bottom > 0 && box.top < innerHeight);
})()"""
