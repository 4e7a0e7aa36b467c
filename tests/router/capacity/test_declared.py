"""What endpoints declare that the choice between them looks at."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from regions.fleet import Capacity
from regions.model import Price
from router.capacity.declared import capacities, costs, halves
from tests.router.made import endpoint


def test_capacities_are_read_from_settings() -> None:
    found = capacities(
        {
            "a": endpoint("a", settings={"capacity_requests": "3"}),
            "b": endpoint("b", settings={"capacity_tokens": "9"}),
            "c": endpoint("c"),
        }
    )
    assert found == {"a": Capacity(3), "b": Capacity(None, 9)}


def test_what_is_paid_for_anyhow_costs_nothing_more() -> None:
    own, managed, unknown = endpoint("a"), endpoint("b"), endpoint("c")
    managed = replace(managed, self_operated=False, price=Price(3.0, 15.0))
    unknown = replace(unknown, self_operated=False, price=Price(3.0))
    found = costs({"a": own, "b": managed, "c": unknown})
    assert found == {"a": 0.0, "b": 18.0, "c": inf}


def test_who_computes_prompts_for_whom() -> None:
    front = endpoint("front")
    whole = endpoint("whole")
    back = endpoint("back", settings={"prefill_least": "512"}, prefill=front)
    assert halves({"front": front, "back": back, "whole": whole}) == {"back": ("front", 512)}
