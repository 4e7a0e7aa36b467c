"""`domicile audit`: exit codes and words, over true logs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import START, Domicile


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    receipts = await box.refill(3)
    lines = [json.dumps(receipt.to_json()) for receipt in receipts]
    (box.root / "receipts.jsonl").write_text("\n".join(lines) + "\n")
    (box.root / "public.vkey").write_text(box.key.vkey("eu-1"))
    return box


def spoil(folder: Path) -> None:
    """Change one byte of the first line of the first segment."""
    segment = min((folder / "eu-1" / "segments").glob("*.jsonl"))
    data = bytearray(segment.read_bytes())
    at = data.index(b'"t":') + 4
    data[at] ^= 1
    segment.write_bytes(bytes(data))


def test_a_whole_log_verifies(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "verify", filled.folder)
    assert ran.code == 0
    assert "consistent, unanchored" in ran.out
    assert ran.out.endswith("audit verify: ok\n")


@pytest.mark.parametrize("key", ["file", "vkey"])
def test_anchors_and_keys_are_taken(domicile: Domicile, filled: LogBox, key: str) -> None:
    vkey = filled.root / "public.vkey"
    ran = domicile(
        "audit", "verify", filled.folder, "--json",
        "--against", filled.folder / "eu-1" / "checkpoint",
        "--receipts", filled.root / "receipts.jsonl",
        "--key", vkey if key == "file" else vkey.read_text(),
    )  # fmt: skip
    assert ran.code == 0
    assert ran.json["status"] == ["intact"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_where_nothing_can_be_said_no_finding_is_told(filled: LogBox, more: list[str]) -> None:
    """A full disk read as findings in a sound log: both ended with 1."""
    words = [sys.executable, "-c", START, "audit", "verify", str(filled.folder), *more]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (2, "error: [Errno 28] No space left on device\n")


def test_a_changed_byte_is_a_finding_with_its_place(domicile: Domicile, filled: LogBox) -> None:
    spoil(filled.folder)
    ran = domicile("audit", "verify", filled.folder)
    assert ran.code == 1
    [told_of] = [line for line in ran.out.splitlines() if line.startswith("finding: ")]
    assert told_of == (
        "finding: altered: eu-1/segments/00000000000000000000.jsonl:1 (index 0): "
        "line 0: not as it was signed"
    )
    assert "FINDINGS" in ran.out
    told = domicile("audit", "verify", filled.folder, "--json")
    assert told.code == 1
    assert told.json["ok"] is False


def test_true_exit_codes(program: Domicile, filled: LogBox, tmp_path: Path) -> None:
    assert program("audit", "verify", filled.folder).code == 0
    spoil(filled.folder)
    assert program("audit", "verify", filled.folder).code == 1
    (tmp_path / "nothing").mkdir()
    assert program("audit", "verify", tmp_path / "nothing").code == 2


@pytest.mark.parametrize(
    "extra", [("--key", "nobody+00000000+AAAA"), ("--against", "missing"), ("--key", "missing")]
)
def test_what_cant_be_read_is_a_usage_error(
    domicile: Domicile, filled: LogBox, extra: tuple[str, str]
) -> None:
    ran = domicile("audit", "verify", filled.folder, *extra)
    assert ran.code == 2
    assert extra[1] in ran.err


def test_a_file_that_is_none_is_no_finding_but_can_not_be_read(
    domicile: Domicile, filled: LogBox
) -> None:
    checkpoint = filled.folder / "eu-1" / "checkpoint"
    checkpoint.unlink()
    checkpoint.mkdir()
    ran = domicile("audit", "verify", filled.folder)
    assert ran.code == 2
    assert f"can't read `{checkpoint}`: Is a directory" in ran.err


def test_show_filters_and_streams_json_lines(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "show", filled.folder, "--kind", "decision", "--json")
    rows = [json.loads(line) for line in ran.out.splitlines()]
    assert [row["kind"] for row in rows] == ["decision"] * 3
    assert rows[0]["body"]["tenant"] == "a", "interned values stand in their place"
    one = domicile("audit", "show", filled.folder, "--request", rows[1]["id"])
    assert rows[1]["id"] in one.out
    assert rows[0]["id"] not in one.out.split()


def test_one_record_is_shown_by_its_name(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "show", filled.folder, "--kind", "outcome", "--json")
    row = json.loads(ran.out.splitlines()[1])
    name = f"{row['place']['log']}/{row['place']['index']}"
    for record in (name, f"{name}/{'0' * 64}"):
        one = domicile("audit", "show", filled.folder, "--record", record, "--json")
        assert json.loads(one.out) == row
    for record in ("eu-1", "eu-1/x", "us-9/3", "eu-1/0", "eu-1/99999", "../eu-1/3"):
        assert domicile("audit", "show", filled.folder, "--record", record).code == 2, record


def test_show_of_no_log_is_a_usage_error(domicile: Domicile, filled: LogBox) -> None:
    assert domicile("audit", "show", filled.folder, "--log", "us-9").code == 2
