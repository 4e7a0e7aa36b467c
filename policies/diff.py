"""What a change of policy means: which requests gain or lose what, exactly, not by sampling.

Two policies read the same space of requests (`policies.proving`). For every place a solver
is asked for a request that has it under one policy and not under the other, and every answer
is checked with the engine. Of each class of requests the smallest is shown: every request
that gains says at least what one of the shown ones says. Rules on trial count as absent, and
what ends is looked at now and after each end, since a later `until` widens as well.

A value that one policy doesn't declare, or from a source it doesn't accept, is not said there.
Endpoints and facts are not compared here: see `policies.recorded` for what requests reach.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from policies.conditions import Candidate, CandidateIs
from policies.engine import Allowed, decide
from policies.model import Policy
from policies.obligations import AnyObligation, meet
from policies.prove import policy_ends
from policies.proving.examples import Disagreement, in_force, minimal
from policies.proving.logic import CONFLICTS, Logic, Undecided, holds
from policies.proving.reach import Effect, Reach
from policies.proving.requests import Request, Requests
from policies.proving.truths import Truths
from regions.countries import ISO_3166_1, Countries

AXES: Final = ("process", "retain", "operate")
MOST: Final = 2_000
"""Classes of requests listed at most; more are refused, not cut."""


@dataclass(frozen=True, slots=True)
class Change:
    """What requests like one gain or lose.

    Attributes:
        gains: whether it is there after the change and was not before.
        axis: `process`, `retain`, `operate`, or `demand`: an assurance or an obligation.
        what: ids of places, codes of countries, or the demands.
        tenants: who asks; all tenants that nothing tells apart.
        requests: the smallest that show it; more than one differ only in who says it.
        candidate: what the endpoint is like, where rules ask about it; else empty.
        since: seconds since the epoch from which it is so.
    """

    gains: bool
    axis: str
    what: tuple[str, ...]
    tenants: tuple[str, ...]
    requests: tuple[Request, ...]
    candidate: str
    since: float

    @property
    def request(self) -> Request:
        """The first of the requests."""
        return self.requests[0]

    @property
    def widens(self) -> bool:
        """Whether more is allowed than before: a place gained, or a demand lost."""
        return self.gains != (self.axis == "demand")

    def __str__(self) -> str:
        verb = "gain" if self.gains else "lose"
        who = few(self.tenants)
        saying = " or ".join(str(request).partition(", ")[2] for request in self.requests[:3])
        more = " or …" if len(self.requests) > 3 else ""
        served = f", served by {self.candidate}" if self.candidate else ""
        return f"{who} ({saying}{more}{served}): {verb} {self.axis} {few(self.what)}"


@dataclass(frozen=True, slots=True)
class Difference:
    """All changes, earliest and widening ones first."""

    changes: tuple[Change, ...]

    @property
    def widens(self) -> bool:
        """Whether any request may have more than before."""
        return any(change.widens for change in self.changes)


def diff(old: Policy, new: Policy, now: float, conflicts: int = CONFLICTS) -> Difference:
    """Every class of request that gains or loses anything from `old` to `new`.

    Args:
        now: seconds since the epoch; what changes only after a later end is found too.
        conflicts: the solver's budget per question.

    Raises:
        Undecided: no answer within the budget, or more than `MOST` classes.
        Disagreement: the engine doesn't confirm what was found.
    """
    comparing = _Comparing(old, new, conflicts)
    ends = {end for policy in (old, new) for end in policy_ends(policy) if end > now}
    found: dict[Hashable, Change] = {}
    for at in (now, *sorted(ends)):
        for change in comparing.at(at):
            key = (change.gains, change.axis, change.what, change.requests, change.candidate)
            found.setdefault(key, change)
    order = sorted(found.values(), key=lambda c: (c.since, not c.widens, c.axis, str(c)))
    return Difference(tuple(order))


_Key = tuple[bool, str, Request, str]


class _Comparing:
    def __init__(self, old: Policy, new: Policy, conflicts: int) -> None:
        self._policies = (old, new)
        self._logic = Logic(conflicts)
        conditions = [rule.condition for policy in self._policies for rule in policy.rules]
        self._requests = Requests(self._logic, self._policies, conditions)
        self._truths = (Truths(self._requests, 0), Truths(self._requests, 1))
        self._candidates = tuple(_candidates(self._policies))

    def at(self, now: float) -> Iterator[Change]:
        """Every change at one time, put together by the request that shows it."""
        reaches = tuple(
            Reach(self._requests, self._truths[n], policy, now, trials=False)
            for n, policy in enumerate(self._policies)
        )
        found: dict[_Key, set[str]] = {}
        for like, candidate in self._candidates:
            for axis, names, here in self._allowed(reaches, candidate):
                for gains, (less, more) in ((True, here), (False, here[::-1])):
                    changed = self._logic.all_of((more, -less))
                    for request in self._smallest(changed):
                        found.setdefault((gains, axis, request, like), set()).update(names)
                        if len(found) > MOST:
                            raise Undecided
        yield from self._changes(found, now)

    def _changes(self, found: Mapping[_Key, set[str]], now: float) -> Iterator[Change]:
        """One change for all requests that differ only in who says the same, confirmed."""
        together: dict[Hashable, tuple[_Key, tuple[str, ...], list[Request]]] = {}
        for key, names in found.items():
            gains, axis, request, like = key
            what = tuple(sorted(names))
            told = frozenset((name, value) for name, value, _ in request.said)
            same = (gains, axis, what, like, replace(request, said=()), told)
            together.setdefault(same, (key, what, []))[2].append(request)
        for (gains, axis, _, like), what, requests in together.values():
            tenants = self._requests.alike[requests[0].tenant]
            change = Change(gains, axis, what, tenants, tuple(sorted(requests, key=str)), like, now)
            self._confirm(change, now, dict(self._candidates)[like])
            yield change

    def _allowed(
        self, reaches: Sequence[Reach], candidate: Candidate | None
    ) -> Iterator[tuple[str, tuple[str, ...], tuple[int, int]]]:
        """Axis, names, and whether they are allowed (or demanded) before and after."""
        for axis in AXES:
            bits = [_bits(policy, axis) for policy in self._policies]
            for names in _alike(axis, bits, reaches):
                before, after = (
                    reach.contains(axis, known[names[0]], candidate)
                    if names[0] in known
                    else self._logic.false
                    for reach, known in zip(reaches, bits, strict=True)
                )
                yield axis, names, (before, after)
        for name, how in _demands(reaches).items():
            before, after = (_demanded(reach, how, candidate, self._logic) for reach in reaches)
            yield "demand", (name,), (before, after)

    def _smallest(self, changed: int) -> Iterator[Request]:
        """The smallest requests with a change, none of which says all that another says."""
        if changed == self._logic.false:
            return
        choices = self._requests.choices
        going = self._logic.fresh()
        while True:
            example = minimal(self._logic, choices, changed, going)
            if example is None:
                return
            request = self._requests.read(example)
            yield request
            said = [-choice for choice in choices if holds(choice, example)]
            tenant = -self._requests.tenants[request.tenant]
            self._logic.add(-going, tenant, *said, *self._exactly(request))

    def _exactly(self, request: Request) -> Iterator[int]:
        """An unusual app or purpose is one of several: others are looked for as well."""
        if request.app is not None:
            yield -self._requests.apps[request.app]
        if request.purpose != "interactive":
            yield -self._requests.purposes[request.purpose]

    def _confirm(self, change: Change, now: float, candidate: Candidate | None) -> None:
        for request in change.requests:
            before, after = (
                _had(policy, change, request, now, candidate, self._policies)
                for policy in self._policies
            )
            more, less = (after, before) if change.gains else (before, after)
            if not set(change.what) <= more - less:
                raise Disagreement(f"the engine doesn't confirm: {change}")


def few(names: Sequence[str], most: int = 6) -> str:
    """The first of some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


