"""Step 3's classifiers: those that a snapshot's attributes name as a source, made once for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from classifiers.base import Classifier
from classifiers.patterns import KINDS, Patterns
from classifiers.presidio import Presidio, installed
from classifiers.suite import DEADLINE, Suite
from policies.attributes import CLASSIFIER, Declaration
from policies.model import Policy

PATTERNS = CLASSIFIER + Patterns.name
PRESIDIO = CLASSIFIER + Presidio.name
KNOWN = frozenset({PATTERNS, PRESIDIO})
PATIENT: Final = 0.05
"""Seconds that all classifiers together may take where Presidio is one of them."""


def suite_of(policy: Policy, clock: Callable[[], float]) -> Suite:
    """The classifiers that a policy's attributes are to be supplied by, in the order of names.

    Args:
        clock: loop time, for the deadline.
    """
    named = sorted(policy.declared.items())
    quick = [Patterns(name, _kinds(one)) for name, one in named if PATTERNS in one.sources]
    slow = [Presidio(name, _kinds(one)) for name, one in named if PRESIDIO in one.sources]
    found: list[Classifier] = [*quick, *slow]
    return Suite(found, clock, PATIENT if slow else DEADLINE)


def mistakes(policy: Policy) -> list[str]:
    """What no classifier here can do: an unknown one, or values that none of its kinds is."""
    found = []
    for name, one in sorted(policy.declared.items()):
        classifiers = {source for source in one.sources if source.startswith(CLASSIFIER)}
        known = " and ".join(f"`{one}`" for one in sorted(KNOWN))
        found += [
            f"attribute `{name}`: there is no `{source}` here; there are {known}"
            for source in sorted(classifiers - KNOWN)
        ]
        if PRESIDIO in classifiers and not installed():
            found.append(
                f"attribute `{name}`: `{PRESIDIO}` needs an extra: pip install 'domicile[presidio]'"
            )
        found += [
            f"attribute `{name}`: `{source}` supplies none of its values ({', '.join(KINDS)})"
            for source in sorted(classifiers & KNOWN) if not _kinds(one)
        ]  # fmt: skip
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
