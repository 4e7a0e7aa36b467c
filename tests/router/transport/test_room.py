"""How many file descriptors are kept from whom."""

from __future__ import annotations

import resource

import pytest

from router.transport.room import CLIENTS, ENDPOINTS, has_room


@pytest.mark.parametrize(
    ("most", "clients", "endpoints"),
    [(1024, 960, 1008), (1 << 20, (1 << 20) - 64, (1 << 20) - 16), (256, 192, 240), (64, 48, 60)],
)
def test_clients_are_kept_from_more_than_endpoints(
    monkeypatch: pytest.MonkeyPatch, most: int, clients: int, endpoints: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (most, most))
    for first, kept in ((clients, CLIENTS), (endpoints, ENDPOINTS)):
        assert has_room(first - 1, kept)
        assert not has_room(first, kept)


def test_without_a_limit_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY, 0))
    assert has_room(1 << 30, CLIENTS)
