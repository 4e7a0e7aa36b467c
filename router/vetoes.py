"""The veto set: what may not be called right now, whatever a plan says. It only removes.

Read before every attempt. A veto names an endpoint, a place or an operator's country, and
why: a drifted profile, a revoked key, a quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from regions.countries import Countries
from regions.model import Footprint


@dataclass(frozen=True, slots=True)
class Vetoes:
    """An immutable set of vetoes; a new one replaces it whole.

    Attributes:
        endpoints: endpoint name → reason.
        places: place id → reason; an endpoint whose footprint touches one is vetoed.
        operators: country → reason.
        keys: key id → reason: requests of a revoked key stop at their next attempt.
    """

    endpoints: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    operators: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def against(self, endpoint: str, footprint: Footprint, key: str) -> str | None:
        """Why this endpoint may not be called for this key now; `None` if it may."""
        if not (self.endpoints or self.places or self.operators or self.keys):
            return None
        named = self.endpoints.get(endpoint) or self.keys.get(key)
        return named or self._place(footprint) or self._operator(footprint)

    def _place(self, footprint: Footprint) -> str | None:
        for place in footprint.process.ids:
            if place in self.places:
                return self.places[place]
        return None

    def _operator(self, footprint: Footprint) -> str | None:
        for code, reason in self.operators.items():
            if footprint.operate.mask & Countries.of([code]).mask:
                return reason
        return None


class VetoBoard:
    """Where the current set hangs: watchers replace it, dispatch reads it."""

    __slots__ = ("current",)

    def __init__(self) -> None:
        self.current = Vetoes()
