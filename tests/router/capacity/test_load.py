"""Tokens in flight never leak."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.capacity.load import Held, InFlight


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 1000)), max_size=30))
def test_everything_entered_leaves(entries: list[tuple[str, int]]) -> None:
    load = InFlight()
    held: list[Held] = [load.enter(key, tokens) for key, tokens in entries]
    for key in "ab":
        assert load.tokens(key) == sum(max(1, tokens) for k, tokens in entries if k == key)
    for one in held:
        one.close()
        one.close()
    assert load.keys == ()


def test_a_prompt_is_work_until_its_answer_begins() -> None:
    load, told = InFlight(), []
    load.on_open = lambda held, seconds: told.append((held.ahead, seconds))
    one, other = load.enter("a", 900, 600, 1.0), load.enter("a", 500, 400, 2.0)
    assert load.work("a", 2.0, 0.0) == 1000
    one.opened(3.0)
    one.opened(4.0)
    assert load.work("a", 3.0, 0.0) == 400
    assert load.tokens("a") == 1400
    assert (load.berth("a").unopened, load.mean) == (1, 700)
    load.enter("a", 7).close()  # without a prompt there is nothing to begin
    assert load.berth("a").unopened == 1
    other.opened(4.0)
    assert told == [(600, 2.0), (1000, 2.0)]
    one.close()
    other.close()
    assert (load.work("a", 5.0, 0.0), load.keys) == (0, ())
    assert (load.berth("a").unopened, load.mean) == (0, 0)


def test_work_shrinks_at_the_engine_s_rate() -> None:
    load = InFlight()
    load.enter("a", 1000, 1000, 1.0, 100.0)
    assert load.work("a", 3.0, 100.0) == 800
    load.enter("a", 500, 500, 3.0, 100.0)
    assert load.work("a", 3.0, 100.0) == 1300
    assert load.work("a", 30.0, 100.0) == 0


def test_a_request_that_ends_unopened_leaves_no_work() -> None:
    load, told = InFlight(), []
    load.on_open = lambda held, seconds: told.append(seconds)
    kept = load.enter("a", 10, 5, 1.0)
    load.enter("a", 1000, 900, 1.0).close()
    assert load.work("a", 1.0, 0.0) == 5
    assert load.berth("a").unopened == 1
    kept.close()
    assert told == []