# -- what there is to compare ------------------------------------------------------------


def _bits(policy: Policy, axis: str) -> Mapping[str, int]:
    """Every place or country by name → its bit."""
    if axis == "operate":
        known = {code: Countries.of([code]).mask for code in ISO_3166_1}
        return {**known, "unknown": Countries.unknown().mask}
    atlas = policy.atlas
    return {atom.id: 1 << n for n, atom in enumerate(atlas.atoms_of((1 << len(atlas)) - 1))}


def _alike(
    axis: str, bits: Sequence[Mapping[str, int]], reaches: Sequence[Reach]
) -> Iterator[tuple[str, ...]]:
    """Places that no bound of either policy tells apart, together."""
    bounds = [sorted(m for kind, m in reach.bounds if kind == axis) for reach in reaches]
    classes: dict[Hashable, list[str]] = {}
    for name in sorted({name for known in bits for name in known}):
        told = tuple(
            tuple(bool(mask & known[name]) for mask in masks) if name in known else None
            for known, masks in zip(bits, bounds, strict=True)
        )
        classes.setdefault(told, []).append(name)
    yield from map(tuple, classes.values())


def _demands(reaches: Iterable[Reach]) -> Mapping[str, Effect]:
    """Assurances and obligations of either policy, by a name people can read."""
    return {_named(effect): effect for reach in reaches for effect in reach.demands}


