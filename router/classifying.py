"""Step 3's classifiers: those that a snapshot's attributes name as a source, made once for it."""

from __future__ import annotations

from collections.abc import Callable

from classifiers.patterns import KINDS, Patterns
from classifiers.suite import Suite
from policies.attributes import CLASSIFIER, Declaration
from policies.model import Policy

PATTERNS = CLASSIFIER + Patterns.name


def suite_of(policy: Policy, clock: Callable[[], float]) -> Suite:
    """The classifiers that a policy's attributes are to be supplied by, in the order of names.

    Args:
        clock: loop time, for the deadline.
    """
    named = sorted(policy.declared.items())
    found = [Patterns(name, _kinds(one)) for name, one in named if PATTERNS in one.sources]
    return Suite(found, clock)


def mistakes(policy: Policy) -> list[str]:
    """What no classifier here can do: an unknown one, or values that none of its kinds is."""
    found = []
    for name, one in sorted(policy.declared.items()):
        classifiers = {source for source in one.sources if source.startswith(CLASSIFIER)}
        found += [
            f"attribute `{name}`: there is no `{source}` here; `{PATTERNS}` is the one there is"
            for source in sorted(classifiers - {PATTERNS})
        ]
        if PATTERNS in classifiers and not _kinds(one):
            known = ", ".join(KINDS)
            found.append(f"attribute `{name}`: `{PATTERNS}` supplies none of its values ({known})")
    return found


def _kinds(declaration: Declaration) -> frozenset[str]:
    return declaration.values & frozenset(KINDS)


class Suites:
    """The suite of each snapshot's policy; keeps the newest two, since requests keep theirs."""

    __slots__ = ("_clock", "_kept")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: list[tuple[Policy, Suite]] = []

    def of(self, policy: Policy) -> Suite:
        """The suite of a policy, with what it remembers of late classifiers."""
        for known, suite in self._kept:
            if known is policy:
                return suite
        made = suite_of(policy, self._clock)
        self._kept = [(policy, made), *self._kept[:1]]
        return made
