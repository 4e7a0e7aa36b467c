"""Sets of rules as masks: which rules the values of an attribute make false, or true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from policies.attributes import State
from policies.conditions import AllOf, Comparison, Condition, Is, Not


@dataclass(slots=True)
class Asked:
    """What rules ask of one attribute, as masks of rules.

    `hits[v]`: rules that value `v` satisfies; `bars[v]`: rules that it makes false;
    `positive` and `negative`: all rules that ask for a value, or for its absence;
    `others`: rules that don't ask; `known`: the masks of states seen, at most `bound` of them.
    """

    hits: dict[str, int] = field(default_factory=dict)
    bars: dict[str, int] = field(default_factory=dict)
    positive: int = 0
    negative: int = 0
    others: int = 0
    known: dict[State, tuple[int, int]] = field(default_factory=dict)
    bound: int = 0

    def add(self, bit: int, values: Iterable[str], negated: bool) -> None:
        """A rule asks for one of these values, or (negated) for none of them."""
        table = self.bars if negated else self.hits
        for value in values:
            table[value] = table.get(value, 0) | bit
        if negated:
            self.negative |= bit
        else:
            self.positive |= bit

    def freeze(self, everything: int, bound: int = 0) -> None:
        """Derive what depends on all rules, after the last `add`."""
        self.others = everything & ~(self.positive | self.negative)
        self.bound = bound

    def look(self, state: State) -> tuple[int, int]:
        """`masks`, remembered in `known`."""
        if len(self.known) >= self.bound:
            self.known.clear()
        found = self.known[state] = self.masks(state)
        return found

    def masks(self, state: State) -> tuple[int, int]:
        """Rules this attribute doesn't make false, and those it leaves open."""
        hit = 0
        hits = self.hits
        for value in state.values:
            if value in hits:
                hit |= hits[value]
        absent = self.negative & ~self._barred(state)
        if state.closed:
            return self.others | hit | absent, 0
        return self.others | self.positive | absent, self.positive & ~hit | absent

    def _barred(self, state: State) -> int:
        barred = 0
        for value in state.values:
            barred |= self.bars.get(value, 0)
        return barred


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits set, ascending."""
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


def necessary(condition: Condition) -> Iterator[tuple[str, frozenset[str], bool]]:
    """Comparisons that must all not be false: attribute, values, negated."""
    for part in _parts(condition):
        if isinstance(part, Is):
            yield part.attribute, part.values, False
        elif isinstance(part, Not) and isinstance(part.part, Is):
            yield part.part.attribute, part.part.values, True


def is_plain(condition: Condition) -> bool:
    """Whether the necessary comparisons (and comparisons of the candidate) are all there is."""
    return all(
        isinstance(part, Comparison)
        or (isinstance(part, Not) and isinstance(part.part, Comparison))
        for part in _parts(condition)
    )
