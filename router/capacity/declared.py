"""What is declared of endpoints and replicas that matters to the choice between them."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from regions.fleet import Capacity
from regions.model import Endpoint
from router.snapshot import Snapshot


def capacities(endpoints: Mapping[str, Endpoint]) -> dict[str, Capacity]:
    """The declared capacities, by endpoint name."""
    found = {}
    for name, endpoint in endpoints.items():
        requests = endpoint.settings.get("capacity_requests")
        tokens = endpoint.settings.get("capacity_tokens")
        if requests is not None or tokens is not None:
            found[name] = Capacity(
                None if requests is None else int(requests), None if tokens is None else int(tokens)
            )
    return found


def halves(endpoints: Mapping[str, Endpoint]) -> dict[str, tuple[str, int]]:
    """By endpoint: who computes its prompts, and the least prompt for that, in tokens."""
    return {
        name: (endpoint.prefill.name, int(endpoint.settings["prefill_least"]))
        for name, endpoint in endpoints.items()
        if endpoint.prefill is not None
    }


def costs(endpoints: Mapping[str, Endpoint]) -> dict[str, float]:
    """What one more request costs at each: nothing at what is paid for anyhow, else its price."""
    found = {}
    for name, endpoint in endpoints.items():
        price = endpoint.price
        known = None not in (price.input, price.output)
        asked = (price.input or 0.0) + (price.output or 0.0) if known else inf
        found[name] = 0.0 if endpoint.self_operated else asked
    return found


def apart(snapshot: Snapshot) -> dict[str, tuple[int, float]]:
    """The replicas whose priority or share of the load is not everybody's: priority and share."""
    return {
        key: (target.priority, target.share)
        for replicas in snapshot.targets.values()
        for key, target in replicas.items()
        if target.priority or target.share != 1.0
    }
