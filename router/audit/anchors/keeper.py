"""Publishes checkpoints to every anchor, and knows how old the newest anchored one is.

An anchor that fails is tried again with the next checkpoint, which covers everything the missed
one did; nothing is queued. The log goes on meanwhile: what grows is the unanchored tail, and
`health` says so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from router.audit.errors import AuditError
from router.audit.note import Checkpoint

Publish = Callable[[Checkpoint], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class AnchorHealth:
    """One anchor: the size it holds, how many seconds ago it took it, and why it last failed.

    `age` is None before the first success."""

    name: str
    state: Literal["ok", "late", "failing"]
    size: int
    age: float | None
    reason: str


@dataclass(slots=True)
class _Anchor:
    publish: Publish
    size: int = 0
    taken: float | None = None
    reason: str = ""


class AnchorKeeper:
    """Hands each published checkpoint to all anchors at once. `late` and `timeout` in seconds."""

    def __init__(
        self,
        anchors: Mapping[str, Publish],
        clock: Callable[[], float],
        *,
        late: float = 180.0,
        timeout: float = 20.0,
    ) -> None:
        self._anchors = {name: _Anchor(publish) for name, publish in anchors.items()}
        self._clock = clock
        self._late = late
        self._timeout = timeout

    async def publish(self, head: Checkpoint) -> None:
        """Give one checkpoint to every anchor that doesn't hold it.

        Failures are kept for `health`, not raised."""
        await asyncio.gather(*(self._one(anchor, head) for anchor in self._anchors.values()))

    @property
    def anchors(self) -> int:
        """How many there are."""
        return len(self._anchors)

    @property
    def failing(self) -> bool:
        """Whether some anchor did not take the newest checkpoint given."""
        return any(anchor.reason for anchor in self._anchors.values())

    def health(self) -> list[AnchorHealth]:
        """Every anchor, in the order given."""
        return [self._health(name, anchor) for name, anchor in self._anchors.items()]

    async def _one(self, anchor: _Anchor, head: Checkpoint) -> None:
        if anchor.taken is not None and not anchor.reason and anchor.size >= head.size:
            return
        try:
            async with asyncio.timeout(self._timeout):
                await anchor.publish(head)
        except (AuditError, OSError, TimeoutError) as error:
            anchor.reason = str(error) or "no answer in time"
            return
        anchor.size, anchor.taken, anchor.reason = head.size, self._clock(), ""

    def _health(self, name: str, anchor: _Anchor) -> AnchorHealth:
        age = None if anchor.taken is None else max(0.0, self._clock() - anchor.taken)
        state: Literal["ok", "late", "failing"] = "ok"
        if anchor.reason:
            state = "failing"
        elif age is None or age > self._late:
            state = "late"
        return AnchorHealth(name, state, anchor.size, age, anchor.reason)
