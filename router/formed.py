"""The usual bodies of decisions and outcomes, as filled forms: put together, not encoded again.

Only what differs between requests is looked at: digests, numbers, and values that are interned.
A body with anything else in it is written as it stands; both ways give the same line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from router.audit.entry import Interned, Joined, Json, Kind
from router.audit.form import INTERNED, NUMBER, TEXT, Filled, Form, Quoted, word

_DECISION: Final = {"content": TEXT, "good_until": NUMBER, "plan": INTERNED, "user": TEXT}
_KNOWN: Final = _DECISION.keys()
_OUTCOME: Final = frozenset({"attempts", "cost", "estimated", "millis", "tokens"})

Value = int | Quoted | Interned


class Formed:
    """The forms of one router's entries, by what their requests share; `bound` are kept."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._forms: dict[object, tuple[Interned, Interned | None, Form]] = {}

    def decision(self, body: Mapping[str, Json], shared: Interned) -> Filled | None:
        """A decision's body; `None` if it says more than the usual."""
        if not body.keys() <= _KNOWN:
            return None
        values: list[Value] = []
        for name in _DECISION:
            value = body.get(name)
            if isinstance(value, str):
                values.append(word(value))
            elif isinstance(value, int | Interned):
                values.append(value)
        key = ("decision", id(shared), "user" in body, "good_until" in body)

        def opened() -> Mapping[str, object]:
            return {name: hole for name, hole in _DECISION.items() if name in body}

        return Filled(self._form("decision", key, shared, None, opened), tuple(values))

    def outcome(self, body: Mapping[str, Json], ran: Interned) -> Filled | None:
        """The body of an outcome of one attempt; `None` if it says more than the usual."""
        attempts, tokens = body["attempts"], body.get("tokens")
        if not (isinstance(attempts, list) and len(attempts) == 1 and isinstance(tokens, list)):
            return None
        (one,) = attempts
        if not isinstance(one, Joined) or one.rest.keys() != _MS or not body.keys() <= _OUTCOME:
            return None
        numbers = (one.rest["ms"], body.get("cost"), body["millis"], *tokens)
        values = tuple([number for number in numbers if type(number) is int])
        key = ("outcome", id(ran), id(one.shared), "cost" in body, "estimated" in body)

        def opened() -> Mapping[str, object]:
            shown: dict[str, object] = {
                "attempts": [Joined(one.shared, {"ms": NUMBER})],  # type: ignore[dict-item]
                "millis": NUMBER, "tokens": [NUMBER, NUMBER],
            }  # fmt: skip
            if "cost" in body:
                shown["cost"] = NUMBER
            if "estimated" in body:
                shown["estimated"] = True
            return shown

        return Filled(self._form("outcome", key, ran, one.shared, opened), values)

    def clear(self) -> None:
        """Keep no form: their values belong to a snapshot."""
        self._forms.clear()

    def _form(
        self,
        kind: Kind,
        key: object,
        shared: Interned,
        other: Interned | None,
        opened: Callable[[], Mapping[str, object]],
    ) -> Form:
        """The form under a key that holds the ids of what is shared, kept so that they stay so."""
        found = self._forms.get(key)
        if found is not None and found[0] is shared and found[1] is other:
            return found[2]
        if len(self._forms) >= self._bound:
            self._forms.clear()
        form = Form(kind, opened(), shared)
        self._forms[key] = (shared, other, form)
        return form


_MS: Final = {"ms": NUMBER}.keys()
