"""The PDF: texts are values that typst sets, never markup that it reads."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from router.reports import pdf as module
from router.reports.pdf import PdfUnavailable, pdf
from tests.router.audit.logbox import LogBox
from tests.router.reports.logs import Did
from tests.router.reports.made import NASTY, filled, report


def read(made: bytes, path: Path) -> str:
    """The document's words, without spaces."""
    path.write_bytes(made)
    told = subprocess.run(["pdftotext", "-layout", path, "-"], capture_output=True, check=True)
    return "".join(told.stdout.decode().replace("\u200b", "").split())


async def test_nothing_in_a_log_is_evaluated(plain: LogBox, tmp_path: Path) -> None:
    done = [Did(name, name, because=name) for name in NASTY]
    await filled(plain, [*done, *(Did(name, code=name) for name in NASTY)])
    made = pdf(report(plain))  # `#panic(…)` would fail here, were it read
    assert made.startswith(b"%PDF-")
    if shutil.which("pdftotext") is None:
        return
    words = await asyncio.to_thread(read, made, tmp_path / "r.pdf")
    assert '#panic("evaluated")' in words
    assert "root:x:0" not in words
    assert "Whatthisevidencecannotshow" in words


async def test_no_character_becomes_an_empty_box(
    plain: LogBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(plain, [Did("牙科"), Did("clinic")])
    monkeypatch.setattr(module, "lacking", lambda text, fonts: frozenset("牙科") & frozenset(text))
    made = pdf(report(plain))
    if shutil.which("pdftotext") is None:
        return
    words = await asyncio.to_thread(read, made, tmp_path / "r.pdf")
    assert "[U+7259][U+79D1]" in words
    assert "installfontsforthem" in words
    assert "牙" not in words


async def test_a_report_of_nothing_and_of_one(plain: LogBox) -> None:
    await filled(plain, [])
    assert pdf(report(plain)).startswith(b"%PDF-")
    (plain.root / "other").mkdir()
    other = LogBox(plain.root / "other", seed=2)
    await filled(other, [Did()])
    assert pdf(report(other, tenant="clinic")).startswith(b"%PDF-")


async def test_without_typst_it_says_what_to_install(
    plain: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(plain, [])
    found = report(plain)
    monkeypatch.setitem(sys.modules, "typst", None)
    with pytest.raises(PdfUnavailable, match="reports"):
        pdf(found)


async def test_a_layout_that_fails_is_told(plain: LogBox, monkeypatch: pytest.MonkeyPatch) -> None:
    await filled(plain, [])
    monkeypatch.setattr(module, "_values", lambda _: {"title": 1})
    with pytest.raises(PdfUnavailable, match="could not be set"):
        pdf(report(plain))


def test_columns_share_the_page_within_bounds() -> None:
    widths = module._widths(["a", "long"], [["x", "y" * 900]])
    assert widths == [6.0, 40.0]
