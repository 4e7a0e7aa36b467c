"""Footprints in words and as JSON."""

import json

import pytest

from regions.catalog import Catalog, OwnRegion
from regions.footprints.question import Answer, question
from router.cli.answers import (
    answer_json,
    fact_lines,
    places_short,
    places_text,
    reason,
    retain_text,
)

AT = 1_796_000_000.0  # 2026-11-29


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return Catalog.load({"self:fra1": OwnRegion("DE")})


def ask(catalog: Catalog, selector: str, within: str | None = None) -> Answer:
    return question(selector, catalog, AT, within)


def test_places_are_grouped_for_people(catalog: Catalog) -> None:
    many = ask(catalog, "mistral:eu").footprint.process
    assert places_short(many).startswith("somewhere of mistral in AT BE BG")
    assert places_text(many).splitlines()[0] == "AT  somewhere of mistral"
    profile = ask(catalog, "bedrock:eu.anthropic.claude-sonnet-4-6@eu-west-1").footprint.process
    assert places_short(profile).startswith("aws:eu-central-1 eu-north-1")
    anywhere = ask(catalog, "mistral:api.mistral.ai").footprint.process
    assert places_short(anywhere) == "anywhere of mistral, members may be added"
    assert places_short(ask(catalog, "self:none").footprint.process) == "unknown"


def test_retention_in_words(catalog: Catalog) -> None:
    nothing = ask(catalog, "self:fra1?retain=nothing").footprint
    assert retain_text(nothing) == "nothing"
    assert retain_text(ask(catalog, "self:fra1?retain=self:fra1").footprint) == "DE  self:fra1"
    assert retain_text(ask(catalog, "self:fra1").footprint) == "??  unknown"


def test_json_can_be_written_and_says_where_facts_come_from(catalog: Catalog) -> None:
    told = answer_json(ask(catalog, "bedrock:eu.anthropic.claude-sonnet-4-6@eu-west-2", "EU"))
    assert json.loads(json.dumps(told)) == told
    assert told["verdict"] == "outside"
    assert told["good_until"] == "2027-02-27"


def test_facts_stand_once(catalog: Catalog) -> None:
    facts = ask(catalog, "aws:eu-west-2").footprint.facts
    assert len(list(fact_lines((*facts, *facts)))) == len(facts)


def test_reasons(catalog: Catalog) -> None:
    (outside,) = ask(catalog, "aws:eu-west-2", "EU").judgements
    assert reason(outside) == "outside: aws:eu-west-2 (GB)"
    (unknown,) = ask(catalog, "self:none", "EU").judgements
    assert reason(unknown).startswith("missing: region `self:none`")
    (inside,) = ask(catalog, "aws:eu-west-1", "EU").judgements
    assert reason(inside) == ""
