"""The fast engine: the same decisions as `policies.engine`, proven equal by generated cases.

Almost every condition is a conjunction of comparisons over different attributes. For these
a rule is a bit, and every attribute value a mask of rules, so that the rules which are TRUE
and those which are not FALSE come out of a few `&` and `|`, however many rules there are:

    not false = ⋂ over attributes a of (rules that don't ask about a
                                        | rules that a's values satisfy
                                        | all that ask, when a is open)

Other conditions go through the same masks as far as they have a necessary conjunction, and
those left over are evaluated as the reference does. What time changes is constant between
two ends, so rules are unfolded once per such stretch of time. Decisions about a combination
of attributes seen before are remembered, up to a bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from policies.attributes import OPEN, Attributes, State, Truth
from policies.conditions import Condition, open_attributes
from policies.engine import (
    Allowed,
    Applied,
    Ask,
    Decision,
    Preference,
    granted,
    rule_good_until,
)
from policies.masks import Asked, bits, is_plain, necessary
from policies.model import Grant, Policy, Rule, single
from policies.obligations import NO_OBLIGATIONS, AnyObligation, Obligations
from policies.timed import earliest, sooner
from regions.countries import Countries
from regions.places import Boundary

REMEMBERED: Final = 4096
_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class _Unfolded:
    """A rule as plain masks, for one stretch of time."""

    process: tuple[int, int] | None
    retain: tuple[int, int] | None
    operate: int
    require: frozenset[str]
    obligations: tuple[AnyObligation, ...]
    prefer: Preference | None
    known: Applied
    good_until: float | None
    demands: bool


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What holds between two ends: unfolded rules, rules on trial, and grants by tenant."""

    rules: tuple[_Unfolded, ...]
    dry: int
    dry_until: float | None
    grants: dict[str, Allowed]
    folded: dict[tuple[str, int], Allowed]
    memory: dict[object, Decision]


