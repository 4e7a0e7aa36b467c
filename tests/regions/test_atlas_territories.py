"""Places that ISO 3166-1 lists apart from a state are neither inside it nor outside."""

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.timed import Timed, always
from policies.written import country_sets, place_sets
from regions.atlas import Atlas
from regions.boundaries import boundary, operators
from regions.catalog import Catalog, OwnRegion, package_data
from regions.countries import ISO_3166_1, Countries
from regions.document import DocumentErrors
from regions.places import Area, Boundary, Partition, PlaceError, PlaceSet

# An own region in every country there is.
CATALOG = Catalog.load({f"self:{code.lower()}1": OwnRegion(code) for code in ISO_3166_1})
ATLAS = CATALOG.atlas
PAIRS = sorted((s, code) for s, codes in ATLAS.territories.items() for code in codes)
STATES = sorted(ATLAS.territories)
APART = sorted({code for _, code in PAIRS})


def there(code: str) -> PlaceSet:
    return ATLAS.place(f"self:{code.lower()}1")


def unions_of(state: str) -> list[str]:
    return [word for word, codes in ATLAS.jurisdictions.items() if state in codes]


@pytest.mark.parametrize(("state", "code"), PAIRS)
def test_a_territory_is_neither_in_its_state_s_words_nor_surely_outside(
    state: str, code: str
) -> None:
    for word in (state, *unions_of(state)):
        for text in (word, f"worldwide - {word}", f"worldwide - (US + {word}) + {word}"):
            assert not boundary(text, ATLAS).contains(there(code)), text
            if text != word:
                assert not operators(text, ATLAS).contains(Countries.of([code])), text
        # Every region of a provider there is as an own one.
        for region in (r for r in ATLAS.regions if r.country == code):
            assert region.id not in boundary(f"worldwide - {word}", ATLAS).places.ids


@pytest.mark.parametrize(("state", "code"), PAIRS)
def test_who_names_a_territory_has_it_and_who_takes_it_away_has_not(state: str, code: str) -> None:
    named = (code, f"{state} + {code}", f"worldwide - {state} + {code}", f"self:{code.lower()}1")
    for text in named:
        assert boundary(text, ATLAS).contains(there(code)), text
    for text in (f"worldwide - {code}", f"({state} + {code}) - {code}"):
        assert not boundary(text, ATLAS).contains(there(code)), text
        assert boundary(text, ATLAS).contains(there(state)), text
    rest = operators(f"any - {code}", ATLAS)
    assert set(rest.codes) == set(ISO_3166_1) - {code}


WORDS = st.sampled_from(
    [*STATES, *APART, *ATLAS.jurisdictions, "worldwide", "provider:self", "self:re1", "DE", "GI"]
)
EXPRESSIONS = st.recursive(
    WORDS,
    lambda part: st.builds("({} {} {})".format, part, st.sampled_from("+-&"), part),
    max_leaves=8,
)
COUNTRY_WORDS = st.sampled_from([*STATES, *APART, *ATLAS.jurisdictions, "any", "DE"])
COUNTRY_EXPRESSIONS = st.recursive(
    COUNTRY_WORDS,
    lambda part: st.builds("({} {} {})".format, part, st.sampled_from("+-&"), part),
    max_leaves=8,
)


@given(text=EXPRESSIONS)
def test_nothing_is_in_an_area_and_in_the_world_without_it(text: str) -> None:
    inside, rest = boundary(text, ATLAS), boundary(f"worldwide - {text}", ATLAS)
    assert not inside.sure & rest.sure
    assert not inside.sure & ~inside.possible


@given(text=COUNTRY_EXPRESSIONS)
def test_no_operator_is_in_a_set_and_in_all_without_it(text: str) -> None:
    inside, rest = operators(text, ATLAS), operators(f"any - {text}", ATLAS)
    assert not inside.mask & rest.mask
    assert not inside.mask & ~inside.possible


@given(text=EXPRESSIONS, pair=st.sampled_from(PAIRS))
def test_a_place_is_known_no_better_for_being_listed_apart(
    text: str, pair: tuple[str, str]
) -> None:
    """What is taken away with a state's word is taken away from its territories too."""
    state, code = pair
    taken = boundary(f"{text} - {state}", ATLAS)
    assert not taken.contains(there(code))


def test_named_boundaries_keep_what_is_near_them() -> None:
    places: dict[str, Timed[Boundary]] = {"home": always(boundary("FR", ATLAS))}
    countries: dict[str, Timed[Countries]] = {"home": always(operators("FR", ATLAS))}
    rest = place_sets(ATLAS, places).read({"plus": "worldwide", "minus": "home"}, ()).at(0.0)
    assert rest.contains(there("CH"))
    law = country_sets(ATLAS, countries).read("any - home", ()).at(0.0)
    assert law.contains(Countries.of(["CH"]))
    for code in ATLAS.territories["FR"]:
        assert not rest.contains(there(code))
        assert not law.contains(Countries.of([code]))


def test_a_vendor_s_country_may_hold_its_territories() -> None:
    openai = Partition("openai", "openai")
    promised = ATLAS.place(Area(openai, "US").id)
    assert boundary("US", ATLAS).contains(promised)
    assert not boundary("worldwide - PR", ATLAS).contains(promised)
    self_area = ATLAS.place(Area(ATLAS.region("self:re1").partition, "FR").id)
    assert not boundary("worldwide - self:re1", ATLAS).contains(self_area)
    assert boundary("worldwide - self:de1", ATLAS).contains(self_area)


def test_the_list_holds_what_has_a_code_apart() -> None:
    listed = {
        "FR": "RE GF GP MQ YT MF PM WF PF NC BL TF",
        "US": "PR GU VI AS MP UM",
        "CN": "HK MO",
        "NL": "AW CW SX BQ",
        "DK": "FO GL",
        "FI": "AX",
        "GB": "GG JE IM GI BM KY VG TC AI MS FK SH PN IO GS",
        "NO": "SJ BV",
    }
    for state, codes in listed.items():
        assert set(codes.split()) <= ATLAS.territories[state]
    # No union of states holds a territory surely: it would be in, and possibly out.
    united = frozenset(chain.from_iterable(ATLAS.jurisdictions.values()))
    assert not united & set(APART)
    assert "TW" not in APART


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (OwnRegion("US", "US-PR"), "`US-PR` has a country code of its own; write `country: PR`"),
        (OwnRegion("FR", "FR-974"), "write `country: RE` and no subdivision"),
        (OwnRegion("CN", "CN-HK"), "write `country: HK`"),
    ],
)
def test_one_place_has_one_country(place: OwnRegion, message: str) -> None:
    with pytest.raises(PlaceError) as caught:
        Catalog.load({"self:x": place})
    assert message in str(caught.value)


def test_what_can_t_be_a_territory_is_refused() -> None:
    with pytest.raises(PlaceError, match="`FR` can't be a territory of itself"):
        Atlas([], territories={"FR": frozenset({"FR"})})
    with pytest.raises(PlaceError, match="`UK` is not an ISO 3166-1"):
        Atlas([], territories={"UK": frozenset({"GG"})})
    data = dict(package_data())
    wrong = data["jurisdictions.yaml"].replace(b"also: {FI-01: AX}", b"also: {FI-01: AQ}")
    with pytest.raises(DocumentErrors, match="`also` names AQ, not in `countries`"):
        Catalog.load(data={**data, "jurisdictions.yaml": wrong})


def test_the_digest_knows_the_territories() -> None:
    given = [Atlas([], territories=t).digest for t in ({}, {"FR": frozenset({"RE"})})]
    assert given[0] != given[1]
