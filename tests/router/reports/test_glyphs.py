"""Which characters can be drawn here, and what stands for the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.reports.glyphs import lacking, named


def test_what_typst_brings_is_never_lacking() -> None:
    assert lacking("Zürich, Łódź, Ελλάδα, Київ – “x” … 5 €", ()) - {"€"} == frozenset()
    assert lacking("a\u202eb\u200b\n\0", ()) == frozenset(), "what isn't seen needs no font"


def test_what_no_font_draws_is_told_by_its_number() -> None:
    lacks = lacking("a牙b", ())
    assert lacks == {"牙"}
    assert "a牙b".translate(named(lacks)) == "a[U+7259]b"


def test_a_font_of_the_machine_counts() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    font = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    assert lacking("عيادة牙", [str(font)]) == {"牙"}


def test_a_file_that_is_no_font_draws_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.ttf").write_bytes(b"no font")
    assert lacking("牙", [str(tmp_path / "x.ttf"), str(tmp_path / "none.ttf")]) == {"牙"}
