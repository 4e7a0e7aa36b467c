"""Proofs: whether every `assert` and `ensure` of a policy holds, for all requests there can be.

1. the space of requests as formulas, and each condition's truth in it (`proving.requests`);
2. every way to be served at a time: endpoint, tier, kind of call, router (`proving.spots`);
3. what rules and grants leave of each of them (`proving.reach`);
4. statement by statement the question whether a request breaks it; what is found is checked
   with the reference engine, and the smallest is shown;
5. again at each moment something ends.

A SAT solver answers 4: requests are sets of values with open and closed states, rules any
nesting of `all`, `any`, `not`, so their combinations can't be listed one by one. No answer
within its budget is `undecided`, and undecided is refused like broken.

What ends narrows what is allowed, so an `assert` that holds now can break later only where
its own sets end or a fact about an endpoint ages: those are the moments it is judged again.
An `ensure` is judged again at every end within its horizon.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from policies.findings import Finding, Severity
from policies.loader import Loaded
from policies.model import Policy, Rule
from policies.proving.asserting import Asserting
from policies.proving.ensuring import Ensuring
from policies.proving.examples import CounterExample
from policies.proving.logic import CONFLICTS, Logic, Undecided
from policies.proving.reach import Reach
from policies.proving.requests import Requests
from policies.proving.spots import Facts, Spot, catalog_facts, ends, spots
from policies.proving.truths import Truths
from policies.statements import Ensure, Statement
from policies.timed import UNKNOWN_TIME
from regions.document import Mark

MOMENTS: Final = 64
"""Ends looked at after now, at most; more are said as undecided, never skipped."""


class Outcome(StrEnum):
    """What came of a statement: `broken`, `undecided` and `vacuous` are refused at load."""

    HOLDS = "holds"
    LATER = "breaks later"
    VACUOUS = "vacuous"
    UNDECIDED = "undecided"
    BROKEN = "broken"


_CODES: Final[Mapping[Outcome, str]] = {
    Outcome.LATER: "breaks_later",
    Outcome.VACUOUS: "vacuous",
    Outcome.UNDECIDED: "undecided",
    Outcome.BROKEN: "broken",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One statement with its outcome and, when it is broken or will be, the example."""

    kind: str
    text: str
    outcome: Outcome
    mark: Mark | None = None
    example: CounterExample | None = None

    @property
    def refused(self) -> bool:
        """Whether a policy with it must not be loaded."""
        return self.outcome not in (Outcome.HOLDS, Outcome.LATER)


@dataclass(frozen=True, slots=True)
class Proof:
    """All verdicts about one policy, in the order the statements were read.

    They stay the same from `at` until something ends, or comes into a horizon: `good_until`.
    """

    digest: str
    at: float
    verdicts: tuple[Verdict, ...]
    good_until: float = UNKNOWN_TIME

    @property
    def refused(self) -> bool:
        """Whether any statement is broken, vacuous or undecided now."""
        return any(verdict.refused for verdict in self.verdicts)


def prove(loaded: Loaded, now: float, routers: Sequence[str] = ()) -> Proof:
    """Prove every statement of a policy, or show how it is broken.

    Args:
        now: seconds since the epoch.
        routers: regions of this router and its peers, whose places count as well; without
            any, wherever the router is.

    Raises:
        PlaceError: a router's region is not in the catalog.
        Disagreement: proof and engine differ; report it.
    """
    return proved(loaded.policy, catalog_facts(loaded.catalog), now, routers)


def proved(
    policy: Policy,
    facts: Facts,
    now: float,
    routers: Sequence[str] = (),
    conflicts: int = CONFLICTS,
) -> Proof:
    """The same with footprints from elsewhere; `conflicts` is the solver's budget per question."""
    prover = _Prover(policy, facts, tuple(routers), now, conflicts)
    verdicts = [prover.judged_assert(one) for one in policy.statements]
    verdicts += [prover.judged_ensure(one) for one in policy.ensures]
    return Proof(policy.digest, now, tuple(verdicts), prover.good_until())


class Proofs:
    """Remembers the newest proofs by policy digest, so that an unchanged policy costs nothing."""

    def __init__(self, bound: int = 8) -> None:
        self._known: dict[tuple[str, tuple[str, ...]], Proof] = {}
        self._bound = bound

    def of(self, loaded: Loaded, now: float, routers: Sequence[str] = ()) -> Proof:
        """The proof of a policy at `now`: `prove`, or what it gave before."""
        key = (loaded.policy.digest, tuple(routers))
        known = self._known.get(key)
        if known is not None and known.at <= now < known.good_until:
            return known
        if len(self._known) >= self._bound:
            self._known.clear()
        found = self._known[key] = prove(loaded, now, routers)
        return found


def findings(proof: Proof) -> Iterator[Finding]:
    """What a check says of a proof: errors for what is refused, warnings for what breaks later."""
    for one in proof.verdicts:
        if one.outcome is Outcome.HOLDS:
            continue
        said = f"{one.kind} {one.text}: {one.outcome.value}"
        if one.outcome is Outcome.VACUOUS:
            said += "; no request reaches what it speaks of, correct its condition"
        elif one.outcome is Outcome.UNDECIDED:
            said += "; the solver found no answer within its budget, say less in one statement"
        elif one.example is not None:
            when = datetime.fromtimestamp(one.example.at, UTC).strftime("%Y-%m-%d")
            said += f", from {when}: {one.example}" if not one.refused else f": {one.example}"
        severity = Severity.ERROR if one.refused else Severity.WARNING
        yield Finding(severity, f"{one.kind}_{_CODES[one.outcome]}", said, one.mark)


