"""Vetoes only remove, by endpoint, place, operator, key, or for drift."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.catalog import Catalog
from regions.countries import Countries
from regions.model import Footprint, Retention
from router.narrowing.vetoes import VetoBoard, Vetoes
from tests.router.house import OWN
from tests.router.made import ATLAS, candidacy

WHERE = candidacy("a", "self:fra1").footprint
CATALOG = Catalog.load(OWN)


def of(*places: str, retain: str = "", operate: str = "US") -> Footprint:
    """A footprint in the real catalog."""
    kept = CATALOG.atlas.place(retain) if retain else None
    held = Retention.nothing("a test") if kept is None else Retention.within(kept, "a test")
    return Footprint(CATALOG.atlas.place(*places), held, Countries.of([operate]))


def test_nothing_is_vetoed_at_first() -> None:
    assert VetoBoard().current.against("a", WHERE, "k") is None


def test_each_kind_of_veto() -> None:
    assert Vetoes(endpoints={"a": "drift"}).against("a", WHERE, "k") == "drift"
    assert Vetoes(places={"self:fra1": "flood"}).against("a", WHERE, "k") == "flood"
    assert Vetoes(operators={"DE": "court order"}).against("a", WHERE, "k") == "court order"
    assert Vetoes(keys={"k": "revoked"}).against("a", WHERE, "k") == "revoked"


def test_others_are_left_alone() -> None:
    vetoes = Vetoes(
        endpoints={"b": "x"}, places={"self:par1": "x"}, operators={"FR": "x"}, keys={"j": "x"}
    )
    assert vetoes.against("a", WHERE, "k") is None


@pytest.mark.parametrize("places", [("aws:eu-central-1",), ("elsewhere:aws",), ("unknown",)])
def test_what_only_may_lie_in_a_vetoed_place_is_vetoed(places: tuple[str, ...]) -> None:
    vetoes = Vetoes(places={"aws:eu-central-1": "flood"})
    assert vetoes.against("a", of(*places), "k") == "flood"
    assert vetoes.against("a", of("aws:eu-west-1"), "k") is None


def test_what_is_only_kept_there_is_vetoed_too() -> None:
    vetoes = Vetoes(places={"FR": "strike"})
    assert vetoes.against("a", of("aws:eu-central-1", retain="aws:eu-west-3"), "k") == "strike"


def test_a_word_is_a_place_too() -> None:
    assert Vetoes(places={"EU": "x"}).against("a", of("aws:eu-west-1"), "k") == "x"
    assert Vetoes(operators={"EU": "x"}).against("a", of("aws:eu-west-1", operate="IE"), "k") == "x"


def test_an_unknown_operator_may_be_the_vetoed_one() -> None:
    unknown = replace(of("aws:eu-west-1"), operate=Countries.unknown())
    assert Vetoes(operators={"US": "x"}).against("a", unknown, "k") == "x"


def test_who_may_be_under_a_law_is_vetoed_with_it() -> None:
    for operate, expected in (("PR", "x"), ("DE", None)):
        found = of("aws:eu-west-1", operate=operate)
        assert Vetoes(operators={"US": "x"}).against("a", found, "k") == expected


def test_a_place_that_is_gone_from_the_catalog_touches_nothing() -> None:
    assert Vetoes(places={"self:gone": "x"}).against("a", of("aws:eu-west-1"), "k") is None


def test_drift_vetoes_the_plans_that_do_not_know_of_it() -> None:
    vetoes = Vetoes(drifted={"a": of("aws:eu-west-1", "aws:us-east-1")})
    assert "drift" in str(vetoes.against("a", of("aws:eu-west-1"), "k"))
    assert vetoes.against("a", of("aws:eu-west-1", "aws:us-east-1"), "k") is None
    assert vetoes.against("b", of("aws:eu-west-1"), "k") is None
    # Another catalog numbers places otherwise: nothing can be compared.
    assert "drift" in str(vetoes.against("a", WHERE, "k"))


def test_sources_do_not_undo_each_other() -> None:
    board = VetoBoard()
    board.put("drift", Vetoes(endpoints={"a": "drift"}))
    board.put("quarantine", Vetoes(places={"self:par1": "flood"}))
    assert board.current.against("a", WHERE, "k") == "drift"
    board.put("drift", Vetoes())
    assert board.current.against("a", WHERE, "k") is None
    par = candidacy("b", "self:par1").footprint
    assert board.current.against("b", par, "k") == "flood"
    assert board.part("quarantine").places == {"self:par1": "flood"}
    assert board.part("other") == Vetoes()


NAMES = st.dictionaries(st.sampled_from(["a", "b"]), st.just("x"))
PLACES = st.dictionaries(st.sampled_from([r.id for r in ATLAS.regions]), st.just("x"))
SETS = st.builds(
    Vetoes, NAMES, PLACES, st.dictionaries(st.sampled_from(["DE", "US"]), st.just("x"))
)


@given(SETS, SETS, st.sampled_from(["a", "b", "c"]), st.sampled_from(ATLAS.regions))
def test_more_vetoes_never_let_more_through(
    one: Vetoes, other: Vetoes, name: str, region: object
) -> None:
    where = candidacy(name, region.id).footprint  # type: ignore[attr-defined]
    both = (one | other).against(name, where, "k")
    apart = one.against(name, where, "k") or other.against(name, where, "k")
    assert (both is None) == (apart is None)
