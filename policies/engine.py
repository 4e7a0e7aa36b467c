"""The readable reference of a decision. No I/O, no clock: equal asks have equal answers.

On each axis `allowed(c) = grant ∩ (the boundary of every rule whose condition is not
known to be false for candidate c)`:

| condition for c | rule applies | why                                             |
|-----------------|--------------|-------------------------------------------------|
| TRUE            | yes          |                                                 |
| UNKNOWN         | yes          | not knowing is never better than knowing        |
| FALSE           | no           |                                                 |
| (still dry run) | no, named    | a rule on trial is only said to have applied    |
| (no grant)      | nothing      | the grant is the only source of places          |

A rule only ever narrows: its sets are intersected, its assurances and obligations added.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from policies.attributes import Attributes, Truth
from policies.conditions import Candidate, open_attributes
from policies.model import Grant, Policy, Prefer, Rule, single
from policies.obligations import NO_OBLIGATIONS, Obligations
from policies.timed import Timed, earliest
from regions.atlas import Atlas
from regions.countries import Countries
from regions.places import Boundary


@dataclass(frozen=True, slots=True)
class Ask:
    """What is decided about: whose request, what is known of it, and what it is for.

    `purpose` is `interactive`, `batch`, `shadow` or `probe`. The ask does not name a
    model: what a decision allows is a function of the candidate.
    """

    tenant: str
    app: str | None = None
    attributes: Attributes = field(default_factory=Attributes)
    purpose: str = "interactive"

    @property
    def facts(self) -> Attributes:
        """The attributes, with the built-in ones: `tenant`, `app`, `purpose`."""
        built_in = {
            "tenant": single(self.tenant),
            "app": single(self.app),
            "purpose": single(self.purpose),
        }
        return Attributes({**self.attributes.states, **built_in}, self.attributes.origins)


class Applied(NamedTuple):
    """A rule that applied: its name and row, why it exists, and what was not known.

    `unknown` names the attributes whose silence made it apply; empty when it was known.
    """

    rule: str
    row: str = ""
    because: str = ""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preference:
    """What a rule that applied prefers: `policies.model.Prefer` with the rule's name."""

    rule: str
    sets: tuple[Boundary, ...]
    spill: bool = False


class Allowed(NamedTuple):
    """The sets on three axes, and everything else rules ask for. Only ever narrowed.

    Built for every request, like `Decision`: a named tuple is as immutable as a frozen
    dataclass and made in a fifth of the time.
    """

    process: Boundary
    retain: Boundary
    operate: Countries
    require: frozenset[str] = frozenset()
    obligations: Obligations = NO_OBLIGATIONS
    prefer: frozenset[Preference] = frozenset()
    applied: AbstractSet[Applied] = frozenset()
    good_until: float | None = None

    @property
    def conflict(self) -> frozenset[str]:
        """Obligation kinds that nothing satisfies: the request is refused."""
        return self.obligations.conflicts

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that applied, sorted."""
        return tuple(sorted({one.rule for one in self.applied}))


class Decision(NamedTuple):
    """What is allowed, why, and until when.

    Attributes:
        common: what holds for every candidate.
        pending: rules that also ask about the candidate and may still apply.
        dry_run: names of rules on trial that would have applied.
        denied: `no_grant` when nothing is granted, else empty.
        now: the time it was made at; `UNKNOWN_TIME` when it could not be trusted.
        good_until: the earliest `until` that `common` or any pending rule relies on.
    """

    ask: Ask
    common: Allowed
    pending: tuple[Rule, ...]
    dry_run: tuple[str, ...]
    denied: str
    policy_digest: str
    now: float
    good_until: float | None

    @property
    def facts(self) -> Attributes:
        """Everything known of the request, made anew at each call."""
        return self.ask.facts

    def allowed(self, candidate: Candidate) -> Allowed:
        """What holds for this candidate: a pure function of it."""
        result = self.common
        if not self.pending:
            return result
        facts = self.facts
        for rule in self.pending:
            truth = rule.condition.truth(facts, candidate)
            if truth is not Truth.FALSE:
                result = narrowed(result, rule, facts, truth, self.now)
        return result

    def settled(self, candidate: Candidate) -> Decision:
        """The same decision about this candidate alone: nothing is pending any more."""
        return self._replace(common=self.allowed(candidate), pending=()) if self.pending else self

    @property
    def applied(self) -> tuple[Applied, ...]:
        """The rules that applied to every candidate, with reasons, sorted."""
        return tuple(sorted(self.common.applied))

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The attributes whose silence made a rule apply, sorted."""
        common = {name for one in self.common.applied for name in one.unknown}
        facts = self.facts if self.pending else Attributes()
        later = {n for rule in self.pending for n in open_attributes(rule.condition, facts)}
        return tuple(sorted(common | later))

    def is_good(self, at: float) -> bool:
        """Whether an attempt at this time may still rely on the decision (law 8)."""
        return self.good_until is None or at < self.good_until


