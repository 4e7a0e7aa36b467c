"""`domicile footprint`: its words, its exit codes, and that it needs nothing but the package."""

import pytest

from tests.router.cli.conftest import Domicile

SONNET = "bedrock:{}.anthropic.claude-sonnet-4-6@{}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((SONNET.format("eu", "eu-central-1"), "--within", "EU"), 0),
        ((SONNET.format("eu", "eu-west-2"), "--within", "EU"), 3),
        ((SONNET.format("eu", "eu-west-2"), "--within", "EU + GB"), 0),
        ((SONNET.format("eu", "eu-central-2"), "--within", "EU"), 3),
        ((SONNET.format("global", "eu-central-1"), "--within", "EU"), 3),
        ((SONNET.format("eu", "us-east-1"), "--within", "EU"), 4),
        (("bedrock:zz.anthropic.claude-sonnet-4-6@eu-central-1", "--within", "worldwide"), 4),
        (("aws:eu-west-2", "--within", "EU"), 3),
        (("aws:eu-central-1", "--within", "DE & provider:aws"), 0),
        (("azure:swedencentral", "--within", "EU - SE"), 3),
        (("aws:eu-central-1", "--retain-within", "EU"), 4),
        (("aws:eu-central-1", "--operated-by", "EU"), 3),
        (("aws:eu-central-1", "--operated-by", "any"), 0),
        (("aws:eu-central-1",), 0),
        (("self:fra1",), 4),
        (("self:fra1", "--within", "EU"), 4),
        (("self:fra1", "--within", "EU", "--own", "self:fra1=DE"), 0),
        (("self:fra1", "--within", "EU", "--own", "fra1=US"), 3),
    ],
)
def test_exit_codes(domicile: Domicile, arguments: tuple[str, ...], code: int) -> None:
    assert domicile("footprint", *arguments).code == code


def test_outside_names_the_members_that_are(domicile: Domicile) -> None:
    ran = domicile("footprint", SONNET.format("eu", "eu-west-2"), "--within", "EU")
    assert "process within EU: OUTSIDE\n  outside: aws:eu-west-2 (GB)\n" in ran.out
    assert "bedrock-models" in ran.out, "the source of the fact is shown"
    assert "2026-" in ran.out, "and the day it was checked"


def test_unknown_names_what_is_missing(domicile: Domicile) -> None:
    ran = domicile("footprint", SONNET.format("eu", "us-east-1"), "--within", "EU")
    assert "process within EU: UNKNOWN" in ran.out
    assert "the prefix and the source region can't be combined" in ran.out


def test_json_holds_the_axes_the_judgements_and_the_sources(domicile: Domicile) -> None:
    told = domicile("footprint", SONNET.format("eu", "eu-west-2"), "--within", "EU", "--json").json
    assert told["verdict"] == "outside"
    assert told["exit_code"] == 3
    assert "aws:eu-west-2" in str(told["process"])
    assert told["retain"] == ["unknown"]
    assert told["operate"] == ["LU", "US"]
    judged = {"axis": "process", "within": "EU", "verdict": "outside"}
    assert told["judgements"] == [{**judged, "outside": ["aws:eu-west-2 (GB)"], "missing": []}]
    facts = told["facts"]
    assert isinstance(facts, list)
    assert all(fact["source"] for fact in facts)
    assert any(fact["checked_on"] for fact in facts)


def test_without_a_boundary_there_is_no_verdict(domicile: Domicile) -> None:
    told = domicile("footprint", "aws:eu-central-1", "--json").json
    assert (told["verdict"], told["exit_code"], told["judgements"]) == (None, 0, [])


def test_nothing_retained_is_said_with_its_source(domicile: Domicile) -> None:
    selector = SONNET.format("eu", "eu-central-1") + "?retention_mode=none"
    ran = domicile("footprint", selector, "--retain-within", "EU", "--json")
    assert ran.code == 0
    assert ran.json["retain"] == "nothing"


@pytest.mark.parametrize("word", ["eu", "EuropeanUnion", "eu-only", "EU-only", "Eu"])
def test_words_people_write_for_the_eu_are_refused_with_the_right_one(
    domicile: Domicile, word: str
) -> None:
    ran = domicile("footprint", "aws:eu-central-1", "--within", word)
    assert ran.code == 2
    assert "did you mean `EU`" in ran.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("bedrok:eu.x@eu-west-1",), "did you mean `bedrock:`"),
        (("bedrock:eu.anthropic.claude-sonnet-4-6",), "has no source region"),
        (("aws:eu-central-1", "--within", "EU -"), "a word is missing"),
        (("aws:eu-central-1", "--operated-by", "aws:eu-west-1"), "operators are bounded by"),
        (("aws:eu-central-1", "--at", "tomorrow"), "is no date"),
        (("self:fra1", "--own", "self:fra1"), "has no country"),
        (("self:fra1", "--own", "self:fra1=UK"), "the United Kingdom is `GB`"),
        ((), "Missing argument"),
    ],
)
def test_what_cant_be_read_is_a_usage_error(
    domicile: Domicile, arguments: tuple[str, ...], told: str
) -> None:
    ran = domicile("footprint", *arguments)
    assert ran.code == 2
    assert told in ran.err


def test_a_fact_too_old_at_the_time_asked_about_is_unknown(domicile: Domicile) -> None:
    selector = SONNET.format("eu", "eu-central-1")
    ran = domicile("footprint", selector, "--within", "EU", "--at", "2031-01-01", "--json")
    assert ran.code == 4
    assert ran.json["aged"]
    assert "a check of this fact within" in str(ran.json["missing"])


def test_facts_too_old_are_named_one_by_one(domicile: Domicile) -> None:
    selector = SONNET.format("eu", "eu-central-1")
    ran = domicile("footprint", selector, "--at", "2031-01-01")
    aged = [line for line in ran.out.splitlines() if line.startswith("too old since ")]
    assert any(
        "profile eu.anthropic.claude-sonnet-4-6 from eu-central-1 runs in" in a for a in aged
    )
    assert any("Amazon Web Services" in one for one in aged), "operators age as well"
    assert "too old" not in domicile("footprint", selector, "--at", "2026-12-01").out


def test_several_selectors_are_compared_and_the_worst_decides(domicile: Domicile) -> None:
    eu, everywhere = SONNET.format("eu", "eu-west-1"), SONNET.format("global", "eu-west-1")
    ran = domicile("footprint", eu, everywhere, "--within", "EU")
    assert ran.code == 3
    assert "compared" in ran.out
    told = domicile("footprint", eu, everywhere, "--within", "EU", "--json").json["answers"]
    assert isinstance(told, list)
    assert [one["exit_code"] for one in told] == [0, 3]
    assert told[1]["process"] == ["elsewhere:aws"]


def test_it_runs_as_a_program_without_server_or_configuration(program: Domicile) -> None:
    ran = program("footprint", SONNET.format("eu", "eu-west-2"), "--within", "EU", "--json")
    assert (ran.code, ran.err) == (3, "")
    assert ran.json["verdict"] == "outside"
