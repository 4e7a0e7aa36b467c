"""What stored snapshots say, by their own facts and at their own time."""

from __future__ import annotations

import pytest

from regions.places import PlaceError
from router.audit.layout import Folder
from router.entries.recipients import NOT_KNOWN, SELF
from router.reports.facts import Facts
from router.settings.loading import load_snapshot
from tests.router.audit.logbox import START, LogBox
from tests.router.reports.logs import EU, opened

LAPSED = 1_800_600_000.0  # after 2027-01-20


@pytest.fixture
async def known(plain: LogBox) -> tuple[Facts, str]:
    made = await opened(plain)
    return Facts(Folder(plain.folder)), made.snapshot.digest


def test_assurances_lapse(known: tuple[Facts, str]) -> None:
    facts, digest = known
    assert facts.mechanism(digest, "sonnet", START) == "dpa"
    assert facts.mechanism(digest, "sonnet", LAPSED) == "none recorded"
    assert facts.mechanism(digest, "gone", START) == NOT_KNOWN
    assert facts.spell(digest, START) != facts.spell(digest, LAPSED)
    assert [(name, one.name) for name, one in facts.assurances] == [("sonnet", "dpa")]


def test_recipients_are_those_who_run_the_place(known: tuple[Facts, str]) -> None:
    facts, digest = known
    assert facts.recipient(digest, ("self:fra1",)) == SELF
    assert "(LU)" in facts.recipient(digest, EU)
    assert "(LU)" not in facts.recipient(digest, ("aws:us-east-1",))
    assert facts.recipient(digest, ("aws:atlantis-1",)) == NOT_KNOWN
    assert facts.recipient("0" * 64, EU) == NOT_KNOWN
    assert "is not stored" in facts.missing["0" * 64]


def test_places_have_countries_and_spots(known: tuple[Facts, str]) -> None:
    facts, digest = known
    assert facts.countries("0" * 64, ("self:fra1",)) == (NOT_KNOWN,)
    assert facts.countries(digest, ("self:fra1", "aws:us-east-1", "area:aws:DE")) == ("DE", "US")
    assert facts.countries(digest, ("elsewhere:aws",)) == (NOT_KNOWN,)
    assert facts.spots["self:fra1"].lat == 50.11
    assert facts.spots["area:aws:DE"].lat is None


def test_a_plain_call_may_be_anywhere_the_snapshot_says(known: tuple[Facts, str]) -> None:
    facts, digest = known
    assert facts.attempted(digest, "par", START) == ("self:par1",)
    assert set(EU) <= set(facts.attempted(digest, "sonnet", START))
    assert facts.attempted(digest, "gone", START) == ("unknown",)


def test_trials(known: tuple[Facts, str]) -> None:
    facts, digest = known
    assert facts.trial(digest, "only-france", ("self:par1",), START) == "places allowed"
    assert facts.trial(digest, "only-france", ("self:fra1",), START) == "places not allowed"
    assert facts.trial(digest, "gone", ("self:fra1",), START) == NOT_KNOWN
    assert facts.trial("0" * 64, "only-france", ("self:fra1",), START) == NOT_KNOWN


def test_where_a_reader_sits(known: tuple[Facts, str]) -> None:
    facts, digest = known
    with pytest.raises(PlaceError, match="no stored snapshot"):
        facts.sits("DE")
    facts.world(digest)
    assert "self:fra1" in facts.sits("DE")
    with pytest.raises(PlaceError, match="Atlantis"):
        facts.sits("Atlantis")


async def test_what_changed_between_two_snapshots(plain: LogBox) -> None:
    made = await opened(plain)
    rules = plain.root / "world" / "rules" / "example.yaml"
    rules.write_text(rules.read_text().replace("process_within: FR", "process_within: DE"))
    (rules.parent / "more.yaml").write_text("version: 1\nrules: []\n")
    after = load_snapshot(plain.root / "world" / "domicile.yaml", {}, START)
    await after.keep(made.log)
    facts = Facts(Folder(plain.folder))
    told = facts.changed(made.snapshot.digest, after.digest)
    assert told == "rules: rules/example.yaml changed, rules: rules/more.yaml added"
    assert facts.changed(after.digest, made.snapshot.digest).endswith("more.yaml removed")
    assert facts.changed("", after.digest) == facts.changed("0" * 64, after.digest) == ""
