"""What a probe's answer, or the want of one, says."""

from __future__ import annotations

import pytest

from router.transport.messages import ConnectFailed, TlsFailed
from router.watch.verdicts import BAD, Verdict, by_status, unreached


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(200, "alive"), (204, "alive"), (400, "reachable"), (422, "reachable"), (401, "auth"),
     (403, "auth"), (404, "unknown"), (405, "unknown"), (429, "busy"), (500, "down"),
     (503, "down")],
)  # fmt: skip
def test_what_a_status_says(status: int, verdict: str) -> None:
    assert by_status(status) == Verdict(verdict)


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (ConnectFailed("", "refused"), "gone"),
        (ConnectFailed("", "timeout"), "down"),
        (ConnectFailed("", "dns"), "down"),
        (TlsFailed("", "expired"), "tls_failed:expired"),
        (TlsFailed("", "wrong_name"), "tls_failed:wrong_name"),
        (TlsFailed("", "handshake"), "tls_failed:handshake"),
    ],
)
def test_what_no_connection_says(error: ConnectFailed, verdict: str) -> None:
    found = unreached(error)
    assert (found.value, found in BAD) == (verdict, True)
