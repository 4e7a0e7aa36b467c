"""Ways to choose a replica: ours, and those it is compared with.

All stand behind the router's own `Balance`, so that health, what is full, and what is in flight
are the same for each; only the choice among replicas that stand alike differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from regions.prefix import Trail
from router.capacity.balance import Balance, Keys
from router.capacity.lineup import Seat


class LeastLoad(Balance):
    """The fewest tokens in flight, whatever the caches hold."""

    __slots__ = ()

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        return super()._chosen(alike, prompt, None)

    def _quickly(
        self, endpoint: str, keys: Keys, prompt: int, trail: Trail | None
    ) -> tuple[str, int] | None:
        return super()._quickly(endpoint, keys, prompt, None)


class _Every(Balance):
    """What looks at every replica, however many there are."""

    __slots__ = ()

    def _quickly(
        self, endpoint: str, keys: Keys, prompt: int, trail: Trail | None
    ) -> tuple[str, int] | None:
        return None


class RoundRobin(_Every):
    """One after the other."""

    __slots__ = ("_turn",)

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        self._turn = getattr(self, "_turn", -1) + 1
        return alike[self._turn % len(alike)].key, prompt


class Random(_Every):
    """Any."""

    __slots__ = ()

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        return alike[min(len(alike) - 1, int(self.random() * len(alike)))].key, prompt


class Prefix(_Every):
    """Wherever most of the prompt is held, however busy that is."""

    __slots__ = ()

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        return super()._chosen([seat._replace(load=0.0) for seat in alike], prompt, trail)


Made = Callable[..., Balance]
OURS: Final = "ours"
STRATEGIES: Final[Mapping[str, Made]] = MappingProxyType(
    {
        OURS: Balance,
        "least-load": LeastLoad,
        "round-robin": RoundRobin,
        "random": Random,
        "prefix": Prefix,
    }
)
"""Name → what makes the balance of one router, from the parts that `Balance` takes."""
