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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.attributes import Attributes, State, Truth
from policies.conditions import AllOf, CandidateIs, Condition, Is, Not, open_attributes
from policies.engine import (
    Allowed,
    Applied,
    Ask,
    Decision,
    Preference,
    granted,
    rule_good_until,
)
from policies.model import Grant, Policy, Rule, single
from policies.obligations import AnyObligation, Obligations
from policies.timed import earliest
from regions.countries import Countries
from regions.places import Boundary

REMEMBERED: Final = 4096
_NOTHING: Final[frozenset[str]] = frozenset()


@dataclass(slots=True)
class _Asked:
    """What rules ask of one attribute, as masks of rules.

    `hits[v]`: rules that value `v` satisfies; `bars[v]`: rules that it makes false;
    `positive` and `negative`: all rules that ask for a value, or for its absence.
    """

    hits: dict[str, int] = field(default_factory=dict)
    bars: dict[str, int] = field(default_factory=dict)
    positive: int = 0
    negative: int = 0

    def add(self, bit: int, values: Iterable[str], negated: bool) -> None:
        table = self.bars if negated else self.hits
        for value in values:
            table[value] = table.get(value, 0) | bit
        if negated:
            self.negative |= bit
        else:
            self.positive |= bit


@dataclass(frozen=True, slots=True)
class _Unfolded:
    """A rule as plain masks, for one stretch of time."""

    process: tuple[int, int] | None
    retain: tuple[int, int] | None
    operate: int | None
    require: frozenset[str]
    obligations: tuple[AnyObligation, ...]
    prefer: Preference | None
    known: Applied
    good_until: float | None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What holds between two ends: unfolded rules, rules on trial, and grants by tenant."""

    rules: tuple[_Unfolded, ...]
    dry: int
    dry_until: float | None
    grants: dict[str, Allowed]
    memory: dict[object, Decision]


class Compiled:
    """Decides like `policies.engine.decide`, in time that hardly grows with the rules.

    Not thread-safe: one per event loop.
    """

    def __init__(self, policy: Policy, remembered: int = REMEMBERED) -> None:
        self.policy = policy
        self._remembered = remembered
        self._asked: dict[str, _Asked] = {}
        self._complex = 0
        self._candidate = 0
        for n, rule in enumerate(policy.rules):
            self._index(1 << n, rule.condition)
        self._tables: tuple[tuple[str, _Asked, int], ...] = self._freeze()
        self._all = (1 << len(policy.rules)) - 1
        self._ends = _ends(policy)
        self._stretches: dict[int, _Stretch] = {}
        self._built_in: dict[str | None, State] = {}

    # -- building ----------------------------------------------------------------------

    def _index(self, bit: int, condition: Condition) -> None:
        if condition.needs_candidate:
            self._candidate |= bit
        seen: set[str] = set()
        for name, values, negated in _necessary(condition):
            if name in seen:
                self._complex |= bit  # a second comparison of one attribute needs its own look
                continue
            seen.add(name)
            self._asked.setdefault(name, _Asked()).add(bit, values, negated)
        if not _is_plain(condition):
            self._complex |= bit

    def _freeze(self) -> tuple[tuple[str, _Asked, int], ...]:
        everything = (1 << len(self.policy.rules)) - 1
        return tuple(
            (name, asked, everything & ~(asked.positive | asked.negative))
            for name, asked in self._asked.items()
        )

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
        return _Stretch(tuple(_unfolded(rule, now) for rule in rules), dry, until, {}, {})

    # -- deciding ----------------------------------------------------------------------

    def decide(self, ask: Ask, now: float) -> Decision:
        """The decision of `policies.engine.decide(policy, ask, now)`."""
        stretch = self._stretch(now)
        key = (ask.tenant, ask.app, ask.purpose, *ask.attributes.states.values())
        known = stretch.memory.get(key)
        if known is None or known.ask.attributes.states.keys() != ask.attributes.states.keys():
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

    def _decide(self, ask: Ask, now: float, stretch: _Stretch) -> Decision:
        facts = self._facts(ask)
        possible, certain = self._masks(facts.states)
        dry = possible & stretch.dry
        pending = possible & self._candidate & ~certain & ~dry
        grant = self._grant(ask.tenant)
        common = self._fold(
            self._granted(ask.tenant, grant, now, stretch),
            possible & ~dry & ~pending,
            certain,
            facts,
            stretch,
        )
        rules = self.policy.rules
        untils = [common.good_until, stretch.dry_until]
        untils += [stretch.rules[n].good_until for n in _bits(pending)]
        return Decision(
            ask,
            facts,
            common,
            tuple(rules[n] for n in _bits(pending)),
            tuple(sorted({rules[n].name for n in _bits(dry)})) if dry else (),
            "no_grant" if grant is None else "",
            self.policy.digest,
            now,
            earliest(untils),
        )

    def _facts(self, ask: Ask) -> Attributes:
        known = self._built_in
        for value in (ask.tenant, ask.app, ask.purpose):
            if value not in known:
                if len(known) > self._remembered:
                    known.clear()
                known[value] = single(value)
        states = dict(ask.attributes.states)
        states["tenant"] = known.get(ask.tenant) or single(ask.tenant)
        states["app"] = known.get(ask.app) or single(ask.app)
        states["purpose"] = known.get(ask.purpose) or single(ask.purpose)
        return Attributes(states, ask.attributes.origins)

    def _masks(self, states: Mapping[str, State]) -> tuple[int, int]:
        """Rules that are not known to be false, and those known to be true."""
        possible = certain = self._all
        for name, asked, others in self._tables:
            state = states.get(name)
            if state is None:
                state = State()
            hit = barred = 0
            for value in state.values:
                hit |= asked.hits.get(value, 0)
                if asked.bars:
                    barred |= asked.bars.get(value, 0)
            absent = asked.negative & ~barred
            if state.closed:
                possible &= others | hit | absent
                certain &= others | hit | absent
            else:
                possible &= others | asked.positive | absent
                certain &= others | hit
        return self._looked_at(possible, certain, states)

    def _looked_at(
        self, possible: int, certain: int, states: Mapping[str, State]
    ) -> tuple[int, int]:
        """The same, after rules whose condition is no plain conjunction are evaluated."""
        certain &= ~self._candidate
        left = possible & self._complex
        if left:
            facts = Attributes(states)
            for n in _bits(left):
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

    def _fold(
        self, start: Allowed, applying: int, certain: int, facts: Attributes, stretch: _Stretch
    ) -> Allowed:
        if not applying:
            return start
        process, process_may = start.process.sure, start.process.possible
        retain, retain_may = start.retain.sure, start.retain.possible
        operate = start.operate.mask
        good_until = start.good_until
        chosen = [stretch.rules[n] for n in _bits(applying)]
        for rule in chosen:
            if rule.process is not None:
                process &= rule.process[0]
                process_may &= rule.process[1]
            if rule.retain is not None:
                retain &= rule.retain[0]
                retain_may &= rule.retain[1]
            if rule.operate is not None:
                operate &= rule.operate
            if rule.good_until is not None and (good_until is None or rule.good_until < good_until):
                good_until = rule.good_until
        atlas = start.process.atlas
        return Allowed(
            Boundary(atlas, process, process_may),
            Boundary(atlas, retain, retain_may),
            Countries(operate),
            _NOTHING.union(*(rule.require for rule in chosen)),
            _obligations(chosen),
            frozenset(rule.prefer for rule in chosen if rule.prefer is not None),
            self._reasons(chosen, applying, applying & ~certain, facts),
            good_until,
        )

    def _reasons(
        self, chosen: list[_Unfolded], applying: int, unknown: int, facts: Attributes
    ) -> frozenset[Applied]:
        if not unknown:
            return frozenset(rule.known for rule in chosen)
        found = {rule.known for rule, n in zip(chosen, _bits(applying), strict=True)
                 if not unknown >> n & 1}  # fmt: skip
        for n in _bits(unknown):
            rule = self.policy.rules[n]
            silent = tuple(sorted(open_attributes(rule.condition, facts)))
            found.add(Applied(rule.name, rule.row, rule.because, silent))
        return frozenset(found)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _parts(condition: Condition) -> Iterator[Condition]:
    """The parts of a conjunction, nested ones unfolded; otherwise the condition itself."""
    if isinstance(condition, AllOf):
        for part in condition.parts:
            yield from _parts(part)
    else:
        yield condition


def _necessary(condition: Condition) -> Iterator[tuple[str, frozenset[str], bool]]:
    """Comparisons that must all not be false: attribute, values, negated."""
    for part in _parts(condition):
        if isinstance(part, Is):
            yield part.attribute, part.values, False
        elif isinstance(part, Not) and isinstance(part.part, Is):
            yield part.part.attribute, part.part.values, True


def _is_plain(condition: Condition) -> bool:
    """Whether the necessary comparisons (and comparisons of the candidate) are all there is."""
    return all(
        isinstance(part, Is | CandidateIs)
        or (isinstance(part, Not) and isinstance(part.part, Is | CandidateIs))
        for part in _parts(condition)
    )


def _unfolded(rule: Rule, now: float) -> _Unfolded:
    process = rule.process.at(now) if rule.process is not None else None
    retain = rule.retain.at(now) if rule.retain is not None else None
    prefer = rule.prefer
    return _Unfolded(
        (process.sure, process.possible) if process is not None else None,
        (retain.sure, retain.possible) if retain is not None else None,
        rule.operate.at(now).mask if rule.operate is not None else None,
        rule.require,
        rule.obligations,
        Preference(rule.name, prefer.sets, prefer.spill) if prefer is not None else None,
        Applied(rule.name, rule.row, rule.because),
        rule_good_until(rule, now),
    )


def _obligations(chosen: list[_Unfolded]) -> Obligations:
    result = Obligations()
    for rule in chosen:
        for obligation in rule.obligations:
            result = result.add(obligation)
    return result


def _ends(policy: Policy) -> list[float]:
    """Every moment at which anything may change, ascending."""
    ends: set[float] = set()
    for tenant in policy.tenants.values():
        if tenant.grant is not None:
            grant = tenant.grant
            ends.update(grant.process.ends, grant.retain.ends, grant.operate.ends)
    for rule in policy.rules:
        for bound in (rule.process, rule.retain):
            ends.update(bound.ends if bound is not None else ())
        ends.update(rule.operate.ends if rule.operate is not None else ())
        ends.update(() if rule.dry_run_until is None else (rule.dry_run_until,))
    return sorted(ends)
