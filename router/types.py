"""What passes from step to step. The order of the twelve steps is held by these types:
each step takes what the one before it made, and only the log makes a `Committed`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from classifiers.view import PromptView
from policies.attributes import Attributes
from policies.eligibility import Eligible, Excluded
from policies.engine import Decision
from policies.model import Priority
from policies.timed import Now
from regions.model import Call, Endpoint, Footprint, Tier
from router.admission import Lease
from router.auth import Principal
from router.frozen import FROM, frozen, maker
from router.inbound.exchange import Exchange
from router.snapshot import Snapshot
from router.surfaces.base import Asked, Surface


class Purpose(StrEnum):
    """What a request is for; every purpose walks the same twelve steps."""

    # An enum's own is a function in Python, and purposes stand in keys of every request.
    __hash__ = str.__hash__

    INTERACTIVE = "interactive"
    BATCH = "batch"
    SHADOW = "shadow"
    PROBE = "probe"


@frozen
class Stored:
    """Who a request belongs to that no client is waiting for: a key's id, authorised anew.

    `tenant`: whose it was; bound to another one the key says nothing of this request. `tier`: the
    one tier asked for, within the policy's bounds.
    """

    key: str
    tenant: str
    tier: Tier | None = None


@frozen
class Arrival:
    """A request whose head has come.

    `id` is ours, never the client's; `at` seconds since the epoch; `began` and `deadline`
    loop time. `stored` stands for the key where the head has none.
    """

    exchange: Exchange
    id: str
    at: float
    began: float
    deadline: float
    surface: Surface
    purpose: Purpose
    snapshot: Snapshot
    stored: Stored | None = None


@frozen
class Authenticated:
    """1. Who asks, and when: the one reading of the clock that this decision gets."""

    arrival: Arrival
    principal: Principal
    now: Now


@frozen
class Admitted:
    """2. The body, parsed once; `priority` is its class, `None` where there are no classes."""

    authenticated: Authenticated
    raw: bytes
    body: Mapping[str, object]
    asked: Asked
    call: Call
    lease: Lease
    priority: Priority | None = None
    arrival: Arrival = field(
        init=False, repr=False, compare=False, metadata={FROM: "authenticated.arrival"}
    )
    snapshot: Snapshot = field(
        init=False, repr=False, compare=False, metadata={FROM: "arrival.snapshot"}
    )


@frozen
class Classified:
    """3. What is known of the request, with origins; `tokens` estimates prompt plus output.

    `view` is what the classifiers saw.
    """

    admitted: Admitted
    attributes: Attributes
    tokens: int
    prompt_tokens: int
    view: PromptView | None = None


@frozen
class Decided:
    """4. The decision."""

    classified: Classified
    decision: Decision


@frozen
class Verdict:
    """What the difficulty classifier said: name and digest, tier, why, and its score.

    `score` is the expected gain of the large tier in thousandths, `None` without one; `cut` says
    that only head and tail of the text were read, `used` that the tier counts (`grade: on`).
    """

    by: str
    tier: Tier
    reason: str
    score: int | None
    cut: bool
    used: bool


@frozen
class Graded:
    """5. The lowest tier that may answer; `grader` names what said so."""

    decided: Decided
    floor: Tier
    grader: str
    verdict: Verdict | None = None


@frozen
class Candidacy:
    """An eligible endpoint with the footprint it was judged by."""

    endpoint: Endpoint
    verdict: Eligible
    footprint: Footprint
    tier: Tier = field(
        init=False, repr=False, compare=False, metadata={FROM: "verdict.candidate.tier"}
    )
    """The tier it serves the model in."""


@dataclass(frozen=True, slots=True)
class Left:
    """An endpoint left out, with every reason: residency's, or the call's needs."""

    endpoint: str
    reasons: tuple[tuple[str, str], ...]

    @classmethod
    def judged(cls, excluded: Excluded) -> Left:
        """From a policy verdict."""
        return cls(excluded.candidate.endpoint, tuple((r.code, r.detail) for r in excluded.reasons))

    @property
    def codes(self) -> tuple[str, ...]:
        """The reason codes, each once, in order."""
        return tuple(dict.fromkeys(code for code, _ in self.reasons))


@frozen
class Filtered:
    """6. Everything inside the boundary that can serve the call, and why the rest can't."""

    graded: Graded
    eligible: tuple[Candidacy, ...]
    excluded: tuple[Left, ...]


@frozen
class Ranked:
    """7. The eligible endpoints in the order they are to be tried.

    `passed`: names of those passed over, because their burst budgets have no room.
    """

    filtered: Filtered
    order: tuple[Candidacy, ...]
    passed: tuple[str, ...] = ()


@frozen
class Plan:
    """8. What may be sent, to whom, in which order, until when; obligations applied.

    `id` names its entries in the log. `body` and `raw` are what leaves: equal to the
    client's unless an obligation changed them. `good_until` is the earliest end of anything
    the plan relies on.
    """

    id: str
    ranked: Ranked
    raw: bytes
    body: Mapping[str, object]
    good_until: float | None
    classified: Classified = field(
        init=False, repr=False, compare=False,
        metadata={FROM: "ranked.filtered.graded.decided.classified"},
    )  # fmt: skip
    admitted: Admitted = field(
        init=False, repr=False, compare=False, metadata={FROM: "classified.admitted"}
    )
    arrival: Arrival = field(
        init=False, repr=False, compare=False, metadata={FROM: "admitted.arrival"}
    )


@frozen
class Attempt:
    """One endpoint asked once, and how it went: what the outcome entry says of it.

    `judged`: the endpoint as which it was judged, another one if it computed that one's prompt.
    """

    endpoint: str
    replica: str
    result: str
    status: int | None
    millis: int
    provider_code: str = ""
    call_id: str | None = None
    retried_unknown: bool = False
    judged: str = ""


# As the classes are called, for less: each request makes one of each.
make_arrival = maker(Arrival)
make_authenticated = maker(Authenticated)
make_admitted = maker(Admitted)
make_classified = maker(Classified)
make_decided = maker(Decided)
make_verdict = maker(Verdict)
make_graded = maker(Graded)
make_filtered = maker(Filtered)
make_ranked = maker(Ranked)
make_plan = maker(Plan)
make_attempt = maker(Attempt)