class _Prover:
    def __init__(
        self, policy: Policy, facts: Facts, routers: tuple[str, ...], now: float, conflicts: int
    ) -> None:
        self._policy = policy
        self._facts = facts
        self._routers = routers
        self._now = now
        self._logic = Logic(conflicts)
        conditions = [rule.condition for rule in policy.rules]
        conditions += [one.condition for one in policy.statements]
        conditions += [one.condition for one in policy.ensures]
        self._requests = Requests(self._logic, (policy,), conditions)
        self._truths = Truths(self._requests)
        self._spots: dict[float, tuple[Spot, ...]] = {}
        self._asserting: dict[float, Asserting] = {}
        self._ensuring: dict[float, Ensuring] = {}

    # -- one moment --------------------------------------------------------------------

    def spots(self, at: float) -> tuple[Spot, ...]:
        known = self._spots.get(at)
        if known is None:
            known = spots(self._policy, self._facts, self._routers, at)
            self._spots[at] = known
        return known

    def asserting(self, at: float) -> Asserting:
        known = self._asserting.get(at)
        if known is None:
            reach = Reach(self._requests, self._truths, self._policy, at, trials=False)
            known = Asserting(self._requests, self._truths, reach, self.spots(at))
            self._asserting[at] = known
        return known

    def ensuring(self, at: float) -> Ensuring:
        known = self._ensuring.get(at)
        if known is None:
            reach = Reach(self._requests, self._truths, self._policy, at, trials=True)
            known = Ensuring(self._requests, self._truths, reach, self.spots(at))
            self._ensuring[at] = known
        return known

    def good_until(self) -> float:
        """When the verdicts may change by time alone."""
        every = [*policy_ends(self._policy), *ends(self.spots(self._now))]
        for statement in self._policy.statements:
            every += statement_ends(statement)
        next_ends = [end for end in every if end > self._now]
        for one in self._policy.ensures:
            next_ends += [end - one.horizon for end in every if end - one.horizon > self._now]
        return min(next_ends, default=UNKNOWN_TIME)

    # -- statements --------------------------------------------------------------------

    def judged_assert(self, one: Statement) -> Verdict:
        def shown(outcome: Outcome, example: CounterExample | None = None) -> Verdict:
            return Verdict("assert", one.text, outcome, one.mark, example)

        return self._judged(
            lambda at: self.asserting(at).broken(one),
            lambda: self.asserting(self._now).is_vacuous(one),
            statement_ends(one),
            UNKNOWN_TIME,
            shown,
        )

    def judged_ensure(self, one: Ensure) -> Verdict:
        def shown(outcome: Outcome, example: CounterExample | None = None) -> Verdict:
            return Verdict("ensure", one.text, outcome, one.mark, example)

        return self._judged(
            lambda at: self.ensuring(at).broken(one),
            lambda: self.ensuring(self._now).is_vacuous(one),
            policy_ends(self._policy),
            self._now + one.horizon,
            shown,
        )

    def _judged(
        self,
        broken: Callable[[float], CounterExample | None],
        is_vacuous: Callable[[], bool],
        own: Iterable[float],
        until: float,
        shown: Callable[..., Verdict],
    ) -> Verdict:
        try:
            example = broken(self._now)
            if example is not None:
                return shown(Outcome.BROKEN, example)
            if is_vacuous():
                return shown(Outcome.VACUOUS)
            for at in self._moments(own, until):
                example = broken(at)
                if example is not None:
                    return shown(Outcome.LATER, example)
        except Undecided:
            return shown(Outcome.UNDECIDED)
        return shown(Outcome.HOLDS)

    def _moments(self, own: Iterable[float], until: float) -> Iterator[float]:
        """Every end after now up to `until`; what ends is read again at each of them.

        Raises:
            Undecided: there are more than `MOMENTS`.
        """
        waiting = [*own, *ends(self.spots(self._now))]
        heapq.heapify(waiting)
        last, count = self._now, 0
        while waiting:
            at = heapq.heappop(waiting)
            if at <= last or at > until or at == UNKNOWN_TIME:
                continue
            last, count = at, count + 1
            if count > MOMENTS:
                raise Undecided
            yield at
            for end in ends(self.spots(at)):
                heapq.heappush(waiting, end)


def policy_ends(policy: Policy) -> Iterator[float]:
    """Every time at which something in the policy ends."""
    for tenant in policy.tenants.values():
        if tenant.grant is not None:
            yield from tenant.grant.process.ends
            yield from tenant.grant.retain.ends
            yield from tenant.grant.operate.ends
    for rule in policy.rules:
        yield from rule_ends(rule)


def rule_ends(rule: Rule) -> Iterator[float]:
    """Every time at which something in a rule ends, its trial too."""
    for bound in (rule.process, rule.retain):
        yield from bound.ends if bound is not None else ()
    yield from rule.operate.ends if rule.operate is not None else ()
    yield from () if rule.dry_run_until is None else (rule.dry_run_until,)


def statement_ends(one: Statement) -> Iterator[float]:
    """Every time at which a statement's own sets narrow."""
    for bound in (one.process, one.retain):
        yield from bound.ends if bound is not None else ()
    yield from one.operate.ends if one.operate is not None else ()
