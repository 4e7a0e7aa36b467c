"""The fast engine: the same decisions as `policies.engine`, proven equal by generated cases.

Almost every condition is a conjunction of comparisons over different attributes. For these
a rule is a bit, and every attribute value a mask of rules, so that the rules which are TRUE
and those which are not FALSE come out of a few `&` and `|`, however many rules there are:

    not false = ⋂ over attributes a of (rules that don't ask about a
                                        | rules that a's values satisfy
                                        | all that ask, when a is open)

Other conditions go through the same masks as far as they have a necessary conjunction, and
those left over are evaluated as the reference does. What time changes is constant between
two ends, so rules are unfolded once per such stretch of time (`policies.folding`). What is
remembered, up to a bound: the masks of each state of an attribute, and what each set of
applying rules leaves of a tenant's grant.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import inf
from typing import Final

from policies.attributes import BUILT_IN, OPEN, Truth
from policies.conditions import Condition
from policies.engine import Allowed, Ask, Decision, granted
from policies.folding import Folding, kept
from policies.masks import Asked, bits, is_plain, necessary
from policies.model import Grant, Policy, Rule, single
from policies.timed import earliest, sooner
from regions.places import Boundary

REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What holds between two ends: folded rules, rules on trial, and grants by tenant."""

    folding: Folding
    dry: int
    dry_until: float | None
    grants: dict[str, Allowed]
    folded: dict[tuple[str, int], Allowed]


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
            asked.freeze(self._all, remembered)
        self._tables = tuple((n, a) for n, a in self._asked.items() if n not in BUILT_IN)
        self._ends = policy.ends()
        self._stretches: dict[int, _Stretch] = {}
        self._owns: dict[tuple[str, str | None, str], tuple[int, int]] = {}

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
        return _Stretch(
            Folding(rules, now, self.policy.atlas, self._remembered), dry, until, {}, {}
        )

    # -- deciding ----------------------------------------------------------------------

    def decide(self, ask: Ask, now: float) -> Decision:
        """The decision of `policies.engine.decide(policy, ask, now)`."""
        stretch = self._stretch(now)
        possible, unsure = self._masks(ask)
        dry = pending = 0
        if stretch.dry or self._candidate:
            dry = possible & stretch.dry
            pending = possible & self._candidate & unsure & ~dry
        applying = possible ^ (dry | pending)
        common = self._common(ask, applying, unsure, now, stretch)
        good_until = sooner(common.good_until, stretch.dry_until)
        waiting: tuple[Rule, ...] = ()
        if pending:
            waiting = tuple(self.policy.rules[n] for n in bits(pending))
            good_until = sooner(good_until, stretch.folding.good_until(pending))
        denied = "" if self._grant(ask.tenant) is not None else "no_grant"
        names = self._names(dry) if dry else ()
        made = (ask, common, waiting, names, denied, self.policy.digest, now, good_until)
        return tuple.__new__(Decision, made)  # half the cost of `Decision(*made)`

    def outer(self, ask: Ask, now: float) -> Boundary:
        """The bound of `policies.outer.bound_of`; `ask` holds its early attributes."""
        stretch = self._stretch(now)
        possible, unsure = self._masks(ask)
        start = self._granted(ask.tenant, now, stretch).process
        return stretch.folding.processed(start, possible & ~unsure & ~stretch.dry)

    def constant(self, now: float) -> tuple[float, float]:
        """From when to when (exclusive) time changes nothing in the policy, around `now`."""
        number = bisect_right(self._ends, now)
        since = self._ends[number - 1] if number else -inf
        return since, self._ends[number] if number < len(self._ends) else inf

    def _names(self, mask: int) -> tuple[str, ...]:
        return tuple(sorted({self.policy.rules[n].name for n in bits(mask)}))

    def _own(self, ask: Ask) -> tuple[int, int]:
        """`_masks` of whose request it is and what for; the attributes left out."""
        key = (ask.tenant, ask.app, ask.purpose)
        possible, unsure = self._all, 0
        for name, value in zip(("tenant", "app", "purpose"), key, strict=True):
            asked = self._asked.get(name)
            if asked is not None:
                maybe, open_ = asked.masks(single(value))
                possible &= maybe
                unsure |= open_
        room = self._remembered + 4 * len(self.policy.tenants)  # every tenant, and some strangers
        return kept(self._owns, key, (possible, unsure), room)

    def _masks(self, ask: Ask) -> tuple[int, int]:
        """Rules that are not known to be false, and which of them are not known to be true."""
        possible, unsure = self._owns.get((ask.tenant, ask.app, ask.purpose)) or self._own(ask)
        states = ask.attributes.states
        for name, asked in self._tables:
            state = states.get(name, OPEN)
            maybe, open_ = asked.known.get(state) or asked.look(state)
            possible &= maybe
            if open_:
                unsure |= open_
        if self._complex or self._candidate:
            return self._looked_at(possible, unsure | self._candidate, ask)
        return possible, unsure and unsure & possible

    def _looked_at(self, possible: int, unsure: int, ask: Ask) -> tuple[int, int]:
        """The same, after rules whose condition is no plain conjunction are evaluated."""
        left = possible & self._complex
        facts = ask.facts if left else ask.attributes
        for n in bits(left):
            truth = self.policy.rules[n].condition.truth(facts, None)
            bit = 1 << n
            unsure = unsure | bit if truth is Truth.UNKNOWN else unsure & ~bit
            if truth is Truth.FALSE:
                possible &= ~bit
        return possible, unsure & possible

    # -- folding -----------------------------------------------------------------------

    def _grant(self, tenant: str) -> Grant | None:
        known = self.policy.tenants.get(tenant)
        return known.grant if known is not None else None

    def _granted(self, tenant: str, now: float, stretch: _Stretch) -> Allowed:
        known = stretch.grants.get(tenant)
        if known is None:
            grant = self._grant(tenant)
            known = granted(self.policy.atlas, grant, now)
            if grant is not None:  # names of strangers would fill it
                stretch.grants[tenant] = known
        return known

    def _common(
        self, ask: Ask, applying: int, unsure: int, now: float, stretch: _Stretch
    ) -> Allowed:
        """What the applying rules leave; the same rules leave the same, whyever they apply."""
        key = (ask.tenant, applying)
        known = stretch.folded.get(key)
        if known is None:
            known = self._granted(ask.tenant, now, stretch)
            if applying:
                known = stretch.folding.folded(known, applying)
            kept(stretch.folded, key, known, self._remembered)
        unknown = applying & unsure
        if unknown:
            return stretch.folding.explained(known, applying, unknown, ask)
        return known
