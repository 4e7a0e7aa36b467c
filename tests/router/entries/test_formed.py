"""The usual entries are put together, all others written as they stand; the lines are the same."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from router.audit.entry import Entry, Interned, Joined, Json, Kind, entry_line, stand_in
from router.audit.form import Filled, Forms, word
from router.entries.formed import Formed

NONCE = b"A" * 22
SHARED = [Interned({"who": "a"}), Interned({"who": "b"})]
PLANS = [Interned(("a", "b")), Interned(("b", "a"))]
GRADED = [Interned({"by": "prior@1", "tier": "small"}), Interned({"by": "prior@1", "cut": True})]
NUMBERS = st.integers(0, 1 << 40)
WORDS = st.text("abcXYZ019_-", min_size=1, max_size=43)


def same(kind: Kind, body: Mapping[str, Json], shared: Interned, filled: Filled) -> None:
    indices: dict[bytes, int] = {}

    def reference(value: Interned) -> int:
        return indices.setdefault(value.digest, len(indices))

    plain = entry_line(Entry(kind, "r-1", 5.0, body, shared), NONCE, reference, stand_in(reference))
    entry = Entry(kind, "r-1", 5.0, filled)
    assert Forms(reference).line(entry, filled, NONCE) == plain


FORMED = Formed(16)


@given(
    WORDS,
    st.sampled_from(PLANS),
    st.none() | WORDS,
    st.sampled_from(SHARED),
    st.none() | st.tuples(st.sampled_from(GRADED), st.none() | st.integers(-2000, 2000)),
)
def test_a_decisions_line(
    content: str,
    plan: Interned,
    user: str | None,
    shared: Interned,
    verdict: tuple[Interned, int | None] | None,
) -> None:
    graded, score = (None, None) if verdict is None else verdict
    told = graded if graded is None or score is None else Joined(graded, {"score": score})
    said: dict[str, Json] = {"content": content, "plan": plan, "user": user, "graded": told}
    body = {name: value for name, value in said.items() if value is not None}
    written = None if user is None else word(user)
    filled = FORMED.decision(shared, word(content), plan, written, graded, score)
    same("decision", body, shared, filled)


@given(
    st.tuples(NUMBERS, NUMBERS),
    st.tuples(NUMBERS, NUMBERS),
    st.none() | NUMBERS,
    st.booleans(),
    st.none() | WORDS,
    st.sampled_from(SHARED),
)
def test_an_outcomes_line(
    millis: tuple[int, int],
    tokens: tuple[int, int],
    cost: int | None,
    estimated: bool,
    answer: str | None,
    ran: Interned,
) -> None:
    body: dict[str, Json] = {"millis": millis[0], "ms": millis[1], "tokens": list(tokens)}
    if answer is not None:
        body["answer"] = answer
    if cost is not None:
        body["cost"] = cost
    if estimated:
        body["estimated"] = True
    bound = None if answer is None else word(answer)
    filled = FORMED.outcome(ran, millis, tokens, cost, estimated, bound)
    same("outcome", body, ran, filled)


def test_forms_are_found_again_and_bounded() -> None:
    formed = Formed(2)
    first = formed.decision(SHARED[0], word("c"), PLANS[0])
    assert formed.decision(SHARED[0], word("d"), PLANS[1]).form is first.form
    assert formed.decision(SHARED[1], word("d"), PLANS[1]).form is not first.form
    for _ in range(3):
        formed.decision(Interned({"who": "c"}), word("d"), PLANS[1])
    assert formed.decision(SHARED[0], word("c"), PLANS[0]).form is not first.form
