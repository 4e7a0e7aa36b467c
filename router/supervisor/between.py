"""What workers ask and tell each other, by way of their supervisor.

Each reads the others' logs, and each counts what any of them judged: an alarm that one worker of
two raised alone would leave half of the traffic with the model that got worse.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol, TypeVar

from router.errors import RequestError
from router.supervisor.channel import PATIENCE, Gone
from router.supervisor.orders import Audits, AuditsAsked, Judged, Relayed
from router.supervisor.slot import Slot

T = TypeVar("T")
TELLING: Final = 5.0
"""Seconds that whoever judged waits for the others; they count it whenever they come to it."""
KNOWING: Final = 1.0
"""Seconds in which workers that serve say what they found to one that begins. Where outcomes are
kept it has read their files, and what came since is not known to it. Where none of them answers it
answers by the large tier until one does."""


class Asking(Protocol):
    """The workers, and how one is asked."""

    @property
    def slots(self) -> Sequence[Slot]:
        """All workers' places."""
        ...

    @property
    def asked(self) -> Callable[[Slot, object, type[T], float], Awaitable[T]]:
        """Ask one worker. Raises Gone, RequestError."""
        ...

    def serving(self) -> list[Slot]:
        """The workers that serve requests."""
        ...


async def relayed(crew: Asking, message: Relayed) -> object:
    """One worker's question about another's log. Raises RequestError."""
    for slot in crew.slots:
        if slot.log == message.log:
            try:
                return await crew.asked(slot, message.asked, object, PATIENCE)
            except Gone as error:
                told = f"{error}; try again"
                raise RequestError("log_unavailable", told, retry_after=1.0) from None
    raise RequestError("not_found", "there is no such log")


async def spread(crew: Asking, by: Slot, message: Judged) -> None:
    """Tell all other workers that serve what one has judged."""
    others = [slot for slot in crew.serving() if slot is not by]
    await asyncio.gather(*(_told(crew, slot, message) for slot in others))


async def hand_down(crew: Asking, slot: Slot) -> None:
    """Let a worker that begins know what one that serves has found: it came without a memory.

    It serves already as others see it, so that what is judged meanwhile reaches both. Of all that
    are asked who serves longest is believed: another one that begins just now may know nothing yet
    itself. One that is stuck holds the new one's door up for `KNOWING` seconds, as all would.
    Where none answers, one has to ask again: `slot.unheard`.
    """
    knowing = [one for one in crew.serving() if one is not slot and not one.unheard]
    others = sorted(knowing, key=lambda one: one.since)
    found = Audits(None if others else {})
    asking = [
        asyncio.ensure_future(crew.asked(one, AuditsAsked(), Audits, KNOWING)) for one in others
    ]
    try:
        for one in asking:
            try:
                found = await one
            except (Gone, RequestError):
                continue  # its end or silence is seen elsewhere; another one knows the same
            break
    finally:
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    slot.unheard = found.found is None
    await _told(crew, slot, found)


async def _told(crew: Asking, slot: Slot, message: object) -> None:
    try:
        await crew.asked(slot, message, bool, TELLING)
    except (Gone, RequestError) as error:
        slot.reason = str(error)
