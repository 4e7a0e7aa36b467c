"""Ways to choose a replica: ours, and those it is compared with.

All stand behind the router's own `Balance`, so that health, what is full, and what is in flight
are the same for each; only the choice among replicas that stand alike differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from regions.prefix import Affinity, Trail
from router.balance import Balance, Seat


class LeastLoad(Balance):
    """The fewest tokens in flight, whatever the caches hold."""

    __slots__ = ()

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        return super()._chosen(alike, prompt, None)


class RoundRobin(Balance):
    """One after the other."""

    __slots__ = ("_turn",)

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        self._turn = getattr(self, "_turn", -1) + 1
        return alike[self._turn % len(alike)].key, prompt


class Random(Balance):
    """Any."""

    __slots__ = ()

    def _chosen(self, alike: Sequence[Seat], prompt: int, trail: Trail | None) -> tuple[str, int]:
        return alike[min(len(alike) - 1, int(self.random() * len(alike)))].key, prompt


def prefix_only(balance: Balance) -> Balance:
    """Wherever the beginning is known, however busy that is."""
    balance.affinity = Affinity(worth=1e12)
    return balance


Made = Callable[..., Balance]
OURS: Final = "ours"
STRATEGIES: Final[Mapping[str, Made]] = MappingProxyType(
    {
        OURS: Balance,
        "least-load": LeastLoad,
        "round-robin": RoundRobin,
        "random": Random,
        "prefix": lambda *parts: prefix_only(Balance(*parts)),
    }
)
"""Name → what makes the balance of one router, from the parts that `Balance` takes."""
