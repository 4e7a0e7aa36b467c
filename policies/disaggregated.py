"""Endpoints in two halves: one computes prompts (prefill), the other makes the answers (decode).

The decode half is the endpoint that models list. What is true of it must be true of both: its
footprint is the union of the two, and it holds only the assurances that both hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from policies.attributes import nearest
from policies.timed import earliest
from regions.model import Assurance, Endpoint

KINDS: Final = frozenset({"vllm"})
"""Kinds of servers whose way of handing a cache over is spoken here."""

IDLE: Final = {"pool": "pool", "hedge_after": "hedge"}
"""Settings of who answers requests, and the keys they are written under."""

Fail = Callable[[str, str, str], object]
"""Notes a fault: the endpoint's name, its key, and what to do."""


def with_prefill(endpoints: Mapping[str, Endpoint], fail: Fail) -> dict[str, Endpoint]:
    """The endpoints, each with its other half."""
    whole = {name: _whole(one, endpoints, fail) for name, one in endpoints.items()}
    for half in halves(whole):
        for key in _idle(endpoints[half]):
            message = f"`{half}` only computes another one's prompts; write `{key}` at that one"
            fail(half, key, message)
    return whole


def _idle(half: Endpoint) -> list[str]:
    """What is written at an endpoint that no request chooses, and would look as if it worked."""
    written = [key for setting, key in IDLE.items() if setting in half.settings]
    return written if half.burst is None else [*written, "burst"]


def halves(endpoints: Mapping[str, Endpoint]) -> frozenset[str]:
    """Names of the endpoints that compute another one's prompts."""
    return frozenset(one.prefill.name for one in endpoints.values() if one.prefill is not None)


def _whole(endpoint: Endpoint, endpoints: Mapping[str, Endpoint], fail: Fail) -> Endpoint:
    named = endpoint.settings.get("prefill")
    if named is None:
        return endpoint
    half = endpoints.get(named)
    if half is None:
        hint = nearest(named, endpoints)
        fail(endpoint.name, "prefill", f"endpoint `{named}` is not defined{hint}")
        return endpoint
    wrong = _wrong(endpoint, half)
    if wrong is not None:
        fail(endpoint.name, "prefill", wrong)
        return endpoint
    return replace(endpoint, prefill=half, assurances=_both(endpoint, half))


def _wrong(endpoint: Endpoint, half: Endpoint) -> str | None:
    """Why an endpoint can't compute another one's prompts."""
    if half.name == endpoint.name:
        return "an endpoint that computes its own prompts needs no `prefill`"
    if not {endpoint.kind, half.kind} <= KINDS:
        kinds = " and ".join(sorted(KINDS))
        return f"only {kinds} servers hand a cache over; `{half.name}` is of kind `{half.kind}`"
    if "prefill" in half.settings:
        return f"`{half.name}` has a `prefill` of its own; a prompt is computed in one place"
    if half.model != endpoint.model:
        return f"`{half.name}` runs `{half.model}`, whose cache is no use to `{endpoint.model}`"
    if half.provider != endpoint.provider:
        return (
            f"`{half.name}` is at `{half.provider}`, and rules for that provider would not be "
            f"asked: `{endpoint.name}` is at `{endpoint.provider}`; take one at the same"
        )
    if "hedge_after" in endpoint.settings:
        return "an endpoint with `prefill` is not hedged; take `hedge` out"
    return None


def _both(one: Endpoint, other: Endpoint) -> tuple[Assurance, ...]:
    """What both halves hold, as long as both do."""
    theirs = {assurance.name: assurance for assurance in other.assurances}
    return tuple(
        replace(mine, until=earliest((mine.until, theirs[mine.name].until)))
        for mine in one.assurances
        if mine.name in theirs
    )
