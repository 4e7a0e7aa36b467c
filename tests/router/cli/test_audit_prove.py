"""`domicile audit prove`, `prove-growth`, `verify-bundle`: proofs, and what checks them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.router.audit.logbox import LogBox
from tests.router.cli.conftest import Domicile

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await box.refill(6)
    (box.root / "public.vkey").write_text(box.key.vkey("eu-1"))
    return box


def decision(domicile: Domicile, box: LogBox) -> dict[str, object]:
    ran = domicile("audit", "show", box.folder, "--kind", "decision", "--json")
    row: dict[str, object] = json.loads(ran.out.splitlines()[3])
    return row


def record(row: dict[str, object]) -> str:
    place = row["place"]
    assert isinstance(place, dict)
    return f"{place['log']}/{place['index']}"


@pytest.mark.parametrize("by", ["record", "answer", "request"])
def test_a_proof_checks_without_the_log(domicile: Domicile, filled: LogBox, by: str) -> None:
    row = decision(domicile, filled)
    names = {"record": record(row), "answer": f"{record(row)}/{'0' * 64}", "request": row["id"]}
    proof = domicile("audit", "prove", filled.folder, names[by])
    assert proof.code == 0
    bundle, key = filled.root / "bundle.json", filled.root / "public.vkey"
    bundle.write_text(proof.out)
    shown = domicile("audit", "verify-bundle", bundle, "--key", key, "--json")
    assert shown.code == 0
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert [(one["kind"], one["id"]) for one in rows] == [
        ("decision", row["id"]), ("outcome", row["id"]),
    ]  # fmt: skip
    value = json.loads(proof.out)
    for line in value["lines"]:
        line["line"] = line["line"].replace("1", "2")
    bundle.write_text(json.dumps(value))
    spoilt = domicile("audit", "verify-bundle", bundle, "--key", key)
    assert spoilt.code == 1
    assert spoilt.err.startswith("error: ")


def test_an_entry_without_a_request_is_proved_alone(domicile: Domicile, filled: LogBox) -> None:
    ran = domicile("audit", "show", filled.folder, "--kind", "heartbeat", "--json")
    proof = domicile("audit", "prove", filled.folder, record(json.loads(ran.out.splitlines()[0])))
    assert [json.loads(one["line"])["k"] for one in json.loads(proof.out)["lines"]] == ["heartbeat"]


@pytest.mark.parametrize("name", ["eu-1", "eu-1/99999", "us-9/3", "eu-1/0", "nobody", "../eu-1/3"])
def test_what_is_not_there_is_not_proved(domicile: Domicile, filled: LogBox, name: str) -> None:
    assert domicile("audit", "prove", filled.folder, name).code == 2


def test_growth_is_proved_to_all_that_check(domicile: Domicile, filled: LogBox) -> None:
    old, proof, key = (filled.root / name for name in ("old.note", "growth.json", "public.vkey"))
    published = (filled.folder / "eu-1" / "checkpoints.jsonl").read_text().splitlines()
    old.write_text(json.loads(published[0])["checkpoint"])
    proof.write_text(domicile("audit", "prove-growth", filled.folder, old).out)
    sizes = [json.loads(one)["checkpoint"].split("\n")[1] for one in published]
    told = {"log": "eu-1", "old": int(sizes[0]), "new": int(sizes[-1])}
    assert domicile("audit", "verify-bundle", proof, "--key", key, "--json").json == told
    said = domicile("audit", "verify-bundle", proof, "--key", key).out
    assert f"eu-1 of {sizes[-1]} lines begins with its first {sizes[0]}" in said
    alone = [sys.executable, str(DOCS / "verify_growth.py"), str(proof), str(key)]
    ran = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
    assert json.loads(ran.stdout) == told, ran.stderr
    value = json.loads(proof.read_text())
    for spoilt in ({"proof": value["proof"][1:]}, {"old": value["new"]}, {"format": "x"},
                   {"old": value["old"].replace("eu-1", "us-1")}):  # fmt: skip
        proof.write_text(json.dumps({**value, **spoilt}))
        ran = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.startswith("not proved: ")
        assert domicile("audit", "verify-bundle", proof, "--key", key).code == 1


def test_growth_wants_two_checkpoints_of_one_log(domicile: Domicile, filled: LogBox) -> None:
    newest = filled.folder / "eu-1" / "checkpoint"
    old = filled.root / "old.note"
    first = (filled.folder / "eu-1" / "checkpoints.jsonl").read_text().splitlines()[0]
    old.write_text(json.loads(first)["checkpoint"])
    assert domicile("audit", "prove-growth", filled.folder, newest, old).code == 2
    old.write_text(old.read_text().replace("eu-1", "us-1"))
    ran = domicile("audit", "prove-growth", filled.folder, old)
    assert (ran.code, "no log in" in ran.err) == (2, True)


@pytest.mark.parametrize("script", ["verify_bundle.py", "verify_growth.py"])
def test_who_gives_too_little_to_a_script_is_told_what_it_takes(script: str) -> None:
    for words in ([], ["bundle.json"]):
        ran = subprocess.run(
            [sys.executable, str(DOCS / script), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 1
        assert ran.stderr.startswith("usage: ")
        assert "PROOF KEY" in ran.stderr
