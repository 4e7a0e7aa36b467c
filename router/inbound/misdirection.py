"""The router is itself a place: a request whose boundary leaves it out belongs elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from regions.places import Boundary, PlaceError
from router.errors import RequestError
from router.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Direction:
    """Where a request belongs; without a `url` there is no router inside its boundary."""

    region: str | None
    url: str | None

    def error(self) -> RequestError:
        """421 with the home's address, or 403 when there is none."""
        if self.url is None:
            return RequestError(
                "no_router_inside_boundary",
                "this request may not be processed where this router runs, and none of its "
                "peers lies inside the boundary; the operator must add one",
            )
        return RequestError(
            "misdirected",
            f"this request belongs to the router in `{self.region}`: send it to {self.url}",
            headers={"location": self.url, "x-domicile-home": f"{self.region} {self.url}"},
        )


def direct(bound: Boundary, snapshot: Snapshot) -> Direction | None:
    """Where a request with this boundary belongs; `None` when this router is inside."""
    atlas = snapshot.policy.atlas
    if bound.contains(atlas.place(snapshot.region)):
        return None
    for peer in snapshot.config.router.peers:
        try:
            inside = bound.contains(atlas.place(peer.region))
        except PlaceError:
            continue
        if inside:
            return Direction(peer.region, peer.url)
    return Direction(None, None)
