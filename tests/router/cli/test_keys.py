"""`domicile keys new`: shown once, and the line it prints is a key the router takes."""

import hashlib
import time
from pathlib import Path

import pytest

from router.auth import Principal, load_keys
from tests.router.cli.conftest import Domicile


def test_the_printed_line_is_the_printed_keys(domicile: Domicile) -> None:
    ran = domicile("keys", "new", "--id", "k1", "--tenant", "clinic", "--app", "crm")
    key = ran.out.split("key (shown once): ")[1].split("\n")[0]
    line = ran.out.splitlines()[-1]
    ring = load_keys(f"version: 1\nkeys:\n{line}\n".encode(), "keys.yaml")
    assert ring.find(key, time.time()) == Principal("k1", "clinic", "crm")


def test_json_has_the_digest_never_the_key_in_the_line(domicile: Domicile) -> None:
    told = domicile("keys", "new", "--id", "k1", "--tenant", "clinic", "--role", "auditor",
                    "--days", "30", "--json").json  # fmt: skip
    line = told["line"]
    assert isinstance(line, dict)
    assert line["sha256"] == hashlib.sha256(str(told["key"]).encode()).hexdigest()
    assert line["role"] == "auditor"
    assert line["expires"] > "2026"


@pytest.mark.parametrize(
    "words", [("--tenant", "a"), ("--id", "a"), ("--id", "a", "--tenant", "a", "--role", "king")]
)
def test_usage(domicile: Domicile, words: tuple[str, ...], tmp_path: Path) -> None:
    assert domicile("keys", "new", *words).code == 2


def test_an_auditors_line_is_one_that_loads(domicile: Domicile) -> None:
    words = ("--id", "all", "--tenant", "*", "--role", "auditor", "--view-from", "EU + GB")
    line = domicile("keys", "new", *words).out.splitlines()[-1]
    ring = load_keys(f"version: 1\nkeys:\n{line}\n".encode(), "keys.yaml")
    [holder] = ring.holders
    assert isinstance(holder, Principal)
    assert (holder.tenant, holder.role, holder.view_from) == ("*", "auditor", "EU + GB")
    refused = domicile("keys", "new", "--id", "a", "--tenant", "a", "--view-from", "DE")
    assert (refused.code, "--role auditor" in refused.err) == (2, True)
