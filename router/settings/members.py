"""The replicas that were looked up, and the snapshot that has them.

What was found is kept whole, by where it was looked up. Which of it an endpoint may use (`within`),
under which name, with which credential and which TLS is the snapshot's word: another one may have
come since, and a name server may let what it said count for a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from policies.model import Policy
from regions.model import Endpoint
from router.providers.base import Target
from router.snapshot import Snapshot
from router.transport.messages import Origin


@dataclass(frozen=True, slots=True)
class Place:
    """A replica found: `at` is its host and port, which tell replicas apart; see `Target` for
    `priority` and `share`."""

    url: str
    at: str
    priority: int = 0
    share: float = 1.0

    @classmethod
    def of(cls, url: str, priority: int = 0, share: float = 1.0) -> Place:
        """The place at a base URL. Raises ValueError for one that can't be called."""
        origin = Origin.parse(url)
        return cls(url, f"{origin.host}:{origin.port}", priority, share)


def listed(text: str) -> list[str]:
    """The base URLs in a file of replicas, one a line; `#` begins a comment.

    Raises:
        ValueError: it says none, or one that can't be called; its line is not shown, since it may
            hold a key.
    """
    if not text.strip():  # as a file is for a moment that is written anew
        raise ValueError("is empty; a fleet without replicas has a line with `#`")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    for number, url in enumerate(lines, 1):
        try:
            if url:
                Origin.parse(url)
        except ValueError as error:
            raise ValueError(f"has no base URL in line {number}: {error}") from None
    return [url for url in lines if url]


Members = Mapping[str, Sequence[Place]]
"""What an endpoint says of its `replicas` → what was found there."""


def looked_up(policy: Policy) -> list[Endpoint]:
    """The endpoints whose replicas are found by looking."""
    return [one for one in policy.endpoints.values() if "replicas" in one.settings]


def sources(snapshot: Snapshot) -> frozenset[str]:
    """All that a snapshot's endpoints say of their `replicas`."""
    return frozenset(one.settings["replicas"] for one in looked_up(snapshot.policy))


def peopled(snapshot: Snapshot, members: Members) -> Snapshot:
    """The snapshot with these replicas of the endpoints that are looked up there."""
    targets = dict(snapshot.targets)
    for name, endpoint in snapshot.policy.endpoints.items():
        found = members.get(endpoint.settings.get("replicas", ""))
        if found is not None:
            targets[name] = _replicas(snapshot, endpoint, found)
    return snapshot if targets == snapshot.targets else replace(snapshot, targets=targets)


def _replicas(snapshot: Snapshot, endpoint: Endpoint, found: Sequence[Place]) -> dict[str, Target]:
    name = endpoint.name
    secret, tls = snapshot.secrets.get(name), snapshot.trust.get(name)
    return {
        f"{name}/{one.at}": Target(one.url, secret, tls, one.priority, one.share)
        for one in inside(endpoint, found)
    }


def inside(endpoint: Endpoint, found: Sequence[Place]) -> Sequence[Place]:
    """The places that the endpoint may use."""
    networks = endpoint.settings.get("replicas_within")
    return found if networks is None else [one for one in found if is_within(one, networks)]


def is_within(found: Place, networks: str) -> bool:
    """Whether a replica's address lies in one of the networks."""
    try:
        address = ip_address(found.at.rpartition(":")[0])
    except ValueError:
        return False  # a name may resolve to anywhere
    return any(
        address.version == network.version and address in network for network in _networks(networks)
    )


@lru_cache(1024)  # needed for each replica at each look
def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(map(ip_network, text.split()))
