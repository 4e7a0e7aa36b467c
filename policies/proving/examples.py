"""Counter-examples: the smallest request that shows something, checked by the reference engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.eligibility import Eligible, judge
from policies.engine import Allowed, decide
from policies.model import Policy
from policies.proving.logic import Logic, holds
from policies.proving.requests import Request
from policies.proving.spots import Spot


class Disagreement(Exception):
    """The proof and the engine say different things: a fault of the program, never a proof."""


@dataclass(frozen=True, slots=True)
class CounterExample:
    """A request that breaks a statement, and how.

    Attributes:
        at: seconds since the epoch at which it does.
        endpoint: for `assert` the endpoint it reaches outside; empty for `ensure`.
        call: what of the call moves bytes; empty for a plain call.
        router: the region of the router that would process it; empty for any.
        outside: for `assert` axis → what lies outside, as ids.
        model, lost, left: for `ensure` the model, the unit lost and the endpoints left.
        rules: names of the rules that apply.
    """

    request: Request
    at: float
    endpoint: str = ""
    call: tuple[str, ...] = ()
    router: str = ""
    outside: tuple[tuple[str, tuple[str, ...]], ...] = ()
    model: str = ""
    lost: str = ""
    left: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    def __str__(self) -> str:
        rules = f"rules that apply: {', '.join(self.rules)}" if self.rules else "no rule applies"
        if self.endpoint:
            what = "; ".join(f"{axis} in {_few(ids)}" for axis, ids in self.outside)
            how = f" with {', '.join(self.call)}" if self.call else ""
            by = f" by the router in {self.router}" if self.router else ""
            return f"{self.request}: `{self.endpoint}`{how}{by} is eligible, {what}; {rules}"
        left = f"only {', '.join(self.left)}" if self.left else "no endpoint"
        lost = "with everything up" if self.lost == "nothing" else f"without {self.lost}"
        return f"{self.request}: {lost}, model `{self.model}` has {left} left; {rules}"


def smallest(logic: Logic, choices: Sequence[int], *assumed: int) -> frozenset[int] | None:
    """An example in which as few choices as possible hold; `None` when there is none.

    Raises:
        Undecided: the budget ran out.
    """
    example = minimal(logic, choices, *assumed)
    if example is None:
        return None
    size = sum(holds(choice, example) for choice in choices)
    counted = logic.counter(choices, size) if size else None
    for most in range(size):
        fewer = counted(most) if counted is not None else None
        found = logic.ask(*assumed, *(() if fewer is None else (fewer,)))
        if found is not None:
            return found
    return example


def minimal(logic: Logic, choices: Sequence[int], *assumed: int) -> frozenset[int] | None:
    """An example from which no choice can be taken away; `None` when there is none.

    Raises:
        Undecided: the budget ran out.
    """
    example = logic.ask(*assumed)
    if example is None:
        return None
    for choice in choices:
        if not holds(choice, example):
            continue
        without = [-one for one in choices if not holds(one, example)]
        fewer = logic.ask(*assumed, *without, -choice)
        example = example if fewer is None else fewer
    return example


def in_force(policy: Policy, now: float, trials: bool) -> Policy:
    """The policy as it is judged: rules on trial absent, or present as if they applied."""
    if trials:
        rules = tuple(replace(rule, dry_run_until=None) for rule in policy.rules)
    else:
        rules = tuple(rule for rule in policy.rules if not rule.is_dry(now))
    return replace(policy, rules=rules)


def allowed_by_engine(judged: Policy, request: Request, spot: Spot, now: float) -> Allowed | None:
    """What the engine allows the request at this spot; `None` when the spot is not eligible."""
    decision = decide(judged, request.ask(judged), now)
    allowed = decision.allowed(spot.candidate)
    router = spot.router
    if router is None:
        inside = allowed.process.places
        router = next((atom.id for atom in inside if atom.id in _regions(judged)), None)
        if router is None:
            return None
    verdict = judge(decision, spot.candidate, spot.endpoint, spot.footprint, router, now)
    return allowed if isinstance(verdict, Eligible) else None


def _regions(policy: Policy) -> frozenset[str]:
    return frozenset(region.id for region in policy.atlas.regions)


def _few(ids: tuple[str, ...], most: int = 6) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")
