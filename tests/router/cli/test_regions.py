"""`domicile regions`."""

import pytest

from tests.router.cli.conftest import Domicile, Ran


def ids(ran: Ran) -> list[str]:
    found = ran.json["regions"]
    assert isinstance(found, list)
    return [row["id"] for row in found]


def test_list_narrows_by_all_its_options_together(domicile: Domicile) -> None:
    everything = ids(domicile("regions", "list", "--json"))
    german = ids(domicile("regions", "list", "--country", "DE", "--json"))
    both = ids(domicile("regions", "list", "--country", "DE", "--provider", "aws", "--json"))
    assert set(both) == {"aws:eu-central-1", "aws:eusc-de-east-1"}
    assert set(both) < set(german) < set(everything)


def test_london_and_zurich_are_not_in_the_eu(domicile: Domicile) -> None:
    within = ids(domicile("regions", "list", "--within", "EU", "--provider", "aws", "--json"))
    assert "aws:eu-central-1" in within
    assert not {"aws:eu-west-2", "aws:eu-central-2"} & set(within)


def test_other_partitions_enter_by_name_only(domicile: Domicile) -> None:
    american = ids(domicile("regions", "list", "--country", "US", "--json"))
    government = ids(domicile("regions", "list", "--partition", "aws-us-gov", "--json"))
    assert government
    assert not set(government) & set(american)


def test_list_is_a_table_for_people(domicile: Domicile) -> None:
    ran = domicile("regions", "list", "--within", "US-VA")
    assert ran.code == 0
    assert "aws:us-east-1" in ran.out
    assert "aws:us-west-2" not in ran.out


def test_own_places_are_listed_beside_the_catalog(domicile: Domicile) -> None:
    own = ("--own", "self:fra1=DE", "--within", "DE", "--provider", "self")
    assert ids(domicile("regions", "list", *own, "--json")) == ["self:fra1"]


def test_show_names_the_words_that_hold_a_region_and_its_operators(domicile: Domicile) -> None:
    told = domicile("regions", "show", "azure:norwayeast", "--json").json
    assert told["country"] == "NO"
    inside = told["inside"]
    assert isinstance(inside, list)
    assert "EEA" in inside
    assert "EU" not in inside
    assert len(inside) == len(set(inside))
    assert "Microsoft" in str(told["operators"])
    assert "norwayeast" in domicile("regions", "show", "azure:norwayeast").out


@pytest.mark.parametrize(
    "arguments",
    [("show", "aws:eu-central-9"), ("show", "frankfurt"), ("list", "--country", "germany"),
     ("list", "--provider", "asw"), ("list", "--partition", "aws-eu")],
)  # fmt: skip
def test_a_word_that_means_nothing_is_a_usage_error(
    domicile: Domicile, arguments: tuple[str, ...]
) -> None:
    ran = domicile("regions", *arguments)
    assert ran.code == 2
    assert arguments[-1] in ran.err
