"""The words of the policy side: grants, rules, tenants, apps, models, and the policy itself.

Everything here is frozen and belongs to one catalog. `policies.loader` builds it from
files; tests build it directly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from policies.attributes import Declaration, State
from policies.conditions import ALWAYS, Condition
from policies.obligations import AnyObligation
from policies.timed import Timed, always
from regions.atlas import Atlas
from regions.countries import Countries
from regions.document import Mark
from regions.model import Endpoint, Tier
from regions.places import Boundary

if TYPE_CHECKING:
    from policies.statements import Ensure, Statement


@dataclass(frozen=True, slots=True)
class Grant:
    """The only source of places: what a tenant may use, on three axes."""

    process: Timed[Boundary]
    retain: Timed[Boundary]
    operate: Timed[Countries]

    @classmethod
    def within(
        cls,
        process: Timed[Boundary],
        retain: Timed[Boundary] | None = None,
        operate: Timed[Countries] | None = None,
    ) -> Grant:
        """A grant with the defaults: `retain` is `process`, `operate` is any."""
        return cls(process, retain or process, operate or always(Countries.any()))


@dataclass(frozen=True, slots=True)
class Prefer:
    """An ordered list of sets: a later one opens when the earlier ones give nothing.

    An endpoint in none of the sets never opens: end with `worldwide` to let the rest in.
    With `spill` a full set counts as giving nothing. The sets have no `until`: when an
    earlier one lapsed a later one would open, and time only narrows.
    """

    sets: tuple[Boundary, ...]
    spill: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition and what holds when it is not known to be false.

    `condition` is `when` and not `unless`. `dry_run_until` is the time, in seconds since
    the epoch, from which the rule applies; `None` for a rule that applies already.
    `row` is the match table's row a rule was expanded from.
    """

    name: str
    condition: Condition = ALWAYS
    process: Timed[Boundary] | None = None
    retain: Timed[Boundary] | None = None
    operate: Timed[Countries] | None = None
    require: frozenset[str] = frozenset()
    obligations: tuple[AnyObligation, ...] = ()
    prefer: Prefer | None = None
    because: str = ""
    review_by: float | None = None
    dry_run_until: float | None = None
    mark: Mark | None = None
    row: str = ""
    baseline: bool = False

    def is_dry(self, now: float) -> bool:
        """Whether the rule is only tried out at `now`."""
        return self.dry_run_until is not None and now < self.dry_run_until

    @property
    def narrows(self) -> bool:
        """Whether it bounds an axis at all."""
        return any(axis is not None for axis in (self.process, self.retain, self.operate))


@dataclass(frozen=True, slots=True)
class Rate:
    """`amount` per `seconds`."""

    amount: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Limits:
    """A tenant's, an app's or a key's own limits; `None` is without limit. `dollars`: in
    millionths."""

    requests: Rate | None = None
    tokens: Rate | None = None
    concurrency: int | None = None
    dollars: Rate | None = None

    @property
    def any(self) -> bool:
        """Whether anything is limited."""
        rates = self.requests, self.tokens, self.dollars
        return self.concurrency is not None or rates != (None, None, None)


NO_LIMITS: Final = Limits()


