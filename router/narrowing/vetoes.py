"""The veto set: what may not be called right now, whatever a plan says. It only removes.

Read before every attempt. A veto names an endpoint, a place, an operator's country or a key, and
why. What drifted is a veto too: an endpoint that was found to run in more places than the plan was
made for. A plan made since knows of them, and was judged by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from regions.boundaries import operator_term, term
from regions.model import Footprint
from regions.places import PlaceError
from router.narrowing.drifted import covers


def _none() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Vetoes:
    """An immutable set of vetoes; a new one replaces it whole.

    Attributes:
        endpoints: endpoint name → reason.
        places: place or boundary word → reason; whatever may touch it is vetoed.
        operators: country or jurisdiction → reason; whoever may be under its law is vetoed.
        keys: key id → reason: requests of a revoked key stop at their next attempt.
        drifted: endpoint name → where it was found to run.
    """

    endpoints: Mapping[str, str] = field(default_factory=_none)
    places: Mapping[str, str] = field(default_factory=_none)
    operators: Mapping[str, str] = field(default_factory=_none)
    keys: Mapping[str, str] = field(default_factory=_none)
    drifted: Mapping[str, Footprint] = field(default_factory=dict)

    def against(self, endpoint: str, footprint: Footprint, key: str) -> str | None:
        """Why this endpoint may not be called for this key now; `None` if it may."""
        if not (self.endpoints or self.places or self.operators or self.keys or self.drifted):
            return None
        named = self.endpoints.get(endpoint) or self.keys.get(key)
        return (
            named
            or self._drift(endpoint, footprint)
            or self._place(footprint)
            or self._operator(footprint)
        )

    def __bool__(self) -> bool:
        """Whether anything is vetoed at all."""
        return bool(self.endpoints or self.places or self.operators or self.keys or self.drifted)

    def __or__(self, other: Vetoes) -> Vetoes:
        """Both sets together."""
        return Vetoes(*({**getattr(self, f.name), **getattr(other, f.name)} for f in fields(self)))

    def _drift(self, endpoint: str, footprint: Footprint) -> str | None:
        found = self.drifted.get(endpoint)
        if found is None or covers(footprint, found):
            return None
        return "drift: it was found to run in other places than this request was planned for"

    def _place(self, footprint: Footprint) -> str | None:
        """What only may lie in a vetoed place (an area, an open end) is vetoed with it."""
        touched = footprint.process.mask | footprint.retain.mask
        for word, reason in self.places.items():
            if touched & _possible(word, footprint):
                return reason
        return None

    def _operator(self, footprint: Footprint) -> str | None:
        for word, reason in self.operators.items():
            if footprint.operate.mask & operator_term(word, footprint.process.atlas).possible:
                return reason
        return None


def _possible(word: str, footprint: Footprint) -> int:
    """The atoms that may lie in a place. One that this catalog no longer has is nowhere in it:
    an own region that is gone from the configuration."""
    try:
        return term(word, footprint.process.atlas).possible
    except PlaceError:
        return 0


class VetoBoard:
    """Where the current set hangs: watchers put their parts, dispatch reads the whole."""

    __slots__ = ("_parts", "current")

    def __init__(self) -> None:
        self._parts: dict[str, Vetoes] = {}
        self.current = Vetoes()

    def put(self, source: str, vetoes: Vetoes) -> None:
        """Replace what one source (`drift`, `quarantine`, `keys`) vetoes; others stay."""
        self._parts[source] = vetoes
        whole = Vetoes()
        for part in self._parts.values():
            whole |= part
        self.current = whole

    def part(self, source: str) -> Vetoes:
        """What one source vetoes now."""
        return self._parts.get(source, Vetoes())
