"""What a call costs: the endpoint's price times its usage, in US dollars."""

from __future__ import annotations

from collections.abc import Iterable

from regions.model import Price
from router.usage import Usage

_PER = 1_000_000


def cost(price: Price, usage: Usage) -> float | None:
    """US dollars of one call; `None` when a price that would count is not known.

    Cached tokens are charged as input: an upper bound where a vendor discounts them.
    """
    taken, given = price.input, price.output
    if (usage.input and taken is None) or (usage.output and given is None):
        return None
    return ((taken or 0.0) * usage.input + (given or 0.0) * usage.output) / _PER


def dearest(prices: Iterable[Price], usage: Usage) -> float | None:
    """The highest cost of `usage` over `prices`; `None` when none of them is known."""
    known = [amount for price in prices if (amount := cost(price, usage)) is not None]
    return max(known, default=None)
