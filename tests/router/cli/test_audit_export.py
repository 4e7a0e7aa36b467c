"""`domicile audit export`: one tenant's requests, for asking, as events, and with their proofs."""

import json
from pathlib import Path

import pytest

from tests.router.audit.asked import fill
from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import Domicile


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await fill(box)
    (box.root / "log.vkey").write_text(box.key.vkey("eu-1"))
    return box


def test_a_tenants_bundle_holds_its_own_requests_and_proves_them(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    out = tmp_path / "clinic.json"
    words = ("audit", "export", filled.folder, out, "--format", "bundle", "--tenant", "clinic")
    ran = domicile(*words)
    assert (ran.code, "of eu-1, proved" in ran.out) == (0, True)
    key = filled.root / "log.vkey"
    shown = domicile("audit", "verify-bundle", out, "--key", key, "--json")
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert {row["id"] for row in rows} == {"q1", "q4", "q6"}
    assert b"shop" not in out.read_bytes()


@pytest.mark.parametrize("shape", ["parquet", "ocsf", "cef", "otel"])
def test_every_shape_can_be_one_tenants(
    domicile: Domicile, filled: LogBox, tmp_path: Path, shape: str
) -> None:
    out = tmp_path / "out.parquet"
    ran = domicile("audit", "export", filled.folder, out, "--format", shape, "--tenant", "shop")
    assert ran.out.startswith("audit export: 2 ")
    if shape == "parquet":
        asked = domicile("audit", "query", out, "--json")
        assert [json.loads(row)["tenant"] for row in asked.out.splitlines()] == ["shop", "shop"]
    else:
        assert b"clinic" not in out.read_bytes()


@pytest.mark.parametrize("shape", ["parquet", "ocsf", "bundle"])
def test_nothing_is_written_over_unasked(
    domicile: Domicile, filled: LogBox, tmp_path: Path, shape: str
) -> None:
    out = tmp_path / "kept"
    out.write_text("mine")
    words = ("audit", "export", filled.folder, out, "--format", shape, "--tenant", "clinic")
    ran = domicile(*words)
    assert (ran.code, "give --force" in ran.err, out.read_text()) == (1, True, "mine")
    assert domicile(*words, "--force").code == 0
    assert b"mine" not in out.read_bytes()
    assert len(list(tmp_path.glob("*kept*"))) == 1, "no draft is left"
    ran = domicile(*words[:3], "/dev/null", *words[4:], "--force")
    assert (ran.code, "is no file" in ran.err) == (1, True)
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("command", ["export", "report"])
@pytest.mark.parametrize("place", ["roster.jsonl", "new.json", "link"])
def test_nothing_is_written_into_the_log(
    domicile: Domicile, filled: LogBox, tmp_path: Path, command: str, place: str
) -> None:
    out = filled.folder / place
    if place == "link":
        (tmp_path / "aside").symlink_to(filled.folder)
        out = tmp_path / "aside" / "roster.json"
    else:
        out = out.with_suffix(".json" if command == "report" else out.suffix)
    before = {one: one.read_bytes() for one in filled.folder.rglob("*") if one.is_file()}
    words: tuple[object, ...] = (out, "--format", "ocsf", "--force")
    if command == "report":
        words = ("--period", "2026", "--out", out)
    ran = domicile("audit", command, filled.folder, *words)
    assert (ran.code, "the log itself" in ran.err) == (1, True)
    assert before == {one: one.read_bytes() for one in filled.folder.rglob("*") if one.is_file()}


def test_an_export_that_fails_leaves_what_was_there(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    out = tmp_path / "events.jsonl"
    out.write_text("mine")
    [segment, *_] = sorted(filled.folder.glob("eu-1/segments/*.jsonl"))
    segment.write_bytes(segment.read_bytes()[:-20] + b"no json at all\n")
    words = ("audit", "export", filled.folder, out, "--format", "ocsf", "--force")
    assert domicile(*words).code == 1
    assert [one.name for one in tmp_path.glob("*events*")] == [out.name]
    assert out.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "bundle"), "--tenant"),
        (("--format", "bundle", "--tenant", "nobody"), "nobody"),
        (("--format", "bundle", "--tenant", "clinic", "--log", "us-9"), "eu-1"),
        (("--log", "eu-1"), "--format bundle"),
    ],
)
def test_what_can_not_be_exported(
    domicile: Domicile, filled: LogBox, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = domicile("audit", "export", filled.folder, tmp_path / "out", *words)
    assert (ran.code, said in ran.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shape", ["parquet", "ocsf", "cef", "otel", "bundle"])
def test_a_folder_without_logs_is_no_empty_export(
    domicile: Domicile, tmp_path: Path, shape: str
) -> None:
    out = tmp_path / "out"
    for nothing in (tmp_path / "absent", tmp_path):
        ran = domicile("audit", "export", nothing, out, "--format", shape, "--tenant", "shop")
        assert (ran.code, "holds no log" in ran.err) == (2, True)
    assert not out.exists()


async def test_of_several_logs_one_is_named(
    domicile: Domicile, filled: LogBox, tmp_path: Path
) -> None:
    await filled.refill(2, "eu-2")
    out = tmp_path / "out"
    words = ("audit", "export", filled.folder, out, "--format", "bundle", "--tenant", "a")
    assert "eu-1, eu-2" in domicile(*words).err
    assert domicile(*words, "--log", "eu-2").code == 0
