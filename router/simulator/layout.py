"""How a region's replicas stand: one endpoint, pools by class, or prompts and answers apart.

A layout deals out however many replicas a region has, in proportion to its shares and at least one
to each part: so layouts of equally many replicas can be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

ALL: Final = "all"
PREFILL: Final = "prefill"
DECODE: Final = "decode"
PARTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "one": (ALL,),
        "pools": ("interactive", "throughput", "either"),
        "split": (PREFILL, DECODE),
    }
)
"""Kind of layout → its parts, in the order of their shares."""
POOLED: Final = frozenset({"interactive", "throughput"})
"""Parts that have a `pool` of that name; `either` has none, and serves every class."""
MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """`one`, `pools` with two or three shares, or `split` with two."""

    kind: str = "one"
    shares: tuple[int, ...] = (1,)

    @classmethod
    def read(cls, text: str) -> Layout:
        """The layout of `one`, `pools=3:1`, `pools=2:1:1` or `split=1:3`.

        Raises:
            ValueError: it is none of these; says what to write.
        """
        kind, _, said = text.partition("=")
        parts, numbers = PARTS.get(kind, ()), said.split(":")
        least = min(2, len(parts))
        if kind == "one" and not said:
            return cls()
        right = least <= len(numbers) <= len(parts) and kind != "one"
        if not right or not all(one.isdecimal() and 0 < int(one) <= MOST for one in numbers):
            raise ValueError(
                f"`{text}` is no layout; write `one`, `pools=3:1` (interactive to throughput; a "
                "third number is for either) or `split=1:3` (prefill to decode)"
            )
        return cls(kind, tuple(map(int, numbers)))

    def __str__(self) -> str:
        return self.kind if self.kind == "one" else f"{self.kind}={':'.join(map(str, self.shares))}"

    def deal(self, replicas: int) -> dict[str, int]:
        """Replicas of each part: each has one, the others go where most is due (Sainte-Laguë).

        Raises:
            ValueError: there are fewer replicas than parts.
        """
        names = PARTS[self.kind][: len(self.shares)]
        if replicas < len(names):
            raise ValueError(
                f"`{self}` has {len(names)} parts: a region needs as many replicas, not {replicas}"
            )
        dealt = dict.fromkeys(names, 1)
        due = dict(zip(names, self.shares, strict=True))
        for _ in range(replicas - len(names)):
            dealt[max(names, key=lambda name: due[name] / (2 * dealt[name] + 1))] += 1
        return dealt


ONE: Final = Layout()