class Compiled:
    """Decides like `policies.engine.decide`, in time that hardly grows with the rules.

    Not thread-safe: one per event loop.
    """

    def __init__(self, policy: Policy, remembered: int = REMEMBERED) -> None:
        self.policy = policy
        self._remembered = remembered
        self._asked: dict[str, Asked] = {}
        self._complex = 0
        self._candidate = 0
        for n, rule in enumerate(policy.rules):
            self._index(1 << n, rule.condition)
        self._all = (1 << len(policy.rules)) - 1
        for asked in self._asked.values():
            asked.freeze(self._all)
        self._tables = tuple(self._asked.items())
        self._bounds: dict[tuple[int, int], Boundary] = {}
        self._ends = policy.ends()
        self._stretches: dict[int, _Stretch] = {}
        self._built_in: dict[str | None, State] = {}

    # -- building ----------------------------------------------------------------------

    def _index(self, bit: int, condition: Condition) -> None:
        if condition.needs_candidate:
            self._candidate |= bit
        seen: set[str] = set()
        for name, values, negated in necessary(condition):
            if name in seen:
                self._complex |= bit  # a second comparison of one attribute needs its own look
                continue
            seen.add(name)
            self._asked.setdefault(name, Asked()).add(bit, values, negated)
        if not is_plain(condition):
            self._complex |= bit

    def _stretch(self, now: float) -> _Stretch:
        number = bisect_right(self._ends, now)
        known = self._stretches.get(number)
        if known is None:
            if len(self._stretches) >= 4:  # time moves on; a few are in use at once
                self._stretches.clear()
            known = self._stretches[number] = self._unfold(now)
        return known

    def _unfold(self, now: float) -> _Stretch:
        rules = self.policy.rules
        dry = sum(1 << n for n, rule in enumerate(rules) if rule.is_dry(now))
        until = earliest(rule.dry_run_until for rule in rules if rule.is_dry(now))
        return _Stretch(tuple(_unfolded(rule, now) for rule in rules), dry, until, {}, {}, {})

    # -- deciding ----------------------------------------------------------------------

    def decide(self, ask: Ask, now: float) -> Decision:
        """The decision of `policies.engine.decide(policy, ask, now)`."""
        stretch = self._stretch(now)
        states = ask.attributes.states
        key = (ask.tenant, ask.app, ask.purpose, *states, *states.values())
        known = stretch.memory.get(key)
        if known is None:
            known = self._decide(ask, now, stretch)
            if len(stretch.memory) >= self._remembered:
                stretch.memory.clear()
            stretch.memory[key] = known
        if known.ask is ask and known.now == now:
            return known
        facts = Attributes(known.facts.states, ask.attributes.origins)
        return Decision(
            ask,
            facts,
            known.common,
            known.pending,
            known.dry_run,
            known.denied,
            known.policy_digest,
            now,
            known.good_until,
        )

    def outer(self, ask: Ask, now: float) -> Boundary:
        """The bound of `policies.outer.outer_bound`; `ask` holds its early attributes."""
        stretch = self._stretch(now)
        facts = self._facts(ask)
        _, certain = self._masks(facts.states)
        start = self._granted(ask.tenant, self._grant(ask.tenant), now, stretch).process
        sure, possible = start.sure, start.possible
        for n in bits(certain & ~stretch.dry):
            process = stretch.rules[n].process
            if process is not None:
                sure &= process[0]
                possible &= process[1]
        return self._bound(sure, possible)

    def constant(self, now: float) -> tuple[float, float]:
        """From when to when (exclusive) time changes nothing in the policy, around `now`."""
        number = bisect_right(self._ends, now)
        since = self._ends[number - 1] if number else -inf
        return since, self._ends[number] if number < len(self._ends) else inf

    def _decide(self, ask: Ask, now: float, stretch: _Stretch) -> Decision:
        facts = self._facts(ask)
        possible, certain = self._masks(facts.states)
        dry = possible & stretch.dry
        pending = possible & self._candidate & ~certain & ~dry
        grant = self._grant(ask.tenant)
        start = self._granted(ask.tenant, grant, now, stretch)
        applying = possible & ~dry & ~pending
        common = self._common(ask.tenant, start, applying, certain, facts, stretch)
        good_until = sooner(common.good_until, stretch.dry_until)
        waiting: tuple[Rule, ...] = ()
        if pending:
            waiting = tuple(self.policy.rules[n] for n in bits(pending))
            untils = [stretch.rules[n].good_until for n in bits(pending)]
            good_until = earliest([good_until, *untils])
        return Decision(
            ask,
            facts,
            common,
            waiting,
            self._names(dry) if dry else (),
            "" if grant is not None else "no_grant",
            self.policy.digest,
            now,
            good_until,
        )

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(sorted({self.policy.rules[n].name for n in bits(mask)}))

    def _facts(self, ask: Ask) -> Attributes:
        known = self._built_in
        states = dict(ask.attributes.states)
        try:
            states["tenant"] = known[ask.tenant]
            states["app"] = known[ask.app]
            states["purpose"] = known[ask.purpose]
        except KeyError:
            if len(known) > self._remembered:
                known.clear()
            for value in (ask.tenant, ask.app, ask.purpose):
                known[value] = single(value)
            return self._facts(ask)
        return Attributes(states, ask.attributes.origins)

    def _masks(self, states: Mapping[str, State]) -> tuple[int, int]:
        """Rules that are not known to be false, and those known to be true."""
        possible = certain = self._all
        for name, asked in self._tables:
            state = states.get(name, OPEN)
            if state.closed and not asked.negative:
                here, hits = asked.others, asked.hits
                for value in state.values:
                    if value in hits:
                        here |= hits[value]
                possible &= here
                certain &= here
            else:
                maybe, surely = asked.masks(state)
                possible &= maybe
                certain &= surely
        if not self._complex and not self._candidate:
            return possible, certain
        return self._looked_at(possible, certain, states)

    def _looked_at(
        self, possible: int, certain: int, states: Mapping[str, State]
    ) -> tuple[int, int]:
        """The same, after rules whose condition is no plain conjunction are evaluated."""
        certain &= ~self._candidate
        left = possible & self._complex
        if left:
            facts = Attributes(states)
            for n in bits(left):
                truth = self.policy.rules[n].condition.truth(facts, None)
                bit = 1 << n
                certain = certain | bit if truth is Truth.TRUE else certain & ~bit
                if truth is Truth.FALSE:
                    possible &= ~bit
        return possible, certain

    # -- folding -----------------------------------------------------------------------

    def _grant(self, tenant: str) -> Grant | None:
        known = self.policy.tenants.get(tenant)
        return known.grant if known is not None else None

    def _granted(self, tenant: str, grant: Grant | None, now: float, stretch: _Stretch) -> Allowed:
        known = stretch.grants.get(tenant)
        if known is None:
            known = granted(self.policy.atlas, grant, now)
            if grant is not None:  # names of strangers would fill it
                stretch.grants[tenant] = known
        return known

    def _common(
        self,
        tenant: str,
        start: Allowed,
        applying: int,
        certain: int,
        facts: Attributes,
        stretch: _Stretch,
    ) -> Allowed:
        """What the applying rules leave; the same rules, all certain, leave the same."""
        if not applying:
            return start
        if applying & ~certain:
            return self._fold(start, applying, certain, facts, stretch)
        key = (tenant, applying)
        known = stretch.folded.get(key)
        if known is None:
            known = self._fold(start, applying, certain, facts, stretch)
            if len(stretch.folded) >= self._remembered:
                stretch.folded.clear()
            stretch.folded[key] = known
        return known

    def _fold(
        self, start: Allowed, applying: int, certain: int, facts: Attributes, stretch: _Stretch
    ) -> Allowed:
        process, process_may = start.process.sure, start.process.possible
        retain, retain_may = start.retain.sure, start.retain.possible
        chosen: list[_Unfolded] = []
        reasons: list[Applied] = []
        demanding: list[_Unfolded] = []
        left = applying
        while left:
            low = left & -left
            left ^= low
            rule = stretch.rules[low.bit_length() - 1]
            chosen.append(rule)
            reasons.append(rule.known)
            if rule.process is not None:
                process &= rule.process[0]
                process_may &= rule.process[1]
            if rule.retain is not None:
                retain &= rule.retain[0]
                retain_may &= rule.retain[1]
            if rule.demands:
                demanding.append(rule)
        unknown = applying & ~certain
        applied = self._reasons(chosen, applying, unknown, facts) if unknown else frozenset(reasons)
        within = self._bound(process, process_may)
        if retain == process and retain_may == process_may:
            kept = within
        else:
            kept = self._bound(retain, retain_may)
        if not demanding:
            return Allowed(
                within, kept, start.operate, applied=applied, good_until=start.good_until
            )
        return Allowed(
            within,
            kept,
            Countries(_met(start.operate.mask, demanding)),
            _NOTHING.union(*(rule.require for rule in demanding)),
            _obligations(demanding),
            frozenset(rule.prefer for rule in demanding if rule.prefer is not None),
            applied,
            earliest([start.good_until, *(rule.good_until for rule in demanding)]),
        )

    def _bound(self, sure: int, possible: int) -> Boundary:
        key = (sure, possible)
        known = self._bounds.get(key)
        if known is None:
            if len(self._bounds) >= self._remembered:
                self._bounds.clear()
            known = self._bounds[key] = Boundary(self.policy.atlas, sure, possible)
        return known

    def _reasons(
        self, chosen: list[_Unfolded], applying: int, unknown: int, facts: Attributes
    ) -> frozenset[Applied]:
        numbered = zip(chosen, bits(applying), strict=True)
        found = {rule.known for rule, n in numbered if not unknown >> n & 1}
        for n in bits(unknown):
            rule = self.policy.rules[n]
            silent = tuple(sorted(open_attributes(rule.condition, facts)))
            found.add(Applied(rule.name, rule.row, rule.because, silent))
        return frozenset(found)


def _unfolded(rule: Rule, now: float) -> _Unfolded:
    process = rule.process.at(now) if rule.process is not None else None
    retain = rule.retain.at(now) if rule.retain is not None else None
    prefer = rule.prefer
    operate = rule.operate.at(now) if rule.operate is not None else Countries.any()
    good_until = rule_good_until(rule, now)
    return _Unfolded(
        (process.sure, process.possible) if process is not None else None,
        (retain.sure, retain.possible) if retain is not None else None,
        operate.mask,
        rule.require,
        rule.obligations,
        Preference(rule.name, prefer.sets, prefer.spill) if prefer is not None else None,
        Applied(rule.name, rule.row, rule.because),
        good_until,
        demands=bool(
            rule.operate is not None
            or rule.require
            or rule.obligations
            or prefer is not None
            or good_until is not None
        ),
    )


def _met(operate: int, demanding: list[_Unfolded]) -> int:
    for rule in demanding:
        operate &= rule.operate
    return operate


def _obligations(chosen: list[_Unfolded]) -> Obligations:
    result = NO_OBLIGATIONS
    for rule in chosen:
        for obligation in rule.obligations:
            result = result.add(obligation)
    return result
