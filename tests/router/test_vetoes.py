"""Vetoes only remove, by endpoint, place, operator or key."""

from __future__ import annotations

from router.vetoes import VetoBoard, Vetoes
from tests.router.made import candidacy

WHERE = candidacy("a", "self:fra1").footprint


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
