"""Tokens in flight never leak."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.load import Held, InFlight


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
