"""Propositional logic over a maintained solver: literals, their names, questions, budgets.

A literal is a non-zero integer; its negation is `-literal`. Formulas are made once and get a
literal that is equivalent to them, so that they may stand on either side of an implication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from pysat.card import ITotalizer
from pysat.solvers import Glucose4

CONFLICTS: Final = 200_000


class Undecided(Exception):
    """The solver gave up within its budget: nothing is known, so nothing may be relied on."""


class _Solver(Protocol):
    def add_clause(self, clause: Sequence[int]) -> None: ...
    def conf_budget(self, budget: int) -> None: ...
    def solve_limited(self, assumptions: Sequence[int]) -> bool | None: ...
    def get_model(self) -> list[int]: ...


class Logic:
    """Formulas and questions about them. `conflicts` is the solver's budget per question."""

    def __init__(self, conflicts: int = CONFLICTS) -> None:
        self._solver: _Solver = Glucose4()
        self._conflicts = conflicts
        self._count = 0
        self._known: dict[frozenset[int], int] = {}
        self.true = self.fresh()
        self.add(self.true)

    @property
    def false(self) -> int:
        """The literal that never holds."""
        return -self.true

    def fresh(self) -> int:
        """A literal about which nothing is said yet."""
        self._count += 1
        return self._count

    def add(self, *literals: int) -> None:
        """At least one of these holds."""
        self._solver.add_clause(literals)

    def all_of(self, literals: Iterable[int]) -> int:
        """A literal that holds exactly when all of these do; without any, always."""
        parts = set(literals)
        parts.discard(self.true)
        if -self.true in parts or any(-part in parts for part in parts):
            return -self.true
        if len(parts) < 2:
            return parts.pop() if parts else self.true
        key = frozenset(parts)
        known = self._known.get(key)
        return known if known is not None else self._define(key)

    def any_of(self, literals: Iterable[int]) -> int:
        """A literal that holds exactly when one of these does; without any, never."""
        return -self.all_of(-literal for literal in literals)

    def _define(self, parts: frozenset[int]) -> int:
        whole = self._known[parts] = self.fresh()
        for part in parts:
            self._solver.add_clause((-whole, part))
        self._solver.add_clause((whole, *(-part for part in parts)))
        return whole

    def distinct(self, literals: Sequence[int], when: int) -> None:
        """While `when` holds, at most one of these does: each has a number of its own."""
        bits = [self.fresh() for _ in range((len(literals) - 1).bit_length())]
        for number, literal in enumerate(literals):
            for n, bit in enumerate(bits):
                self.add(-when, -literal, bit if number >> n & 1 else -bit)

    def at_most(self, literals: Sequence[int], most: int) -> int | None:
        """A literal to assume so that at most `most` hold; `None` when that is always so."""
        return self.counter(literals, most + 1)(most)

    def counter(self, literals: Sequence[int], top: int) -> Counter:
        """Bounds on how many of these hold, up to `top` (exclusive)."""
        found = [literal for literal in literals if literal != -self.true]
        if len(found) <= 1:
            return Counter([found[0]] if found else [])
        totals = ITotalizer(lits=found, ubound=min(top, len(found)), top_id=self._count)
        self._count = max(self._count, totals.top_id)
        for clause in totals.cnf.clauses:
            self._solver.add_clause(clause)
        counter = Counter(list(totals.rhs))
        totals.delete()
        return counter

    def ask(self, *assumed: int) -> frozenset[int] | None:
        """The positive literals of an example in which these hold; `None`: there is none.

        Raises:
            Undecided: neither was found within the budget.
        """
        self._solver.conf_budget(self._conflicts)
        found = self._solver.solve_limited(assumptions=assumed)
        if found is None:
            raise Undecided
        return frozenset(n for n in self._solver.get_model() if n > 0) if found else None


def holds(literal: int, example: frozenset[int]) -> bool:
    """Whether a literal, positive or negated, holds in an example."""
    return literal in example if literal > 0 else -literal not in example


class Counter:
    """How many of some literals hold: `outputs[n]` holds whenever more than `n` of them do."""

    __slots__ = ("_outputs",)

    def __init__(self, outputs: Sequence[int]) -> None:
        self._outputs = outputs

    def __call__(self, most: int) -> int | None:
        """The literal that says at most `most`; `None` when it says nothing."""
        return -self._outputs[most] if most < len(self._outputs) else None
