"""What a committed plan asks of an endpoint, and how long that may take."""

from __future__ import annotations

from router.audit.log import Committed
from router.providers.base import Ask
from router.transport.messages import Timeouts
from router.types import Plan


def ask_of(committed: Committed[Plan]) -> Ask:
    """The request as a provider sees it: equal for every attempt."""
    plan, receipt = committed.subject, committed.receipt
    arrival, admitted = plan.arrival, plan.admitted
    return Ask(
        arrival.surface.name,
        plan.body,
        plan.raw,
        admitted.asked.stream,
        admitted.asked.model,
        arrival.id,
        f"{receipt.log}/{receipt.index}",
        int(arrival.at),
        checked=True,
        priority=admitted.priority,
    )


def timeouts_of(plan: Plan) -> Timeouts:
    """A whole answer's first byte comes when all of it is made."""
    stream = plan.admitted.asked.stream
    limits = plan.arrival.snapshot.config.router.limits
    first = limits.first_token if stream else limits.answer
    return Timeouts(plan.arrival.deadline, limits.connect, first)
