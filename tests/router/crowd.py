"""Fleets for tests: an endpoint of a scripted router given several replicas, or a capacity."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from router.providers.base import Target
from tests.router.scripted import Scripted


def crowd(world: Scripted, endpoint: str, count: int) -> list[str]:
    """Give an endpoint so many replicas, `http://ENDPOINT-N:80`; gives their keys."""
    live = world.router.live
    keys = {f"{endpoint}/{n}": Target(f"http://{endpoint}-{n}:80") for n in range(count)}
    live.snapshot = replace(live.snapshot, targets={**live.snapshot.targets, endpoint: keys})
    return list(keys)


def settle_for(world: Scripted, **settings: dict[str, str]) -> None:
    """Give endpoints settings, as `fra1={"capacity_requests": "1"}`."""
    live = world.router.live
    endpoints = dict(live.snapshot.policy.endpoints)
    for name, more in settings.items():
        endpoints[name] = replace(endpoints[name], settings={**endpoints[name].settings, **more})
    policy = replace(live.snapshot.policy, endpoints=endpoints)
    live.snapshot = replace(live.snapshot, policy=policy)


def hosts(world: Scripted) -> Counter[str]:
    """How often each host was asked."""
    return Counter(request.origin.host for request in world.transport.sent)
