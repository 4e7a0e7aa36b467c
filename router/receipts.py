"""The receipt of an answer: headers built from what was called, never from what was asked."""

from __future__ import annotations

from regions.places import Region
from router.dispatch import Dispatched
from router.exchange import Headers
from router.opening import OpenedStream
from router.types import Candidacy


def receipt_headers(dispatched: Dispatched) -> Headers:
    """Answer headers: the media type, our request id, and the receipt.

    `x-domicile-region` stands only where the footprint of the endpoint called is one
    region. Elsewhere the vendor chose among several and doesn't say which, so the whole
    `x-domicile-footprint` stands instead.
    """
    stream = isinstance(dispatched.opened, OpenedStream)
    receipt = dispatched.committed.receipt
    endpoint = dispatched.candidacy.endpoint
    media = "text/event-stream; charset=utf-8" if stream else "application/json"
    shown = {
        "content-type": media,
        "x-request-id": dispatched.plan.arrival.id,
        "x-domicile-record": f"{receipt.log}/{receipt.index}/{receipt.leaf}",
        **place_headers(dispatched.candidacy),
        "x-domicile-endpoint": endpoint.name,
        "x-domicile-model": endpoint.model,
        "x-domicile-tier": dispatched.candidacy.tier.label,
        "x-domicile-attempts": str(len(dispatched.attempts)),
        "x-domicile-policy": dispatched.plan.arrival.snapshot.policy.digest[:16],
    }
    reservation = dispatched.plan.admitted.lease.reservation
    if reservation is not None:
        shown |= reservation.headers
    if stream:
        shown |= {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in shown.items()]


def place_headers(candidacy: Candidacy) -> dict[str, str]:
    """One region when it is certain, else the footprint it ran within."""
    atoms = tuple(candidacy.footprint.process)
    if len(atoms) == 1 and isinstance(atoms[0], Region):
        return {"x-domicile-region": atoms[0].id}
    return {"x-domicile-footprint": ",".join(candidacy.footprint.process.ids)}
