"""The usual bodies of decisions and outcomes, as filled forms: put together, not encoded again.

Only what differs between requests is filled in: digests, numbers, and values that are interned.
`router.entries.records` writes a body with anything else in it as it stands; both ways give the
same line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.audit.entry import Interned, Joined, Kind
from router.audit.form import INTERNED, NUMBER, TEXT, Filled, Form, Quoted


class Formed:
    """The forms of one router's entries, by what their requests share; `bound` are kept."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._forms: dict[object, tuple[object, Form]] = {}

    def decision(
        self,
        shared: Interned,
        content: Quoted,
        plan: Interned,
        user: Quoted | None = None,
        graded: Interned | None = None,
        score: int | None = None,
    ) -> Filled:
        """A decision that says no more than this.

        Args:
            graded: what the classifier said, but for the score; `None` where nothing is graded.
            score: in thousandths, where it gave one.
        """
        key = (id(shared), user is None, id(graded), score is None)
        found = self._forms.get(key)
        if found is None:
            body: dict[str, object] = {"content": TEXT, "plan": INTERNED}
            if user is not None:
                body["user"] = TEXT
            if graded is not None:
                rest: Any = {"score": TEXT}
                body["graded"] = graded if score is None else Joined(graded, rest)
            found = self._made(key, "decision", body, shared, graded)
        # In the order of names, as they stand in the line.
        told = (content, plan) if user is None else (content, plan, user)
        if score is not None:
            # Not a NUMBER: a score may be below 0.
            told = (content, Quoted(b"%d" % score), *told[1:])
        return Filled(found[1], told)

    def outcome(
        self,
        ran: Interned,
        millis: tuple[int, int],
        tokens: tuple[int, int],
        cost: int | None,
        estimated: bool,
        answer: Quoted | None = None,
    ) -> Filled:
        """The outcome of one attempt that says no more than this.

        Args:
            ran: what its like have in common: the answer, and the attempt.
            millis: of the whole, and of the attempt.
            answer: what binds the answer's bytes, where it does.
        """
        key = (id(ran), cost is None, estimated, answer is None)
        found = self._forms.get(key)
        if found is None:
            body: dict[str, object] = {"millis": NUMBER, "ms": NUMBER, "tokens": [NUMBER, NUMBER]}
            if answer is not None:
                body["answer"] = TEXT
            if cost is not None:
                body["cost"] = NUMBER
            if estimated:
                body["estimated"] = True
            found = self._made(key, "outcome", body, ran)
        # In the order of names, as they stand in the line.
        told = (*millis, *tokens) if cost is None else (cost, *millis, *tokens)
        return Filled(found[1], told if answer is None else (answer, *told))

    def clear(self) -> None:
        """Keep no form: their values belong to a snapshot."""
        self._forms.clear()

    def _made(
        self,
        key: object,
        kind: Kind,
        body: Mapping[str, object],
        shared: Interned,
        graded: Interned | None = None,
    ) -> tuple[object, Form]:
        """The form under a key that holds ids of what is shared, kept so that they stay so."""
        if len(self._forms) >= self._bound:
            self._forms.clear()
        made = self._forms[key] = ((shared, graded), Form(kind, body, shared))
        return made