def decide(policy: Policy, ask: Ask, now: float) -> Decision:
    """Decide about a request.

    Args:
        policy: every rule, grant and declaration, of one catalog.
        ask: the request, as far as policy may know it.
        now: seconds since the epoch (`policies.timed.effective_now`).
    """
    facts = ask.facts
    tenant = policy.tenants.get(ask.tenant)
    grant = tenant.grant if tenant is not None else None
    common = granted(policy.atlas, grant, now)
    pending: list[Rule] = []
    dry: set[str] = set()
    for rule, truth in _not_false(policy.rules, facts):
        if rule.is_dry(now):
            dry.add(rule.name)
        elif truth is Truth.UNKNOWN and rule.condition.needs_candidate:
            pending.append(rule)
        else:
            common = narrowed(common, rule, facts, truth, now)
    untils = [common.good_until, *(rule_good_until(rule, now) for rule in pending)]
    untils += [rule.dry_run_until for rule in policy.rules if rule.is_dry(now)]
    denied = "no_grant" if grant is None else ""
    return Decision(
        ask,
        common,
        tuple(pending),
        tuple(sorted(dry)),
        denied,
        policy.digest,
        now,
        earliest(untils),
    )


def granted(atlas: Atlas, grant: Grant | None, now: float) -> Allowed:
    """What a grant gives at `now`; without one nothing, on every axis."""
    if grant is None:
        return Allowed(atlas.nowhere(), atlas.nowhere(), Countries(0))
    axes = (grant.process, grant.retain, grant.operate)
    return Allowed(
        grant.process.at(now),
        grant.retain.at(now),
        grant.operate.at(now),
        good_until=earliest(axis.good_until(now) for axis in axes),
    )


def narrowed(allowed: Allowed, rule: Rule, facts: Attributes, truth: Truth, now: float) -> Allowed:
    """What is left of `allowed` when the rule applies as well."""
    obligations = allowed.obligations
    for obligation in rule.obligations:
        obligations = obligations.add(obligation)
    return Allowed(
        _within(allowed.process, rule.process, now),
        _within(allowed.retain, rule.retain, now),
        allowed.operate if rule.operate is None else allowed.operate & rule.operate.at(now),
        allowed.require | rule.require,
        obligations,
        allowed.prefer | _preference(rule, rule.prefer),
        allowed.applied | {_applied(rule, facts, truth)},
        earliest((allowed.good_until, rule_good_until(rule, now))),
    )


def rule_good_until(rule: Rule, now: float) -> float | None:
    """The earliest end among everything in the rule that time may narrow."""
    axes = (rule.process, rule.retain, rule.operate)
    return earliest(axis.good_until(now) for axis in axes if axis is not None)


def _not_false(rules: tuple[Rule, ...], facts: Attributes) -> Iterator[tuple[Rule, Truth]]:
    for rule in rules:
        truth = rule.condition.truth(facts, None)
        if truth is not Truth.FALSE:
            yield rule, truth


def _within(allowed: Boundary, bound: Timed[Boundary] | None, now: float) -> Boundary:
    return allowed if bound is None else allowed & bound.at(now)


def _preference(rule: Rule, prefer: Prefer | None) -> frozenset[Preference]:
    if prefer is None:
        return frozenset()
    return frozenset({Preference(rule.name, prefer.sets, prefer.spill)})


def _applied(rule: Rule, facts: Attributes, truth: Truth) -> Applied:
    silent = open_attributes(rule.condition, facts) if truth is Truth.UNKNOWN else frozenset()
    return Applied(rule.name, rule.row, rule.because, tuple(sorted(silent)))
