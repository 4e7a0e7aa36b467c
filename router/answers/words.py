"""How endpoints tell an error: where its words and its status stand, and which words mean a limit.

What is in them may be a prompt's. So they are looked for and never passed on; where nothing but
the words tells what an error is, only where they begin it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

WORDED: Final = ("message", "Message", "msg", "error_msg", "status_msg", "detail")
"""The members that hold an error's words."""
NAMED: Final = (
    "code", "status", "status_code", "statusCode", "http_status", "http_code", "error_code", "type",
    "error_type",
)  # fmt: skip
"""The members that may tell its status or name, in this order."""
# A GPU that is "busy or unavailable" and a device or resource that is "busy" are broken.
_LIMIT: Final = (
    r"(?:rate.?limit|too many (?:requests|connections)|overloaded|at capacity|"
    r"(?<!resource )busy\b(?! or unavailable)|please wait|queue (?:is )?full|maximum queue size|"
    r"pending (?:requests|tokens)|no slot|concurrency limit|backpressure|reset reason: overflow)"
)
_ANYWHERE = re.compile(rf"\b{_LIMIT}", re.IGNORECASE)
_FIRST = re.compile(rf"(?:[\w'.-]+[ :,]+){{0,4}}{_LIMIT}", re.IGNORECASE)


def worded(error: Mapping[str, object]) -> str:
    """An error's own words; empty where it has none."""
    for name in WORDED:
        if isinstance(said := error.get(name), str) and said:
            return said
    return ""


def begins_with_limit(message: str) -> bool:
    """Whether an error that tells nothing else begins with words for a limit."""
    return _FIRST.match(message) is not None


def tells_limit(message: str) -> bool:
    """Whether words for a limit stand anywhere: only for what says already, as a 503, that it is
    not served now."""
    return _ANYWHERE.search(message) is not None
