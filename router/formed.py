"""The usual bodies of decisions and outcomes, as filled forms: put together, not encoded again.

Only what differs between requests is filled in: digests, numbers, and values that are interned.
`router.records` writes a body with anything else in it as it stands; both ways give the same line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from router.audit.entry import Interned, Joined, Kind
from router.audit.form import INTERNED, NUMBER, TEXT, Filled, Form, Quoted

_JOINED: Final = {"ms": NUMBER}


class Formed:
    """The forms of one router's entries, by what their requests share; `bound` are kept."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._forms: dict[object, tuple[Interned, Interned | None, Form]] = {}

    def decision(
        self,
        shared: Interned,
        content: Quoted,
        plan: Interned,
        user: Quoted | None = None,
        good_until: int | None = None,
    ) -> Filled:
        """A decision that says no more than this."""
        key = (id(shared), user is None, good_until is None)
        found = self._forms.get(key)
        if found is None or found[0] is not shared:
            body: dict[str, object] = {"content": TEXT, "plan": INTERNED}
            if good_until is not None:
                body["good_until"] = NUMBER
            if user is not None:
                body["user"] = TEXT
            found = self._made(key, "decision", body, shared, None)
        # In the order of names, as they stand in the line.
        if good_until is not None:
            more = (content, good_until, plan)
            return Filled(found[2], more if user is None else (*more, user))
        return Filled(found[2], (content, plan) if user is None else (content, plan, user))

    def outcome(
        self,
        ran: Interned,
        tried: Interned,
        millis: tuple[int, int],
        tokens: tuple[int, int],
        cost: int | None,
        estimated: bool,
    ) -> Filled:
        """The outcome of one attempt that says no more than this.

        Args:
            ran, tried: what its like have in common: the answer, and the attempt.
            millis: of the attempt, and of the whole.
        """
        key = (id(ran), id(tried), cost is None, estimated)
        found = self._forms.get(key)
        if found is None or found[0] is not ran or found[1] is not tried:
            body: dict[str, object] = {
                "attempts": [Joined(tried, _JOINED)],  # type: ignore[arg-type]
                "millis": NUMBER, "tokens": [NUMBER, NUMBER],
            }  # fmt: skip
            if cost is not None:
                body["cost"] = NUMBER
            if estimated:
                body["estimated"] = True
            found = self._made(key, "outcome", body, ran, tried)
        ms, whole = millis
        if cost is None:
            return Filled(found[2], (ms, whole, *tokens))
        return Filled(found[2], (ms, cost, whole, *tokens))

    def clear(self) -> None:
        """Keep no form: their values belong to a snapshot."""
        self._forms.clear()

    def _made(
        self,
        key: object,
        kind: Kind,
        body: Mapping[str, object],
        shared: Interned,
        other: Interned | None,
    ) -> tuple[Interned, Interned | None, Form]:
        """The form under a key that holds the ids of what is shared, kept so that they stay so."""
        if len(self._forms) >= self._bound:
            self._forms.clear()
        made = self._forms[key] = (shared, other, Form(kind, body, shared))
        return made
