"""What failures mean to health and to the client."""

from __future__ import annotations

import pytest

from regions.health import Sign
from router.answers.outcomes import Failed, failed
from router.providers.base import Failure, Kind
from router.transport.messages import Fate


@pytest.mark.parametrize(
    ("code", "sign", "load"),
    [
        ("connect_failed", Sign.DEAD, True),
        ("timeout", Sign.DEAD, True),
        ("connection_lost", Sign.ILL, False),
        ("garbled", Sign.ILL, False),
        ("aborted", Sign.CLIENT, False),
    ],
)
def test_transport_failures(code: str, sign: Sign, load: bool) -> None:
    found = failed(code, Fate.UNKNOWN)
    assert (found.sign, found.load, found.clients) == (sign, load, None)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_failure_has_a_sign(kind: Kind) -> None:
    found = Failed.told(Failure(kind, "text", 418), Fate.REFUSED)
    assert (found.clients is not None) == Failure(kind, "text").clients
    # A client's mistake, and a credential of ours, say nothing of the replica's health.
    if kind in (Kind.CLIENT, Kind.REFUSED, Kind.CONTEXT_LENGTH):
        assert found.sign is Sign.CLIENT
    if kind in (Kind.AUTH, Kind.MISSING, Kind.LOAD):
        assert found.sign is Sign.LOAD


@pytest.mark.parametrize(
    ("kind", "status", "told", "fate"),
    [
        (Kind.LOAD, 500, Fate.UNKNOWN, Fate.REFUSED),
        (Kind.LOAD, 429, Fate.REFUSED, Fate.REFUSED),
        (Kind.ILL, 400, Fate.REFUSED, Fate.UNKNOWN),
        (Kind.ILL, 503, Fate.REFUSED, Fate.REFUSED),
        (Kind.ILL, 424, Fate.UNKNOWN, Fate.UNKNOWN),
        (Kind.CLIENT, 400, Fate.REFUSED, Fate.REFUSED),
    ],
)
def test_what_a_failure_means_says_how_far_it_came(
    kind: Kind, status: int, told: Fate, fate: Fate
) -> None:
    assert Failed.told(Failure(kind, "text", status), told).fate is fate


def test_a_clients_mistake_keeps_its_status_and_parameter() -> None:
    failure = Failure(Kind.CONTEXT_LENGTH, "too long", 400, param="messages")
    error = Failed.told(failure, Fate.REFUSED).clients
    assert error is not None
    assert (error.status, error.param, error.code) == (400, "messages", "upstream_refused")
