"""The outer bound: what is certainly forbidden before a byte of the body is read.

grant ∩ the rules already known to be true from the key and the headers. Whatever the body
or a classifier may still add only narrows further, so a router outside this bound is
outside the full decision: an early 421 is never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.attributes import (
    Attributes,
    Declaration,
    State,
    Supplied,
    Truth,
    admitted,
    is_authoritative,
)
from policies.engine import Ask, granted
from policies.model import Policy
from regions.places import Boundary


def bound_of(policy: Policy, ask: Ask, now: float) -> Boundary:
    """Where a request may be processed at most, as the head of it tells.

    Args:
        ask: holds the early attributes.
        now: seconds since the epoch.
    """
    facts = ask.facts
    known = policy.tenants.get(ask.tenant)
    bound = granted(policy.atlas, known.grant if known is not None else None, now).process
    for rule in policy.rules:
        if rule.process is None or rule.is_dry(now):
            continue
        if rule.condition.truth(facts, None) is Truth.TRUE:
            bound &= rule.process.at(now)
    return bound


def early_attributes(
    declared: Mapping[str, Declaration],
    supplied: Iterable[Supplied],
    trusted: frozenset[str],
) -> Attributes:
    """What is certain of every attribute before the body is read.

    Where the body may still bring an authoritative value, a default doesn't count; where
    anything may still be added, the attribute is open.

    Raises:
        AttributeRefused: an undeclared name or value, or a source that may not supply it.
    """
    said = admitted(declared, supplied, trusted)
    return Attributes({n: _early(d, said.get(n, ()), n in trusted) for n, d in declared.items()})


def _early(declaration: Declaration, said: tuple[Supplied, ...], trusted: bool) -> State:
    known = frozenset(v for s in said if is_authoritative(s.source) for v in s.values)
    claimed = frozenset(v for s in said if not is_authoritative(s.source) for v in s.values)
    default = frozenset[str]() if trusted else declaration.default
    settled = known or default
    final = not trusted and not declaration.claimable
    return State(settled | claimed, closed=bool(settled) and final)
