"""Events that differ from an earlier one only in their text need no parsing.

Most events of a stream are the same bytes around another piece of text. Once one was parsed and
said nothing but content, another with the same bytes before and after a text without quotes,
backslashes and control characters is certain to be valid JSON and to say the same.
"""

from __future__ import annotations

import re

_ASCII = re.compile(rb"[ !#-\[\]-~]+").fullmatch
"""Knows the inside of a JSON string that needs no escape, of ASCII only."""
_KEYS = (b'"content":', b'"text":', b'"reasoning_content":', b'"delta":')
# A stream whose events have no constant parts is not tried for ever.
_TRIES = 8


class Mould:
    """Learns the constant parts from an event that was read, and knows their like again."""

    __slots__ = (
        "_after", "_before", "_goes_after", "_goes_before", "_same", "_start", "_tail", "_tries",
    )  # fmt: skip

    def __init__(self) -> None:
        self._tries = _TRIES
        self._start = self._tail = 0
        self._before = b""
        self._after = b""
        self._goes_before = b""
        self._goes_after = b""
        self._same = False

    def learn(self, came: bytes, goes: bytes) -> None:
        """`came` was read as content and nothing else, and is passed on as `goes`."""
        if self._tries == 0:
            return
        self._tries -= 1
        for key in _KEYS:
            parts, new = _cut(came, key), _cut(goes, key)
            if parts is not None and new is not None and parts[1] == new[1]:
                self._before, _, self._after = parts
                self._goes_before, _, self._goes_after = new
                self._start, self._tail = len(self._before), len(self._after)
                self._same = came == goes
                return

    def cast(self, came: bytes) -> bytes | None:
        """What an event like the learned one is passed on as; None if it must be read."""
        start, end = self._start, len(came) - self._tail
        if not 0 < start < end or not (
            came.startswith(self._before) and came.endswith(self._after)
        ):
            return None
        # Most texts are ASCII, and are looked at where they stand.
        if not (_ASCII(came, start, end) or _plain(came[start:end])):
            return None
        if self._same:
            return came
        return self._goes_before + came[start:end] + self._goes_after


def _cut(event: bytes, key: bytes) -> tuple[bytes, bytes, bytes] | None:
    """The bytes before, of and after the text of the only `key`, if it has a plain text."""
    if event.count(key) != 1:
        return None
    start = event.index(key) + len(key)
    if event.startswith(b' "', start):
        start += 1
    if not event.startswith(b'"', start):
        return None
    start += 1
    end = event.find(b'"', start)
    text = event[start:end]
    return (event[:start], text, event[end:]) if end > start and _plain(text) else None


def _plain(text: bytes) -> bool:
    """Whether this is the inside of a JSON string as it stands. Not all such texts are found."""
    if b'"' in text or b"\\" in text:
        return False
    try:
        return text.decode().isprintable()
    except UnicodeDecodeError:
        return False
