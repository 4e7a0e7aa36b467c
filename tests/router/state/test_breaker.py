"""A breaker's pauses: longer with each failure in a row, bounded, and ended by an answer."""

from __future__ import annotations

from router.state.breaker import BREAK, BREAK_MAX, Breaker


def test_its_pauses_grow_and_end() -> None:
    now = [100.0]
    breaker = Breaker(lambda: now[0], "alone for now")
    assert (breaker.is_open, breaker.pause, breaker.reason) == (False, 0.0, "")
    pauses = []
    for _ in range(20):
        breaker.trip(ConnectionError("of a host that nobody is to see"))
        pauses.append(breaker.pause)
        opened = [breaker.is_open]
        now[0] += breaker.pause
        assert [*opened, breaker.is_open] == [True, False]
        assert breaker.reason == "redis: ConnectionError; alone for now"
    assert pauses[:4] == [BREAK, 2 * BREAK, 4 * BREAK, 8 * BREAK]
    assert set(pauses[4:]) == {BREAK_MAX}
    breaker.mend()
    assert breaker.reason == ""
    breaker.trip(TimeoutError())
    assert breaker.pause == BREAK


def test_calls_that_were_under_way_together_are_one_failure() -> None:
    now = [100.0]
    breaker = Breaker(lambda: now[0], "alone for now")
    for pause in (BREAK, 2 * BREAK):
        for _ in range(20):
            breaker.trip(TimeoutError())
            assert breaker.pause == pause
        now[0] += pause
    assert not breaker.is_open