def _named(effect: Effect) -> str:
    if effect.obligation is None:
        return f"require {effect.name}"
    settings = effect.obligation.describe()
    shown = ", ".join(f"{key}: {value}" for key, value in settings.items() if value is not None)
    return f"{effect.obligation.kind} ({shown})" if shown else effect.obligation.kind


def _demanded(reach: Reach, wanted: Effect, candidate: Candidate | None, logic: Logic) -> int:
    """Whether a rule demands this, or more than this."""
    return logic.any_of(
        reach.applies(effect, candidate)
        for effect in reach.demands
        if effect == wanted or _is_stricter(effect.obligation, wanted.obligation)
    )


def _is_stricter(one: AnyObligation | None, other: AnyObligation | None) -> bool:
    if one is None or other is None or one.kind != other.kind:
        return False
    return meet(one, other) == one


def _candidates(policies: Sequence[Policy]) -> Iterator[tuple[str, Candidate | None]]:
    """The kinds of endpoints that rules tell apart; one that is any, where none does."""
    leaves = {
        leaf
        for policy in policies
        for rule in policy.rules
        for leaf in rule.condition.leaves()
        if isinstance(leaf, CandidateIs)
    }
    if not leaves:
        yield "", None
        return
    seen = set()
    for policy in policies:
        for model in policy.models:
            for tier, e in policy.candidates(model):
                one = Candidate(e.name, e.model, e.provider, tier)
                told = tuple(one.get(leaf.key) in leaf.values for leaf in sorted(leaves, key=str))
                if told not in seen:
                    seen.add(told)
                    yield f"{e.provider} {e.model} ({tier.label})", one


# -- checking with the engine ------------------------------------------------------------


def _had(
    policy: Policy,
    change: Change,
    request: Request,
    now: float,
    candidate: Candidate | None,
    policies: Sequence[Policy],
) -> set[str]:
    """What the engine allows the request on the change's axis, by name."""
    judged = in_force(policy, now, trials=False)
    decision = decide(judged, request.ask(judged), now)
    allowed = decision.common if candidate is None else decision.allowed(candidate)
    if change.axis == "demand":
        return {name for name in change.what if _holds(allowed, name, policies)}
    mask = {
        "process": allowed.process.sure,
        "retain": allowed.retain.sure,
        "operate": allowed.operate.mask,
    }[change.axis]
    return {name for name, bit in _bits(policy, change.axis).items() if mask & bit}


def _holds(allowed: Allowed, name: str, policies: Sequence[Policy]) -> bool:
    """Whether a demand of this name, or a stricter one, is in what the engine says."""
    if name.startswith("require "):
        return name.removeprefix("require ") in allowed.require
    every = [o for policy in policies for rule in policy.rules for o in rule.obligations]
    wanted = next(o for o in every if _named(Effect("obligation", obligation=o)) == name)
    held = allowed.obligations.get(wanted.kind)
    return wanted.kind in allowed.conflict or (held is not None and _is_stricter(held, wanted))
