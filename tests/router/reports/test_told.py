"""Entries in words; and no text moves another about."""

import pytest

from router.audit.lines import Value
from router.audit.reading import Place, Shown
from router.reports.told import LONGEST, event, readable


def entry(kind: str, **body: Value) -> Shown:
    return Shown(Place("eu-1", "", 3, 2), kind, "", 7, body)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("clinic", "clinic"),
        ("عيادة", "عيادة"),
        ("a\u202egnp.exe", "a\ufffdgnp.exe"),
        ("a\x00\x1b[31mb", "a\ufffd\ufffd[31mb"),
        ("two\nlines\there", "two lines here"),
        ("zero\u200bwidth\u2028", "zero\ufffdwidth\ufffd"),
    ],
)
def test_texts_are_one_visible_line(text: str, shown: str) -> None:
    assert readable(text) == shown


def test_a_long_text_says_how_long_it_was() -> None:
    assert readable("x" * 5000) == "x" * LONGEST + "… (5000 characters)"


def test_all_see_reasons_and_one_tenant_does_not() -> None:
    veto = entry("veto", event="impose", what="key", name="shop-1", by="boss", reason="shop leaks")
    told = event(veto, None)
    assert (told.record, told.what, told.who, told.detail) == (
        "eu-1/2", "impose: key `shop-1`", "boss", "shop leaks",
    )  # fmt: skip
    alone = event(veto, "clinic")
    assert "shop" not in f"{alone.what} {alone.who} {alone.detail}"


def test_drift_names_only_the_tenant_it_is_told_to() -> None:
    drift = entry("drift", endpoint="sonnet", added=["aws:us-east-1"], tenants=["clinic", "shop"])
    assert (
        event(drift, None).detail
        == "more places: aws:us-east-1; outside the grant of: clinic, shop"
    )
    assert "shop" not in event(drift, "clinic").detail
    assert "clinic" not in event(drift, "bank").detail


def test_changes_of_policy_name_their_signers() -> None:
    change: dict[str, Value] = {
        "from": "a" * 64,
        "to": "b" * 64,
        "why": "reload",
        "signers": ["dpo"],
    }
    told = event(Shown(Place("eu-1", "", 3, 2), "snapshot", "", 7, change), "clinic")
    assert (told.who, told.detail) == ("dpo", f"{'a' * 16} to {'b' * 16}")
    unsigned = event(entry("snapshot", to="b" * 64, why="start", signers=[]), None)
    assert (unsigned.who, unsigned.detail) == ("nobody signed", f"none to {'b' * 16}")


@pytest.mark.parametrize(
    ("kind", "body", "what"),
    [
        ("recovery", {"settled": 3, "torn_bytes": 9}, "recovery after a crash"),
        ("key", {"from": "aa", "to": "bb"}, "another lasting key signs"),
        ("administration", {"event": "start", "durability": "local"}, "process start"),
        ("administration", {"event": "drift_accepted", "by": "boss"}, "drift_accepted"),
        ("heartbeat", {}, ""),
    ],
)
def test_other_entries(kind: str, body: dict[str, Value], what: str) -> None:
    assert event(entry(kind, **body), None).what == what
