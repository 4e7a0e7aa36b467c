"""The receipt of an answer: headers built from what was called, never from what was asked."""

from __future__ import annotations

from functools import lru_cache

from regions.model import Tier
from regions.places import PlaceSet, Region
from router.audit.receipt import in_header
from router.dispatch import Dispatched
from router.inbound.exchange import Lines, lines
from router.opening import OpenedStream


def receipt_headers(dispatched: Dispatched) -> Lines:
    """Answer headers: the media type, our request id, and the receipt.

    `x-domicile-region` stands only where the footprint of the endpoint called is one
    region. Elsewhere the vendor chose among several and doesn't say which, so the whole
    `x-domicile-footprint` stands instead.
    """
    stream = isinstance(dispatched.opened, OpenedStream)
    receipt, candidacy = dispatched.committed.receipt, dispatched.candidacy
    plan, endpoint = dispatched.committed.subject, candidacy.endpoint
    policy = plan.arrival.snapshot.policy.digest
    fixed = _fixed(
        endpoint.name, endpoint.model, candidacy.tier, candidacy.footprint.process, stream
    )
    # Of these three each is made here, of letters, digits and what stands between them: the log
    # holds no other id, and a leaf is hexadecimal.
    shown = b"%b%bx-request-id: %b\r\nx-domicile-record: %b\r\nx-domicile-attempts: %d\r\n" % (
        fixed, _head(receipt.checkpoint, policy), plan.arrival.id.encode(),
        receipt.record.encode(), len(dispatched.attempts),
    )  # fmt: skip
    if left := [name for name in endpoint.left_out if plan.body.get(name) is not None]:
        shown += lines([(b"x-domicile-left-out", ",".join(left).encode())])
    reservation = plan.admitted.lease.reservation
    if reservation is not None and reservation.levels:
        told = reservation.headers.items()
        shown += lines([(name.encode(), value.encode()) for name, value in told])
    return Lines(shown)


@lru_cache(64)
def _head(checkpoint: str, policy: str) -> Lines:
    """What the answers of one batch of entries have in common."""
    head = in_header(checkpoint).encode()
    return lines([(b"x-domicile-head", head), (b"x-domicile-policy", policy[:16].encode())])


@lru_cache(2048)
def _fixed(name: str, model: str, tier: Tier, process: PlaceSet, stream: bool) -> Lines:
    """The headers that every answer of an endpoint has in common."""
    media = "text/event-stream; charset=utf-8" if stream else "application/json"
    shown = {
        "content-type": media,
        **place_headers(process),
        "x-domicile-endpoint": name,
        "x-domicile-model": model,
        "x-domicile-tier": tier.label,
    }
    if stream:
        shown |= {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return lines([(n.encode(), value.encode("latin-1", "replace")) for n, value in shown.items()])


def forget() -> None:
    """Keep no headers of places that a replaced snapshot numbered."""
    _fixed.cache_clear()


def place_headers(process: PlaceSet) -> dict[str, str]:
    """One region when it is certain, else the footprint it ran within."""
    atoms = tuple(process)
    if len(atoms) == 1 and isinstance(atoms[0], Region):
        return {"x-domicile-region": atoms[0].id}
    return {"x-domicile-footprint": ",".join(process.ids)}
