"""How urgent a request is: its class, from what its client asks for and what the operator allows.

There are three classes, the most urgent first: interactive, standard, batch. A tenant, an app and
a key may each have a ceiling; the lowest of those given counts, and without any it is standard. A
request is of its ceiling's class unless it asks for a lower one, by the header or by vLLM's own
field. Where the router has no `priorities` there are no classes, and nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field, model_validator

from policies.model import Policy, Priority
from router.errors import RequestError
from router.settings.config_types import Strict

if TYPE_CHECKING:
    from router.auth import Principal
    from router.types import Authenticated

HEADER: Final = b"x-domicile-priority"
FIELD: Final = "priority"
"""vLLM's: a whole number, lower is earlier, 0 says nothing."""
NUMBERS: Final[Mapping[Priority, int]] = {
    Priority.INTERACTIVE: -1,
    Priority.STANDARD: 0,
    Priority.BATCH: 1,
}
"""What an engine that schedules by priority is told."""

WIDEST: Final = 1 << 63
"""What a number in 64 bits stays below. A larger one comes out of the parser rounded."""

Share = Annotated[float, Field(gt=0, le=0.5)]


class PrioritiesSection(Strict):
    """Requests wait by class: the more urgent first.

    `standard`, `batch`: the least share of room that each gets while more urgent ones wait.
    """

    standard: Share = 0.2
    batch: Share = 0.05

    @model_validator(mode="after")
    def _leaves_room(self) -> Self:
        if self.standard + self.batch > 0.5:
            raise ValueError(
                f"the least shares come to {self.standard + self.batch:g}; together they may take "
                "half of the room at most, or nobody is urgent any more"
            )
        return self

    def least(self, priority: Priority) -> float:
        """The least share of room of a class; the most urgent one needs none."""
        shares = {Priority.STANDARD: self.standard, Priority.BATCH: self.batch}
        return shares.get(priority, 0.0)


def priority_of(known: Authenticated, body: Mapping[str, object]) -> Priority | None:
    """The class of a request; its header counts before its body. `None` where there are no classes.

    What no client waits for is batch, whatever is allowed.

    Raises:
        RequestError: no class, no whole number, or a class above the ceiling.
    """
    arrival = known.arrival
    if arrival.snapshot.config.router.priorities is None:
        return None
    if arrival.stored is not None:
        return Priority.BATCH
    return within(
        ceiling_of(known.principal, arrival.snapshot.policy),
        arrival.exchange.head.get(HEADER),
        body,
    )


def within(ceiling: Priority, said: bytes | None, body: Mapping[str, object]) -> Priority:
    """What is asked for below a ceiling, else the ceiling; `said` is the header's value.

    Raises:
        RequestError: no class, no whole number, or a class above the ceiling.
    """
    asked = _named(said) if said is not None else _numbered(body.get(FIELD))
    if asked is None:
        return ceiling
    if asked < ceiling:
        raise RequestError(
            "priority_not_allowed",
            f"this key's requests are `{ceiling.label}` at most, not `{asked.label}`; ask for "
            f"`{ceiling.label}` or less, or leave it out",
        )
    return asked


def ceiling_of(principal: Principal, policy: Policy) -> Priority:
    """The most urgent class that a key's requests may be of."""
    tenant = policy.tenants.get(principal.tenant)
    app = None if principal.app is None else policy.apps.get(principal.app)
    given = [principal.priority]
    given += [] if tenant is None else [tenant.priority]
    given += [] if app is None else [app.priority]
    return max((one for one in given if one is not None), default=Priority.STANDARD)


def _named(said: bytes) -> Priority:
    try:
        return Priority.named(said.decode("latin-1").strip().lower())
    except ValueError as error:
        raise RequestError("invalid_header", f"`{HEADER.decode()}`: {error}") from None


def _numbered(value: object) -> Priority | None:
    if value is None or value == 0:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -WIDEST <= value < WIDEST:
        message = (
            f"`{FIELD}` must be a whole number from {-WIDEST} to {WIDEST - 1}: below 0 is "
            "interactive, above 0 batch"
        )
        raise RequestError("invalid_request", message, param=FIELD)
    return Priority.INTERACTIVE if value < 0 else Priority.BATCH


def unread(policy: Policy) -> Iterator[tuple[str, str, str]]:
    """What is said of classes, which a router without them would not read: section, name, key."""
    for name, tenant in policy.tenants.items():
        if tenant.priority is not None:
            yield "tenants", name, "priority"
    for name, app in policy.apps.items():
        if app.priority is not None:
            yield "apps", name, "priority"
    for name, endpoint in policy.endpoints.items():
        for key in ("pool", "scheduling"):
            if key in endpoint.settings:
                yield "endpoints", name, key
