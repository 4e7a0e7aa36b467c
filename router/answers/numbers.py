"""`NaN`, `Infinity` and `-Infinity` in an endpoint's JSON, which has no such numbers (RFC 8259, 6).

Python's own writer gives them all the same, as for the logarithm of a probability of 0. They are
passed on as `null`, as pydantic writes them and JavaScript does: the text beside them is good, and
neither is the server ill nor its client to be without an answer for them.
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


def finite(text: bytes) -> bytes | None:
    """JSON, or an event that holds some, with `null` for each of these words outside of strings;
    `None` if there is none."""
    if not any(word in text for word in _WORDS):
        return None
    changed = _FOUND.sub(_kept, text)
    return None if changed == text else changed


def _kept(found: re.Match[bytes]) -> bytes:
    return found[1] or b"null"


def parsed(body: bytes) -> tuple[bytes, object]:
    """A body and what it holds, after `finite` if it is no JSON as it stands.

    Raises:
        orjson.JSONDecodeError: it is none either way.
    """
    try:
        return body, orjson.loads(body)
    except orjson.JSONDecodeError:
        changed = finite(body)
        if changed is None:
            raise
        return changed, orjson.loads(changed)
