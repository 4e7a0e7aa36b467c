"""Headers that a request carries once. Of two, one would decide without a word, and a proxy before
us may have looked at the other (RFC 9110, 5.3 and 11.6.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from router.errors import RequestError

ONCE: Final = frozenset({b"authorization", b"x-api-key"})
"""The headers that say whose the request is."""


def twice(name: str) -> RequestError:
    """The error for a header that stands twice."""
    return RequestError(
        "invalid_header", f"`{name}` stands twice in the head; send it once", param=name
    )


def refuse_repeated(names: Iterable[bytes]) -> None:
    """Refuse a request in whose head these names stand twice.

    Raises:
        RequestError: one of them is of `ONCE`.
    """
    for name in sorted(ONCE.intersection(names)):
        raise twice(name.decode())
