"""`domicile audit query` and `export`: shapes of answers and exit codes."""

import csv
import io
import json
from pathlib import Path

import pytest

from router.cli.audit_query import _plain
from tests.router.audit.asked import fill
from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import Domicile


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await fill(box)
    return box


def test_json_is_one_line_per_request(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "query", filled.folder, "--tenant", "shop", "--json")
    assert ran.code == 0
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert sorted(row["request"] for row in rows) == ["q2", "q3"]
    assert rows[0]["rules"] == ["any"]


def test_csv_has_a_header_and_no_formula(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    out = tmp_path / "a.csv"
    words = ("audit", "query", filled.folder, "--attr", "data_class=health")
    assert domicile(*words, "--format", "csv", "--out", out).code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert {row["request"] for row in rows} == {"q1", "q4", "q6"}
    assert {row["attributes"] for row in rows} == {"data_class=health"}
    assert [_plain(text) for text in ("=1+1", "@x", "x=1", 5)] == ["'=1+1", "'@x", "x=1", 5]


def test_a_table_says_when_there_may_be_more(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "query", filled.folder, "--limit", "2")
    assert "2 rows" in ran.out
    assert "more may match" in ran.out
    assert "more may match" not in domicile("audit", "query", filled.folder).out
    counted = domicile("audit", "query", filled.folder, "--by", "tenant, outcome")
    assert "incomplete" in counted.out


@pytest.mark.parametrize("shape", ["table", "json", "csv"])
def test_a_word_that_nobody_has_is_told(domicile: Domicile, filled: LogBox, shape: str) -> None:
    """A mistyped tenant looks as if nothing had happened."""
    words = ("audit", "query", filled.folder, "--format", shape)
    ran = domicile(*words, "--tenant", "shopp", "--place", "aws:mars")
    assert ran.code == 0
    assert ran.err.strip() == (
        "audit query: no request here is like that; "
        "`--by tenant,places` in place of these words counts what there is"
    )
    assert domicile("audit", "query", filled.folder, "--by", "tenant,places").code == 0
    assert domicile(*words, "--until", "2001-01-01").err.strip().endswith("is like that")
    assert domicile(*words, "--tenant", "shop").err == ""


def test_an_export_is_asked_like_the_log(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    out = tmp_path / "r.parquet"
    assert domicile("audit", "export", filled.folder, out).out.startswith(
        "audit export: 6 requests"
    )
    ran = domicile("audit", "query", out, "--since", "2027-01-15T08:00:21Z", "--json")
    assert {json.loads(line)["request"] for line in ran.out.splitlines()} >= {"q3"}
    part = tmp_path / "part.parquet"
    words = ("audit", "query", out, "--outcome", "ok", "--format", "parquet")
    assert "2 rows" in domicile(*words, "--out", part).out
    assert domicile(*words).code == 2


def test_what_can_not_be_asked(domicile: Domicile, filled: LogBox, tmp_path: Path) -> None:
    assert domicile("audit", "query", filled.folder, "--since", "soon").code == 2
    assert domicile("audit", "query", filled.folder, "--by", "secret").code == 1
    assert domicile("audit", "query", tmp_path / "gone").code == 1
    ran = domicile("audit", "query", filled.folder, "--attr", "health")
    assert (ran.code, "write NAME=VALUE" in ran.err) == (2, True)
    (tmp_path / "a.parquet").write_text("junk")
    ran = domicile("audit", "query", tmp_path / "a.parquet")
    assert (ran.code, "error: `" in ran.err, "audit export" in ran.err) == (1, True, True)


@pytest.mark.parametrize("shape", ["csv", "parquet"])
def test_a_file_that_can_not_be_written(
    domicile: Domicile, filled: LogBox, tmp_path: Path, shape: str
) -> None:
    out = tmp_path / "no" / "a.file"
    ran = domicile("audit", "query", filled.folder, "--format", shape, "--out", out)
    assert (ran.code, ran.err.startswith(f"error: can't write `{out}`: ")) == (1, True)
    for words in ((), ("--format", "ocsf")):
        ran = domicile("audit", "export", filled.folder, out, *words)
        assert (ran.code, f"error: can't write `{out}`: " in ran.err) == (1, True)


@pytest.mark.parametrize("shape", ["ocsf", "cef", "otel"])
def test_events_for_other_systems(
    domicile: Domicile, filled: LogBox, tmp_path: Path, shape: str
) -> None:
    out = tmp_path / "events"
    words = ("audit", "export", filled.folder, out, "--format", shape)
    ran = domicile(*words)
    assert ran.code == 0
    lines = out.read_text().splitlines()
    assert ran.out.startswith(f"audit export: {len(lines)} events")
    assert sum("eu-1/" in line for line in lines) == len(lines) >= 5
    assert domicile(*words).code == 1, "nothing is written over"


def test_a_line_that_can_not_be_read_is_told_in_one_line(
    domicile: Domicile, filled: LogBox
) -> None:
    [segment] = (filled.folder / "eu-1" / "segments").glob("*.jsonl")
    data = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join([*data[:6], b"nonsense\n", *data[7:]]))
    for words in (("--json",), ("--by", "tenant"), ()):
        ran = domicile("audit", "query", filled.folder, *words)
        assert ran.code == 1
        assert ran.err.startswith("error: ")
        assert "Traceback" not in ran.err
        assert len(ran.err.splitlines()) == 1


def test_a_segment_that_can_not_be_read_is_told_in_one_line(
    domicile: Domicile, filled: LogBox
) -> None:
    [segment] = (filled.folder / "eu-1" / "segments").glob("*.jsonl")
    segment.unlink()
    segment.mkdir()
    ran = domicile("audit", "query", filled.folder, "--json")
    assert (ran.code, ran.err) == (1, f"error: `{segment}`: Is a directory\n")
