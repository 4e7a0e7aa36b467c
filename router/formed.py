"""The usual bodies of decisions and outcomes, as filled forms: put together, not encoded again.

Only what differs between requests is filled in: digests, numbers, and values that are interned.
`router.records` writes a body with anything else in it as it stands; both ways give the same line.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.audit.entry import Interned, Kind
from router.audit.form import INTERNED, NUMBER, TEXT, Filled, Form, Quoted


class Formed:
    """The forms of one router's entries, by what their requests share; `bound` are kept."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._forms: dict[object, tuple[Interned, Form]] = {}

    def decision(
        self,
        shared: Interned,
        content: Quoted,
        plan: Interned,
        user: Quoted | None = None,
    ) -> Filled:
        """A decision that says no more than this."""
        key = (id(shared), user is None)
        found = self._forms.get(key)
        if found is None:
            body: dict[str, object] = {"content": TEXT, "plan": INTERNED}
            if user is not None:
                body["user"] = TEXT
            found = self._made(key, "decision", body, shared)
        # In the order of names, as they stand in the line.
        return Filled(found[1], (content, plan) if user is None else (content, plan, user))

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
        self, key: object, kind: Kind, body: Mapping[str, object], shared: Interned
    ) -> tuple[Interned, Form]:
        """The form under a key that holds the id of what is shared, kept so that it stays so."""
        if len(self._forms) >= self._bound:
            self._forms.clear()
        made = self._forms[key] = (shared, Form(kind, body, shared))
        return made
