"""The usual entries are put together, all others written as they stand; the lines are the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.audit.entry import Entry, Interned, Joined, Json, Kind, entry_line, stand_in
from router.audit.form import Filled, Forms
from router.formed import Formed

NONCE = b"A" * 22
SHARED = [Interned({"who": "a"}), Interned({"who": "b"})]
PLANS = [Interned(("a", "b")), Interned(("b", "a"))]
TRIED = [Interned({"endpoint": "a", "result": "ok"}), Interned({"endpoint": "b", "result": "ok"})]
NUMBERS = st.integers(0, 1 << 40)
WORDS = st.text("abcXYZ019_-", min_size=1, max_size=43)


def same(kind: Kind, body: Mapping[str, Json], shared: Interned, filled: Filled | None) -> None:
    assert filled is not None
    indices: dict[bytes, int] = {}

    def reference(value: Interned) -> int:
        return indices.setdefault(value.digest, len(indices))

    plain = entry_line(Entry(kind, "r-1", 5.0, body, shared), NONCE, reference, stand_in(reference))
    entry = Entry(kind, "r-1", 5.0, filled)
    assert Forms(reference).line(entry, filled, lambda: NONCE) == plain


FORMED = Formed(16)


@given(
    st.fixed_dictionaries(
        {"content": WORDS, "plan": st.sampled_from(PLANS)},
        optional={"user": WORDS, "good_until": NUMBERS},
    ),
    st.sampled_from(SHARED),
)
def test_a_decisions_line(body: dict[str, Json], shared: Interned) -> None:
    same("decision", body, shared, FORMED.decision(body, shared))


@given(
    st.fixed_dictionaries(
        {"millis": NUMBERS, "tokens": st.lists(NUMBERS, min_size=2, max_size=2)},
        optional={"cost": NUMBERS, "estimated": st.just(True)},
    ),
    st.sampled_from(TRIED),
    NUMBERS,
    st.sampled_from(SHARED),
)
def test_an_outcomes_line(body: dict[str, Json], one: Interned, ms: int, ran: Interned) -> None:
    body["attempts"] = [Joined(one, {"ms": ms})]
    same("outcome", body, ran, FORMED.outcome(body, ran))


@pytest.mark.parametrize("more", [{"graded": {"by": "x"}}, {"committed": {"model": "x"}}, {"x": 1}])
def test_a_decision_that_says_more_is_written_as_it_stands(more: dict[str, Json]) -> None:
    body: dict[str, Json] = {"content": "c", "plan": PLANS[0], **more}
    assert FORMED.decision(body, SHARED[0]) is None


@pytest.mark.parametrize(
    "more",
    [
        {"broke": "timeout"}, {"provider_code": "x"}, {"tokens": None}, {"status": "ok"},
        {"attempts": []}, {"attempts": [Joined(TRIED[0], {"ms": 1, "call": "c"})]},
        {"attempts": [Joined(TRIED[0], {"ms": 1})] * 2},
    ],
)  # fmt: skip
def test_an_outcome_that_says_more_is_written_as_it_stands(more: dict[str, Json]) -> None:
    tried = [Joined(TRIED[0], {"ms": 1})]
    body: dict[str, Json] = {"attempts": tried, "millis": 1, "tokens": [1, 2], **more}
    assert FORMED.outcome(body, SHARED[0]) is None
