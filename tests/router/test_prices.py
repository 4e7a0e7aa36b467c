"""What calls cost."""

import pytest

from regions.model import Price
from router.prices import cost, dearest
from router.usage import Usage


def test_cost_is_per_million() -> None:
    assert cost(Price(3.0, 15.0), Usage(1_000_000, 100_000)) == pytest.approx(4.5)


def test_unknown_prices_are_not_zero() -> None:
    assert cost(Price(3.0, None), Usage(10, 1)) is None
    assert cost(Price(3.0, None), Usage(1_000_000, 0)) == pytest.approx(3.0)
    assert cost(Price(), Usage(0, 0)) == 0


def test_the_dearest_of_those_known() -> None:
    prices = [Price(1, 1), Price(2, 1), Price()]
    assert dearest(prices, Usage(1_000_000, 1_000_000)) == pytest.approx(3.0)
    assert dearest([Price()], Usage(1, 1)) is None
