"""What a check finds: a code, how bad it is, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property

from policies.attributes import Attributes, Supplied, gather
from policies.compiled import Compiled
from policies.conditions import ALWAYS, Candidate
from policies.eligibility import Eligible, Excluded, Reason, judge
from policies.engine import Ask, Decision, decide
from policies.model import Model, Policy, Tenant
from regions.catalog import Catalog
from regions.document import Mark
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint, Footprint, Tier

DAY = 86_400.0


class Severity(IntEnum):
    """An error stops a deployment, a warning should be looked at, a note only tells."""

    ERROR = 0
    WARNING = 1
    NOTE = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `code` is stable; `mark` is where to change something."""

    severity: Severity
    code: str
    message: str
    mark: Mark | None = None

    def __str__(self) -> str:
        return self._told(f"{self.severity.name.lower()}: ")

    @property
    def problem(self) -> str:
        """The same for a list of errors, where nothing has to say that it is one."""
        return self._told("")

    def _told(self, severity: str) -> str:
        at = f"{self.mark}: " if self.mark else ""
        return f"{at}{severity}{self.message} ({self.code})"


@dataclass(frozen=True)
class Scene:
    """What a check looks at: a policy with its catalog, at one time.

    Attributes:
        now: seconds since the epoch.
        soon: seconds within which something that ends is warned about.
        stores: what the router writes to (`log`, `state`, …) → the region it lies in.
        paying: tenants with a key that has a budget in dollars.
    """

    policy: Policy
    catalog: Catalog
    now: float
    soon: float = 30 * DAY
    stores: Mapping[str, str] = field(default_factory=dict)
    paying: frozenset[str] = frozenset()

    @cached_property
    def footprints(self) -> Mapping[str, Footprint]:
        """Every endpoint's footprint of a plain call."""
        return {
            name: footprint(endpoint, PLAIN_CALL, self.catalog, self.now)
            for name, endpoint in self.policy.endpoints.items()
        }

    @cached_property
    def silent(self) -> Mapping[str, Decision]:
        """Per tenant, the decision about a request that says nothing."""
        engine = Compiled(self.policy)
        return {
            name: engine.decide(Ask(name, None, self.attributes(tenant)), self.now)
            for name, tenant in self.policy.tenants.items()
        }

    @cached_property
    def _anywhere(self) -> str:
        """A region for the router: where it is, is another question than a check's."""
        return self.catalog.atlas.regions[0].id

    @cached_property
    def _settled(self) -> dict[tuple[int, str, str, Tier], tuple[Decision, Decision]]:
        return {}

    @cached_property
    def _served(self) -> dict[tuple[str, str], tuple[str, ...]]:
        return {}

    @cached_property
    def loosest(self) -> Mapping[str, Decision]:
        """Per tenant, what no request can exceed: the grant and the unconditional rules."""
        always = tuple(rule for rule in self.policy.rules if rule.condition == ALWAYS)
        bare = replace(self.policy, rules=always)
        return {name: decide(bare, Ask(name), self.now) for name in self.policy.tenants}

    def attributes(self, tenant: Tenant) -> Attributes:
        """What is known of a request of this tenant that says nothing."""
        carried = [Supplied(n, tuple(v), "tenant") for n, v in tenant.attributes.items()]
        return gather(self.policy.declared, carried)

    def models(self, tenant: Tenant) -> tuple[Model, ...]:
        """The models a tenant may ask for."""
        known = self.policy.models
        names = known if tenant.models is None else [m for m in known if m in tenant.models]
        return tuple(known[name] for name in names)

    def verdict(self, decision: Decision, tier: Tier, endpoint: Endpoint) -> Eligible | Excluded:
        """Whether an endpoint may serve a plain call, wherever the router is."""
        return self.judged(decision, tier, endpoint, self.footprints[endpoint.name])

    def judged(
        self, decision: Decision, tier: Tier, endpoint: Endpoint, where: Footprint
    ) -> Eligible | Excluded:
        """The same of any endpoint with its footprint."""
        candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
        # Many endpoints are alike to rules: what is pending is looked at once for all of them.
        key = (id(decision), candidate.model, candidate.provider, tier)
        kept = self._settled.get(key)
        if kept is None or kept[0] is not decision:
            kept = self._settled[key] = (decision, decision.settled(candidate))
        found = judge(kept[1], candidate, endpoint, where, self._anywhere, self.now)
        if isinstance(found, Eligible):
            return found
        reasons = tuple(r for r in found.reasons if r.code != "router_outside")
        if reasons:
            return Excluded(candidate, reasons)
        return Eligible(candidate, decision.allowed(candidate), None)

    def served(self, tenant: str, model: Model) -> tuple[str, ...]:
        """The endpoints of a model that may serve a plain, silent request of a tenant."""
        known = self._served.get((tenant, model.name))
        if known is None:
            decision = self.silent[tenant]
            known = self._served[tenant, model.name] = tuple(
                endpoint.name
                for tier, endpoint in self.policy.candidates(model.name)
                if not self.reasons(decision, tier, endpoint)
            )
        return known

    def reasons(self, decision: Decision, tier: Tier, endpoint: Endpoint) -> tuple[Reason, ...]:
        """Why an endpoint may not serve; empty when it may."""
        found = self.verdict(decision, tier, endpoint)
        return found.reasons if isinstance(found, Excluded) else ()
