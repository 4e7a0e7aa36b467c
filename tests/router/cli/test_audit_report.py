"""`domicile audit report`: files, exit codes, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import Domicile
from tests.router.reports.logs import Did
from tests.router.reports.made import filled

DAY = "2027-01-15"


@pytest.fixture
async def box(tmp_path: Path) -> LogBox:
    found = LogBox(tmp_path)
    made = await filled(found, [Did()] * 6 + [Did("shop")])
    await made.log.close()
    return found


def test_all_three_forms_say_the_same(domicile: Domicile, box: LogBox, tmp_path: Path) -> None:
    outs = [tmp_path / f"r.{suffix}" for suffix in ("html", "pdf", "json")]
    words = [word for out in outs for word in ("--out", out)]
    ran = domicile("audit", "report", box.folder, "--period", DAY, *words, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["facts"] == json.loads(outs[2].read_text())["facts"]
    assert outs[1].read_bytes().startswith(b"%PDF")
    assert "fewer than 5" in outs[0].read_text()
    assert ran.json["smallest_told"] == 5


def test_a_tenants_own_report_has_no_smallest_group(domicile: Domicile, box: LogBox) -> None:
    words = ("audit", "report", box.folder, "--period", DAY, "--tenant", "shop", "--json")
    assert domicile(*words).json["smallest_told"] == 1
    assert domicile(*words, "--view-from", "self:fra1").json["smallest_told"] == 1
    assert domicile(*words, "--view-from", "self:iad1").json["smallest_told"] == 5
    assert domicile(*words, "--min-group", "3").json["smallest_told"] == 3


def test_whoever_asks_of_the_wrong_time_or_tenant_is_told(domicile: Domicile, box: LogBox) -> None:
    words = ("audit", "report", box.folder, "--json", "--period")
    assert domicile(*words, DAY).err == ""
    for other in ("2019", "2039-01"):
        ran = domicile(*words, other, "--tenant", "shopp")
        assert (ran.code, ran.err.count("beware: ")) == (0, 1)
        assert "nothing was recorded here in this period" in ran.err
        assert "nothing was recorded here in this period" in str(ran.json["facts"])
    ran = domicile(*words, DAY, "--tenant", "shopp")
    assert ran.err == "beware: no snapshot until then names a tenant `shopp`\n"


def test_a_log_with_findings_is_refused_or_shouted(
    domicile: Domicile, box: LogBox, tmp_path: Path
) -> None:
    [segment] = (box.folder / "eu-1" / "segments").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes().replace(b'"clinic"', b'"clinix"', 1))
    out = tmp_path / "r.html"
    words = ("audit", "report", box.folder, "--period", DAY, "--out", out)
    ran = domicile(*words)
    assert (ran.code, out.exists()) == (1, False)
    assert "does not verify" in ran.err
    ran = domicile(*words, "--despite-findings")
    assert ran.code == 1
    assert "THIS LOG DOES NOT VERIFY" in ran.err
    assert "THIS LOG DOES NOT VERIFY" in out.read_text()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--period", "soon", "--json"), 1, "is no period"),
        (("--period", DAY), 2, "say what to write"),
        (("--period", DAY, "--out", "r.docx"), 2, "ends in one of"),
        (("--period", DAY, "--out", "no/such/r.html"), 1, "error: can't write `no/such/r.html`"),
        (("--period", DAY, "--json", "--time-zone", "Mars"), 1, "time zone"),
        (("--period", DAY, "--json", "--view-from", "Atlantis"), 1, "Atlantis"),
        (("--period", DAY, "--json", "--reconcile", "gone.json"), 1, "can't read"),
        (("--period", DAY, "--json", "--against", "gone.note"), 2, "can't read"),
    ],
)
def test_what_can_not_be_made(
    domicile: Domicile, box: LogBox, words: tuple[str, ...], code: int, told: str
) -> None:
    ran = domicile("audit", "report", box.folder, *words)
    assert (ran.code, told in ran.err) == (code, True), ran.err


def test_a_folder_without_a_log(domicile: Domicile, tmp_path: Path) -> None:
    ran = domicile("audit", "report", tmp_path / "gone", "--period", DAY, "--json")
    assert ran.code == 2
    assert "holds no log" in ran.err
