"""Who reaches what at one time: the effects of rules, and what they leave of each spot.

On each axis an endpoint is eligible exactly when the grant contains it and no rule that
applies excludes it, so only the rules' distinct effects matter, not how many rules have them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from policies.conditions import Candidate
from policies.model import Policy, Rule
from policies.obligations import AnyObligation, NoBatch, TierRange, meet
from policies.proving.requests import Requests
from policies.proving.spots import Spot, excluded
from policies.proving.truths import Truths
from regions.model import Tier


class Effect(NamedTuple):
    """What a rule does: a bound on an axis (`mask`), an assurance, or an obligation."""

    kind: str
    mask: int = 0
    name: str = ""
    obligation: AnyObligation | None = None


def effects_of(rule: Rule, now: float) -> Iterator[Effect]:
    """Everything a rule does at `now` that can exclude an endpoint."""
    if rule.process is not None:
        yield Effect("process", rule.process.at(now).sure)
    if rule.retain is not None:
        yield Effect("retain", rule.retain.at(now).sure)
    if rule.operate is not None:
        yield Effect("operate", rule.operate.at(now).mask)
    for name in sorted(rule.require):
        yield Effect("require", name=name)
    for one in rule.obligations:
        yield Effect("obligation", obligation=one)


class Judging:
    """What statements about one policy are judged with, at one time."""

    def __init__(
        self, requests: Requests, truths: Truths, reach: Reach, spots: Sequence[Spot]
    ) -> None:
        self._requests = requests
        self._truths = truths
        self._reach = reach
        self._spots = spots


class Reach:
    """Which requests reach which spot of one policy at one time.

    Args:
        trials: whether rules on trial count as applying: for `ensure`, not for `assert`.
    """

    def __init__(
        self, requests: Requests, truths: Truths, policy: Policy, now: float, trials: bool
    ) -> None:
        self._requests = requests
        self._truths = truths
        self._logic = requests.logic
        self.policy = policy
        self.now = now
        self._rules: dict[Effect, list[Rule]] = {}
        for rule in policy.rules:
            if trials or not rule.is_dry(now):
                for effect in effects_of(rule, now):
                    self._rules.setdefault(effect, []).append(rule)
        self._asking = frozenset(
            effect
            for effect, rules in self._rules.items()
            if any(rule.condition.needs_candidate for rule in rules)
        )
        self._grants = self._granted()
        self.demands = [e for e in self._rules if e.kind in ("require", "obligation")]
        self._lits: dict[Hashable, int] = {}
        self._reached: dict[Spot, int] = {}

    # -- effects -----------------------------------------------------------------------

    def applies(self, effect: Effect, candidate: Candidate | None) -> int:
        """Whether some rule with this effect applies: to the candidate, or (`None`) to all."""
        key: Hashable = effect
        if effect in self._asking:
            # A condition asks no more of a candidate than these.
            told = (candidate.model, candidate.provider, candidate.tier) if candidate else None
            key = (effect, told)
        known = self._lits.get(key)
        if known is None:
            parts = [self._applies(rule, candidate) for rule in self._rules.get(effect, ())]
            known = self._lits[key] = self._logic.any_of(parts)
        return known

    def _applies(self, rule: Rule, candidate: Candidate | None) -> int:
        if candidate is None and rule.condition.needs_candidate:
            return self._truths.truth(rule.condition, None)[0]
        return self._truths.maybe(rule.condition, candidate)

    def _granted(self) -> dict[tuple[int, int, int], int]:
        """What grants give now → whether the asking tenant has that."""
        found: dict[tuple[int, int, int], list[int]] = {}
        for name, literal in self._requests.tenants.items():
            tenant = self.policy.tenants.get(name)
            grant = tenant.grant if tenant is not None else None
            masks = (0, 0, 0)
            if grant is not None:
                places = (grant.process.at(self.now).sure, grant.retain.at(self.now).sure)
                masks = (*places, grant.operate.at(self.now).mask)
            found.setdefault(masks, []).append(literal)
        return {masks: self._logic.any_of(literals) for masks, literals in found.items()}

    @property
    def bounds(self) -> frozenset[tuple[str, int]]:
        """Every distinct bound of rules and grants: axis and mask."""
        of_rules = {
            (e.kind, e.mask) for e in self._rules if e.kind in ("process", "retain", "operate")
        }
        axes = ("process", "retain", "operate")
        of_grants = {pair for masks in self._grants for pair in zip(axes, masks, strict=True)}
        return frozenset(of_rules | of_grants)

    def contains(self, axis: str, bit: int, candidate: Candidate | None = None) -> int:
        """Whether the atom of this bit is allowed on the axis: granted, and excluded by no rule."""
        number = ("process", "retain", "operate").index(axis)
        blocked = [lit for masks, lit in self._grants.items() if not masks[number] & bit]
        blocked += [
            self.applies(effect, candidate)
            for effect in self._rules
            if effect.kind == axis and not effect.mask & bit
        ]
        return -self._logic.any_of(blocked)

    # -- spots -------------------------------------------------------------------------

    def reaches(self, spot: Spot) -> int:
        """Whether the spot is eligible: `policies.eligibility.judge`, for every request."""
        known = self._reached.get(spot)
        if known is None:
            known = self._reached[spot] = -self._logic.any_of(self._blocked(spot))
        return known

    def _blocked(self, spot: Spot) -> Iterator[int]:
        kept, run_by = spot.footprint.retain.mask, spot.footprint.operate.mask
        for (process, retain, operate), literal in self._grants.items():
            if spot.process & ~process or kept & ~retain or run_by & ~operate:
                yield literal
        outside = {"process": spot.process, "retain": kept, "operate": run_by}
        for effect in self._rules:
            mask = outside.get(effect.kind, 0)
            if mask & ~effect.mask:
                yield self.applies(effect, spot.candidate)
        for effect in self.demands:
            yield from self._demanded(effect, spot)
        yield from self._conflicts(spot.candidate)

    def _demanded(self, effect: Effect, spot: Spot) -> Iterator[int]:
        if isinstance(effect.obligation, NoBatch):
            batch = self._requests.purposes["batch"]
            yield self._logic.all_of((self.applies(effect, spot.candidate), batch))
        required = frozenset({effect.name} if effect.kind == "require" else ())
        if excluded(spot, self.now, effect.obligation, required):
            yield self.applies(effect, spot.candidate)

    def _conflicts(self, candidate: Candidate) -> Iterator[int]:
        """Two obligations of one kind that nothing satisfies; more than two conflict in pairs."""
        for one, other in combinations(self.demands, 2):
            if one.obligation is None or other.obligation is None:
                continue
            same = one.obligation.kind == other.obligation.kind
            if same and meet(one.obligation, other.obligation) is None:
                parts = (self.applies(one, candidate), self.applies(other, candidate))
                yield self._logic.all_of(parts)

    # -- models and tiers --------------------------------------------------------------

    def may_ask(self, models: frozenset[str]) -> int:
        """Whether the asking tenant may use one of these models."""
        known = self._lits.get(("models", models))
        if known is None:
            tenants = self._requests.tenants.items()
            parts = [lit for name, lit in tenants if self._uses(name, models)]
            known = self._lits["models", models] = self._logic.any_of(parts)
        return known

    def _uses(self, tenant: str, models: frozenset[str]) -> bool:
        known = self.policy.tenants.get(tenant)
        return known is not None and (known.models is None or not known.models.isdisjoint(models))

    def below_floor(self, tier: Tier, highest: Tier) -> int:
        """Whether a tier stays unused when nothing grades the request: `router.grade.floor`.

        Then the model's highest tier serves, or the highest that a ceiling allows.
        """
        if tier >= highest:
            return self._logic.false
        ceilings = [
            self.applies(effect, None)
            for effect in self.demands
            if isinstance(effect.obligation, TierRange) and effect.obligation.ceiling <= tier
        ]
        return -self._logic.any_of(ceilings)
