"""Tool calls in answers of servers that speak OpenAI's API almost.

Clients put the pieces of a call together by its number, which must count from 0, answer it by its
id and parse its arguments out of a text. Some servers leave the number or the id out, give all
calls the same number or begin elsewhere, write arguments as an object or nothing, or repeat each
member in every piece as null. What is right already stays as it came.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import orjson

Object = Mapping[str, object]


def mend_whole(answer: dict[str, object]) -> bool:
    """Give each call of a whole answer an id, a type and a text as arguments, in place; whether any
    lacked one. Raises ValueError: arguments are nested deeper than can be written."""
    changed = False
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        message = choice.get("message") if isinstance(choice, dict) else None
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            changed = _with_text(function, "{}") or changed
            for name, given in (("id", _new_id()), ("type", "function")):
                if not call.get(name):
                    call[name] = given
                    changed = True
    return changed


class StreamedCalls:
    """The calls of one stream, as far as they came; choices count each by themselves."""

    __slots__ = ("_choices",)

    def __init__(self) -> None:
        self._choices: dict[object, _Numbers] = {}

    def mend(self, document: dict[str, object]) -> bool:
        """Number an event's calls, give those that begin without an id one, and leave out what
        tells nothing, in place; whether that changed anything. Raises ValueError: the arguments of
        one are nested deeper than can be written."""
        changed = False
        choices = document.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            delta = choice.get("delta") if isinstance(choice, dict) else None
            calls = delta.get("tool_calls") if isinstance(delta, dict) else None
            if isinstance(calls, list) and all(isinstance(call, dict) for call in calls):
                at = choice.get("index")
                known = self._choices.setdefault(at if type(at) is int else 0, _Numbers())
                ends = bool(choice.get("finish_reason"))
                for place, call in enumerate(calls):
                    among = place if len(calls) > 1 else None
                    changed = known.mend(call, among, ends=ends) or changed
        return changed


class _Numbers:
    """Which number each call of one choice has: by its id, else by the number it came with, else
    by its place in an event of several; what has none of these goes on with the last one."""

    __slots__ = ("_by_id", "_by_index", "_ids", "_last", "_said")

    def __init__(self) -> None:
        self._by_id: dict[str, int] = {}
        self._by_index: dict[int, int] = {}
        self._ids: list[str | None] = []
        self._last = 0
        # Of each call its function, and the last character of its arguments so far.
        self._said: list[tuple[object, str]] = []

    def mend(self, call: dict[str, object], place: int | None, *, ends: bool) -> bool:
        """Give one piece of a call its number; whether it had another. `ends`: the answer ends with
        its event."""
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        changed = "arguments" in function and _with_text(function, "")
        begun = len(self._ids)
        number = self._number(call.get("id"), call.get("index"), place, function, ends=ends)
        self._keep(number, function)
        for holder, name in ((call, "id"), (call, "type"), (function, "name")):
            if name in holder and not holder[name]:  # some clients take what is there for news
                del holder[name]
                changed = True
        if number == begun and "name" in function and "id" not in call:
            call["id"] = _new_id()
            changed = True
        if type(call.get("index")) is not int or call["index"] != number:
            call["index"] = number
            changed = True
        return changed

    def _number(
        self, given: object, index: object, place: int | None, function: Object, *, ends: bool
    ) -> int:
        named = bool(function.get("name"))
        name = given if isinstance(given, str) and given else None
        told = index if type(index) is int and index >= 0 else None
        number = self._by_id.get(name) if name is not None else None
        if number is None and told is not None:
            number = self._by_index.get(told)
            # Some write an id of its own into every piece; only a name begins another call.
            if number is not None and named and name and self._ids[number] not in (None, name):
                number = number if self._goes_on(number, function, ends=ends) else None
        elif number is None and name is None and not named and self._ids:
            number = place if place is not None and place < len(self._ids) else self._last
        if number is None:
            number = len(self._ids)
            self._ids.append(name)
            self._said.append((function.get("name"), ""))
        if told is not None:
            self._by_index[told] = number
        self._ids[number] = self._ids[number] or name
        if name is not None and (named or self._ids[number] == name):
            self._by_id[name] = number
        self._last = number
        return number

    def _goes_on(self, number: int, function: Object, *, ends: bool) -> bool:
        """Whether a piece with an id of its own that names a call's function is a part of that call
        all the same: some write both into every piece. Arguments begin and end with a brace."""
        name, last = self._said[number]
        text = function.get("arguments")
        begun = text.lstrip()[:1] if isinstance(text, str) else ""
        return function["name"] == name and (last != "}" or (begun != "{" if begun else ends))

    def _keep(self, number: int, function: Object) -> None:
        text = function.get("arguments")
        if isinstance(text, str) and (more := text.rstrip()):
            self._said[number] = self._said[number][0], more[-1]


def _new_id() -> str:
    """An id for a call without one; Mistral's models take none but of nine letters and digits."""
    return secrets.token_hex(5)[:9]


def _with_text(function: dict[str, object], missing: str) -> bool:
    """Make a function's arguments a text, `missing` where there are none; whether they were not."""
    arguments = function.get("arguments")
    if isinstance(arguments, str) and (arguments or not missing):
        return False
    try:
        function["arguments"] = orjson.dumps(arguments).decode() if arguments else missing
    except orjson.JSONEncodeError as error:
        raise ValueError("it is nested too deeply") from error
    return True
