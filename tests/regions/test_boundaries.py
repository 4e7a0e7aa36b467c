from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.boundaries import (
    BoundaryError,
    boundary,
    is_reserved,
    known_words,
    operators,
    parse,
    term,
    words,
)
from regions.catalog import Catalog
from regions.countries import ISO_3166_1

EU27_CODES = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
EU27 = EU27_CODES.split()


def ids(catalog: Catalog, text: str) -> set[str]:
    return set(boundary(text, catalog.atlas).places.ids)


def test_eu_is_the_law_s_27_countries(catalog: Catalog) -> None:
    eu = boundary("EU", catalog.atlas)
    assert eu.places.countries <= set(EU27)
    assert catalog.atlas.jurisdictions["EU"] == set(EU27)
    assert "aws:eu-west-1" in eu.places.ids
    assert not {"aws:eu-west-2", "aws:eu-central-2", "azure:norwayeast"} & set(eu.places.ids)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("EEA", ["azure:norwayeast"], ["azure:switzerlandnorth", "azure:uksouth"]),
        ("UK", ["aws:eu-west-2"], ["aws:eu-west-1", "aws:eu-isoe-west-1"]),
        ("EFTA", ["aws:eu-central-2", "azure:norwayeast"], ["aws:eu-central-1"]),
        ("US", ["aws:us-east-1"], ["aws:us-gov-west-1", "azure:usgovtexas", "aws:us-iso-east-1"]),
        ("partition:aws-us-gov", ["aws:us-gov-west-1"], ["aws:us-east-1"]),
        ("aws:us-gov-west-1", ["aws:us-gov-west-1"], ["aws:us-gov-east-1"]),
        ("EU", ["aws:eusc-de-east-1"], []),
        ("CN", [], ["aws:cn-north-1", "azure:chinaeast"]),
        (
            "CA-QC",
            ["aws:ca-central-1", "azure:canadaeast"],
            ["azure:canadacentral", "aws:ca-west-1"],
        ),
        ("provider:gcp & EU", ["gcp:europe-west4"], ["gcp:europe-west6", "aws:eu-central-1"]),
        ("EU - FR & provider:aws", ["aws:eu-central-1", "azure:francecentral"], ["aws:eu-west-3"]),
        ("(EU - FR) & provider:aws", ["aws:eu-central-1"], ["azure:swedencentral"]),
        ("EU+CH", ["aws:eu-central-2"], ["aws:eu-west-2"]),
        ("worldwide - US", ["aws:ca-central-1"], ["aws:us-east-1", "elsewhere:aws"]),
        ("worldwide", ["elsewhere:aws", "aws:us-east-1", "unknown"], ["aws:us-gov-west-1"]),
        ("self:fra1 + provider:self - self:lon1", ["self:fra1"], ["self:lon1"]),
    ],
)
def test_expressions(catalog: Catalog, text: str, inside: list[str], outside: list[str]) -> None:
    found = ids(catalog, text)
    assert set(inside) <= found
    assert not set(outside) & found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eu", "`eu` is not known; did you mean `EU`?"),
        ("eu-only", "`eu-only` is not known; did you mean `EU`?"),
        ("EU-only", "did you mean `EU`?"),
        ("EL", "`EL` is not known; did you mean `GR`?"),
        ("EuropeanUnion", "did you mean `EU`?"),
        ("European_Union", "did you mean `EU`?"),
        ("global", "did you mean `worldwide`?"),
        ("EU-FR", "did you mean `EU - FR` or `EU + FR`?"),
        ("CA-QB", "did you mean `CA-QC`"),
        ("eu-central-1", "did you mean `aws:eu-central-1`?"),
        ("aws:eu-centrl-1", "did you mean `aws:eu-central-1`"),
        ("partition:aws-gov", "did you mean `partition:aws-us-gov`"),
        ("provider:amazon", "is not known"),
        ("XX", "`XX` is not known"),
        ("x" * 500, "is not known; see `domicile regions list`"),
        ("", "an empty boundary; write a word as `EU`"),
        ("EU +", "a word is missing after `+`"),
        ("+ EU", "a word is missing before `+`"),
        ("EU GB", "`GB` is not expected here"),
        ("(EU", "`(` is never closed; add `)`"),
        ("EU)", "`)` is not expected here"),
        ("EU | GB", "`|` has no meaning in a boundary"),
        ("(" * 60 + "EU" + ")" * 60, "too many parentheses"),
        ("EU+" * 9000 + "EU", "characters; name parts"),
    ],
)
def test_what_is_not_a_boundary_says_what_to_do(catalog: Catalog, text: str, expected: str) -> None:
    with pytest.raises(BoundaryError) as caught:
        boundary(text, catalog.atlas)
    assert expected in str(caught.value)


def test_errors_know_their_column(catalog: Catalog) -> None:
    with pytest.raises(BoundaryError) as caught:
        boundary("EU + (GB - nowhere)", catalog.atlas)
    assert caught.value.column == 12


def test_named_boundaries_are_words_too(catalog: Catalog) -> None:
    own = boundary("EU + GB", catalog.atlas)
    with_name = boundary("eu-uk - FR", catalog.atlas, {"eu-uk": own})
    assert with_name == boundary("EU + GB - FR", catalog.atlas)
    with pytest.raises(BoundaryError, match="did you mean `eu-uk`"):
        boundary("eu_uk", catalog.atlas, {"eu-uk": own})


def test_a_long_chain_is_not_deep(catalog: Catalog) -> None:
    text = "EU + " * 3000 + "GB"
    assert boundary(text, catalog.atlas) == boundary("EU + GB", catalog.atlas)
    assert len(list(words(parse(text)))) == 3001


def test_operators_are_countries(catalog: Catalog) -> None:
    assert operators("any", catalog.atlas).is_any
    assert operators("EU + CH", catalog.atlas).codes == tuple(sorted([*EU27, "CH"]))
    rest = operators("any - US", catalog.atlas)
    assert rest.is_known
    # Its law reaches its territories too.
    assert set(rest.codes) == set(ISO_3166_1) - {"US", "AS", "GU", "MP", "PR", "UM", "VI"}
    with pytest.raises(BoundaryError, match="is a place; operators are bounded by countries"):
        operators("aws:eu-central-1", catalog.atlas)
    with pytest.raises(BoundaryError, match="did you mean `EU`"):
        operators("eu", catalog.atlas)


@pytest.mark.parametrize("name", ["EU", "eu", "uk", "de", "ca-qc", "worldwide", "Any", "a:b"])
def test_built_in_names_are_reserved(catalog: Catalog, name: str) -> None:
    assert is_reserved(name, catalog.atlas)
    assert not is_reserved("eu-uk", catalog.atlas)


def test_every_known_word_is_a_term(catalog: Catalog) -> None:
    for word in known_words(catalog.atlas):
        term(word, catalog.atlas)


@given(text=st.text(st.sampled_from("EU GBCH+-&() :aws.west1-"), max_size=30))
def test_any_text_is_a_boundary_or_an_error(catalog: Catalog, text: str) -> None:
    with suppress(BoundaryError):
        found = boundary(text, catalog.atlas)
        assert found.sure & ~found.possible == 0
