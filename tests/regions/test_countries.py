import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.countries import ISO_3166_1, Countries
from regions.places import PlaceError

CODES = st.sets(st.sampled_from(ISO_3166_1), max_size=6)


def test_the_list_is_iso_3166_1() -> None:
    assert len(ISO_3166_1) == len(set(ISO_3166_1)) == 249
    assert {"GB", "NO", "CH", "TW"} <= set(ISO_3166_1)
    assert not {"UK", "EU", "XX"} & set(ISO_3166_1)


@given(a=CODES, b=CODES)
def test_sets_of_known_countries_are_sets(a: set[str], b: set[str]) -> None:
    left, right = Countries.of(a), Countries.of(b)
    assert (left | right).codes == tuple(c for c in ISO_3166_1 if c in a | b)
    assert (left & right).codes == tuple(c for c in ISO_3166_1 if c in a & b)
    assert (left - right).codes == tuple(c for c in ISO_3166_1 if c in a - b)
    if b:
        assert left.contains(right) is (b <= a)


def test_the_unknown_lies_only_in_any() -> None:
    unknown = Countries.unknown()
    assert Countries.any().contains(unknown)
    assert not Countries.of(ISO_3166_1).contains(unknown)
    assert not (Countries.any() - Countries.of(["US"])).contains(unknown)
    assert not (Countries.of(["DE"]) | unknown).is_known
    assert (Countries.of(["DE"]) | unknown).codes == ("DE", "unknown")


def test_any_reads_any() -> None:
    assert Countries.any().is_any
    assert Countries.any().codes == ("any",)
    assert not (Countries.any() - Countries.of(["US"])).is_any
    assert (Countries.any() - Countries.of([])).is_any


@pytest.mark.parametrize(
    ("code", "hint"),
    [("UK", "the United Kingdom is `GB`"), ("EL", "Greece is `GR`"), ("el", "Greece is `GR`"),
     ("de", "write `DE`"), ("XX", "as `DE` or `GB`")],
)  # fmt: skip
def test_a_code_that_iso_does_not_have_is_refused_with_the_one_that_is_meant(
    code: str, hint: str
) -> None:
    with pytest.raises(PlaceError, match=f"`{code}` is not an ISO 3166-1 country code.*{hint}"):
        Countries.of([code])


def test_mistakes() -> None:
    with pytest.raises(PlaceError, match="`UK` is not an ISO 3166-1 country code"):
        Countries.of(["UK"])
    with pytest.raises(PlaceError, match="an operator without any country"):
        Countries.any().contains(Countries(0))
