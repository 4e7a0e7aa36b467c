"""Prices beside each other: what is said of a place, and where."""

from __future__ import annotations

import pytest

from regions.catalog import Catalog
from regions.footprints.prices import prices, relative_price
from regions.footprints.selectors import parse_selector


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("bedrock:global.anthropic.claude-sonnet-4-6@eu-west-1", "10% below"),
        ("bedrock:eu.anthropic.claude-sonnet-4-6@eu-west-1", "no surcharge"),
        ("bedrock:amazon.nova-lite-v1:0@eu-north-1", "on-demand"),
        ("bedrock-mantle:anthropic.claude-sonnet-4-6@eu-west-1", "the same"),
        ("anthropic:us", "1.1 times"),
        ("openai:eu", "10% more"),
        ("vertex:gemini@eu", "10% more"),
        ("mistral:eu", "1.1 times"),
        ("mistral:api.mistral.ai", None),
        ("anthropic:global", None),
        ("bedrock:zz.unknown.model@eu-west-1", None),
        ("self:fra1", None),
    ],
)
def test_what_is_said(catalog: Catalog, selector: str, said: str | None) -> None:
    found = relative_price(parse_selector(selector), catalog.bedrock)
    assert (found is None) == (said is None)
    if found is not None and said is not None:
        assert said in found.price
        assert found.source


def test_no_place_has_two_prices() -> None:
    seen: set[tuple[str, str]] = set()
    for row in prices().prices:
        whats = [row.what] if row.vendor.startswith("bedrock") else row.what.split()
        for what in whats:
            assert (row.vendor, what) not in seen
            seen.add((row.vendor, what))