class Priority(IntEnum):
    """How urgent a request is: the lower, the sooner it gets room."""

    # An enum's own is a function in Python, and classes stand in keys of every request.
    __hash__ = int.__hash__

    INTERACTIVE = 0
    STANDARD = 1
    BATCH = 2

    @property
    def label(self) -> str:
        """The name in lower case, as configuration, headers and logs write it."""
        return self.name.lower()

    @classmethod
    def named(cls, name: str) -> Priority:
        """The class of this name.

        Raises:
            ValueError: another name; lists them.
        """
        for one in cls:
            if one.label == name:
                return one
        known = ", ".join(one.label for one in cls)
        raise ValueError(f"`{name}` is no class of requests; use one of {known}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose requests these are. Without a grant nothing is allowed.

    `priority`: the most urgent class of its requests; `None` where nothing is said.
    """

    name: str
    grant: Grant | None = None
    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    models: frozenset[str] | None = None
    limits: Limits = Limits()
    weight: int = 1
    mark: Mark | None = None
    shadow: float = 0.0
    priority: Priority | None = None


@dataclass(frozen=True, slots=True)
class App:
    """A caller; for `trusted` attributes its header and body are authoritative.

    `priority`: as a tenant's.
    """

    name: str
    trusted: frozenset[str] = frozenset()
    attributes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    mark: Mark | None = None
    priority: Priority | None = None
    limits: Limits = NO_LIMITS


@dataclass(frozen=True, slots=True)
class Grading:
    """How a model's requests are shared between its tiers; see `policies.files.GradingConfig`.

    `share`: of calls for the highest tier, in [0, 1]; `cascade`: the least mean log probability,
    `None` without a cascade.
    """

    share: float = 0.5
    quality: float = 0.0
    accept_prior: bool = False
    artifact: str | None = None
    explore: float = 0.02
    tolerance: float = 0.05
    judge: str = "exact"
    cascade: float | None = None
    references: str | None = None
    accept_code: bool = False


@dataclass(frozen=True, slots=True)
class Hedge:
    """When a second attempt is made beside one that has no content yet: after seconds, `None` for
    the 95th percentile of its replica; for at most this share of requests."""

    after: float | None
    at_most: float


@dataclass(frozen=True, slots=True)
class Model:
    """The public name an application sends, and its endpoints by tier.

    `first_token`, `answer`, `idle`: seconds, where they are others than the router's `limits`.
    """

    name: str
    tiers: Mapping[Tier, tuple[str, ...]]
    grade: str = "observe"
    mark: Mark | None = None
    grading: Grading = Grading()
    hedge: Hedge | None = None
    first_token: float | None = None
    answer: float | None = None
    idle: float | None = None

    @property
    def substitutable(self) -> bool:
        """Whether a smaller tier may answer: two tiers and `grade: on`."""
        return self.grade == "on" and len(self.tiers) > 1

    @property
    def highest(self) -> Tier:
        """The largest tier it has."""
        return max(self.tiers)


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything decisions depend on, and its digest.

    Attributes:
        atlas: the catalog's places, which every boundary here belongs to.
        digest: SHA-256 (hex) over the canonical content and the catalog's digest.
        declared: attributes by name.
        boundaries: the operator's named ones; `operators` those that speak of countries only.
        rules: in the order they were read, which never matters.
    """

    atlas: Atlas
    digest: str = ""
    declared: Mapping[str, Declaration] = field(default_factory=dict)
    tenants: Mapping[str, Tenant] = field(default_factory=dict)
    apps: Mapping[str, App] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    boundaries: Mapping[str, Timed[Boundary]] = field(default_factory=dict)
    operators: Mapping[str, Timed[Countries]] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    statements: tuple[Statement, ...] = ()
    ensures: tuple[Ensure, ...] = ()

    def trusted(self, app: str | None) -> frozenset[str]:
        """The attributes a calling app is trusted for."""
        known = self.apps.get(app) if app is not None else None
        return known.trusted if known is not None else frozenset()

    def ends(self) -> list[float]:
        """Every moment at which anything here may change, ascending, seconds since the epoch."""
        ends: set[float] = set()
        for tenant in self.tenants.values():
            if tenant.grant is not None:
                grant = tenant.grant
                ends.update(grant.process.ends, grant.retain.ends, grant.operate.ends)
        for rule in self.rules:
            for bound in (rule.process, rule.retain):
                ends.update(bound.ends if bound is not None else ())
            ends.update(rule.operate.ends if rule.operate is not None else ())
            ends.update(() if rule.dry_run_until is None else (rule.dry_run_until,))
        return sorted(ends)

    def candidates(self, model: str) -> tuple[tuple[Tier, Endpoint], ...]:
        """A model's endpoints with their tiers, lowest tier first, in the written order."""
        tiers = sorted(self.models[model].tiers.items())
        return tuple((tier, self.endpoints[name]) for tier, names in tiers for name in names)


def single(value: str | None) -> State:
    """The state of a built-in attribute: exactly this value, or none at all."""
    return State(frozenset() if value is None else frozenset({value}), closed=True)
