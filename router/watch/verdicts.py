"""What a probe found."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from router.providers.failures import AUTH
from router.transport.messages import ConnectFailed, TlsFailed


class Verdict(StrEnum):
    """What a probe found."""

    ALIVE = "alive"
    REACHABLE = "reachable"
    """It answers, but that proves nothing about its engine."""
    UNKNOWN = "unknown"
    ABSENT = "absent"
    """It has no such model, or not where it was asked for it."""
    UNASKED = "unasked"
    """This router could not ask: that says nothing."""
    BUSY = "busy"
    LATE = "late"
    """Nothing came in time. Told as one of the others, by what else is known."""
    AUTH = "auth"
    DOWN = "down"
    GONE = "gone"
    """Nobody listens there."""
    HANDSHAKE = "tls_failed:handshake"
    EXPIRED = "tls_failed:expired"
    NOT_YET_VALID = "tls_failed:not_yet_valid"
    UNKNOWN_AUTHORITY = "tls_failed:unknown_authority"
    WRONG_NAME = "tls_failed:wrong_name"
    BAD_CERTIFICATE = "tls_failed:bad_certificate"


_TLS: Final = frozenset(one for one in Verdict if one.startswith(TlsFailed.code))
BAD: Final = frozenset({Verdict.AUTH, Verdict.DOWN, Verdict.GONE, *_TLS})
"""What speaks against a replica."""


def unreached(error: ConnectFailed) -> Verdict:
    """What a connection that failed says of whom it was to reach."""
    if isinstance(error, TlsFailed):
        return Verdict(error.told)
    return Verdict.GONE if error.reason == "refused" else Verdict.DOWN


def by_status(status: int) -> Verdict:
    """What the status of an answer about its health says of a server.

    Any other mistake of ours is an answer. What isn't there (404) says nothing, and 429 is load.
    """
    if 200 <= status < 300:
        return Verdict.ALIVE
    if status in AUTH:
        return Verdict.AUTH
    if status in (404, 405, 501):
        return Verdict.UNKNOWN
    if status == 429:
        return Verdict.BUSY
    return Verdict.DOWN if status >= 500 else Verdict.REACHABLE
