r"""What some endpoints' JSON holds that is none, beside good text: neither is the server ill for
it, nor its client to be without an answer.

`NaN`, `Infinity` and `-Infinity` (RFC 8259, 6, has no such numbers) are what Python's own writer
gives, as for the logarithm of a probability of 0. They are passed on as `null`, as pydantic writes
them and JavaScript does. Half of a surrogate pair (`\ud83d`) is what JavaScript's writer gives of a
text that was cut within a character. It passes as it came: the next event may hold the other half.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

_WORDS: Final = (b"NaN", b"Infinity")
# Possessive: a text with many escapes is passed in one go, also one that is cut: else each quote in
# it would be taken for the beginning of another.
_FOUND: Final = re.compile(
    rb'("(?:[^"\\]++|\\.)*+"?)|(?<![\w.+-])-?(?:NaN|Infinity)(?![\w.+-])', re.DOTALL
)
# Escapes in turn, so that of two backslashes none begins one; a half that has its other is whole.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def finite(text: bytes) -> bytes | None:
    """JSON, or an event that holds some, with `null` for each of these words outside of strings;
    `None` if there is none."""
    if not any(word in text for word in _WORDS):
        return None
    changed = _FOUND.sub(_kept, text)
    return None if changed == text else changed


def _kept(found: re.Match[bytes]) -> bytes:
    return found[1] or b"null"


def _whole(found: re.Match[bytes]) -> bytes:
    return found[0] if found[1] is None else rb"\ufffd"


def parsed(body: bytes) -> tuple[bytes, object]:
    """A body and what it holds, after `finite` if it is no JSON as it stands, and with U+FFFD for
    each half of a surrogate pair, which the body keeps.

    Raises:
        orjson.JSONDecodeError: it is none either way.
    """
    try:
        return body, orjson.loads(body)
    except orjson.JSONDecodeError:
        changed = finite(body) or body
        return changed, orjson.loads(_ESCAPE.sub(_whole, changed))
