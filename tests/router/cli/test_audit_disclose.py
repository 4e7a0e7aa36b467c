"""From an entry to its text and back, on the command line."""

import asyncio
from pathlib import Path

from router.audit.commands import run_show
from tests.router.audit.logbox import LogBox
from tests.router.audit.test_disclosure import TEXT, written
from tests.router.cli.conftest import Domicile


def prepared(root: Path, domicile: Domicile) -> tuple[Path, Path, Path]:
    """A log with two requests; a bundle and a disclosure of the first, and its key."""
    box = LogBox(root)
    asyncio.run(written(box))
    named = ("--log", "eu-1", "--request", "r1")
    bundle, opening, key = root / "bundle.json", root / "opening.json", root / "log.vkey"
    bundle.write_text(domicile("audit", "prove", box.folder, "r1").out)
    opening.write_text(domicile("audit", "disclose", box.folder, *named).out)
    key.write_text(box.key.vkey("eu-1"))
    return bundle, opening, key


def test_a_text_is_proved_to_belong(tmp_path: Path, domicile: Domicile) -> None:
    bundle, opening, key = prepared(tmp_path, domicile)
    text = tmp_path / "body.json"
    text.write_bytes(TEXT)
    ran = domicile("audit", "belongs", bundle, opening, text, "--key", key)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("the text belongs to eu-1/")
    told = domicile("audit", "belongs", bundle, opening, text, "--key", key, "--json").json
    assert told["openings"] == {"model": "secret"}
    text.write_bytes(TEXT + b"\n")
    ran = domicile("audit", "belongs", bundle, opening, text, "--key", key)
    assert ran.code == 1
    assert "not what `r1` was sent with" in ran.err
    assert domicile("audit", "belongs", bundle, opening, text, "--key", "a+b").code == 2


def test_what_is_not_there_is_said(tmp_path: Path, domicile: Domicile) -> None:
    prepared(tmp_path, domicile)
    ran = domicile("audit", "disclose", tmp_path / "logs", "--log", "eu-1", "--request", "r9")
    assert ran.code == 1
    assert "no decision or refusal of `r9`" in ran.err


def test_a_log_that_is_none_is_told_with_those_there_are(
    tmp_path: Path, domicile: Domicile
) -> None:
    prepared(tmp_path, domicile)
    for words in (
        ("disclose", "--request", "r1"),
        ("pseudonyms", "--tenant", "clinic", "--user", "ann"),
    ):
        command, *rest = words
        ran = domicile("audit", command, tmp_path / "logs", "--log", "NOPE", *rest)
        assert ran.code == 2
        assert "`NOPE` is no log in" in ran.err
        assert "there are: eu-1" in ran.err


def test_pseudonyms_are_found_for_who_knows_the_name(tmp_path: Path, domicile: Domicile) -> None:
    prepared(tmp_path, domicile)
    words = ("audit", "pseudonyms", tmp_path / "logs", "--log", "eu-1", "--user", "ann")
    ran = domicile(*words, "--tenant", "clinic")
    (line,) = ran.out.splitlines()
    held = {one.body["user"] for one in run_show(tmp_path / "logs", kind="decision")}
    assert held == {line.split()[1]}
    assert domicile(*words, "--tenant", "games").code == 1
