import math

import pytest

from policies.timed import UNKNOWN_TIME, Timed, always, earliest, effective_now, ending, sooner
from regions.countries import Countries

EU = Countries.of(["DE", "FR"])
DE = Countries.of(["DE"])
NONE = Countries(0)


def test_a_value_ends_at_its_until_exactly() -> None:
    value = ending(EU, 100.0, NONE)
    assert value.at(99.999) == EU
    assert value.at(100.0) == NONE
    assert value.at(UNKNOWN_TIME) == NONE
    assert value.good_until(99.0) == 100.0
    assert value.good_until(100.0) is None


def test_algebra_keeps_every_end() -> None:
    both = always(DE) | ending(EU, 100.0, NONE)
    assert both.at(50.0) == EU
    assert both.at(100.0) == DE
    met = ending(EU, 100.0, NONE) & ending(EU, 200.0, NONE)
    assert met.ends == (100.0, 200.0)
    assert met.at(150.0) == NONE
    assert (always(EU) - always(DE)).at(0.0) == Countries.of(["FR"])


def test_map() -> None:
    assert ending(EU, 100.0, NONE).map(lambda c: c.codes).at(200.0) == ()


@pytest.mark.parametrize("ends", [(2.0, 1.0), (1.0, 1.0), (1.0,)])
def test_pieces_must_fit(ends: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        Timed((EU, DE, NONE) if len(ends) == 2 else (EU,), ends)


def test_earliest() -> None:
    assert earliest([None, 3.0, 2.0]) == 2.0
    assert earliest([None]) is None
    for pair in ((None, 3.0), (3.0, None), (2.0, 3.0), (3.0, 2.0), (None, None)):
        assert sooner(*pair) == earliest(pair)


def test_now_is_the_greater_of_clock_and_log() -> None:
    assert effective_now(1000.0, 900.0).time == 1000.0
    assert effective_now(1000.0, 1002.0).time == 1002.0
    assert effective_now(1000.0, None).time == 1000.0


@pytest.mark.parametrize("clock", [None, math.nan])
def test_an_unknown_time_reads_as_lapsed(clock: float | None) -> None:
    assert effective_now(clock, 900.0).time == UNKNOWN_TIME


def test_a_clock_behind_the_log_is_known_to_be_wrong() -> None:
    now = effective_now(1000.0, 5000.0)
    assert now.clock_behind
    assert now.time == UNKNOWN_TIME
