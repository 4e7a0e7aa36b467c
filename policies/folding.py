"""What a set of rules leaves of a grant, for one stretch of time: rules as bits, bounds as masks.

Many rules share few boundaries. So each boundary stands once, with the rules that set it, and a
fold asks every boundary whether any of its rules applies. Where there are more boundaries than
rules that apply, it goes through the rules instead. Why they apply is put in words when asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeVar

from typing_extensions import override

from policies.attributes import Attributes
from policies.conditions import open_attributes
from policies.engine import Allowed, Applied, Ask, Preference, rule_good_until
from policies.masks import bits
from policies.model import Rule
from policies.obligations import NO_OBLIGATIONS, AnyObligation, Obligations
from policies.timed import Timed, earliest, sooner
from regions.atlas import Atlas
from regions.countries import Countries
from regions.places import Boundary

_NOTHING: Final[frozenset[str]] = frozenset()
_NO_PREFERENCE: Final[frozenset[Preference]] = frozenset()
K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unfolded:
    """What a rule demands beyond places, for one stretch of time; `known`: why, if all is known."""

    operate: int
    require: frozenset[str]
    obligations: tuple[AnyObligation, ...]
    prefer: Preference | None
    known: Applied
    good_until: float | None
    demands: bool

    @classmethod
    def of(cls, rule: Rule, now: float) -> Unfolded:
        """What a rule holds at `now`."""
        operate = rule.operate.at(now) if rule.operate is not None else Countries.any()
        prefer, good_until = rule.prefer, rule_good_until(rule, now)
        return cls(
            operate.mask,
            rule.require,
            rule.obligations,
            Preference(rule.name, prefer.sets, prefer.spill) if prefer is not None else None,
            Applied(rule.name, rule.row, rule.because),
            good_until,
            demands=bool(
                rule.operate is not None
                or rule.require
                or rule.obligations
                or prefer is not None
                or good_until is not None
            ),
        )


class Axis:
    """The boundaries that rules set on one axis, each once, with its rules.

    A boundary is one number here: its sure places below, its possible ones above `width` bits.
    """

    __slots__ = ("_by_rule", "_shared")

    def __init__(self, bounds: Iterable[int | None]) -> None:
        self._by_rule = tuple(bounds)
        shared: dict[int, int] = {}
        for n, both in enumerate(self._by_rule):
            if both is not None:
                shared[both] = shared.get(both, 0) | 1 << n
        self._shared = tuple(shared.items())

    def met(self, both: int, applying: int) -> int:
        """What the applying rules leave of a boundary."""
        if len(self._shared) <= 2 * applying.bit_count():
            for here, rules in self._shared:
                if applying & rules:
                    both &= here
            return both
        for n in bits(applying):
            own = self._by_rule[n]
            if own is not None:
                both &= own
        return both


class Reasons(AbstractSet[Applied]):
    """The rules that applied and why, put in words when somebody looks: equal to a frozenset.

    Args:
        folding: whose rules; `applying` and `unknown` are masks over them.
        unknown: those that apply since something is not known about `ask`.
    """

    __slots__ = ("_applying", "_ask", "_folding", "_spelled", "_unknown")

    def __init__(
        self, folding: Folding, applying: int, unknown: int = 0, ask: Ask | None = None
    ) -> None:
        self._folding = folding
        self._applying = applying
        self._unknown = unknown
        self._ask = ask
        self._spelled: frozenset[Applied] | None = None

    @property
    def _found(self) -> frozenset[Applied]:
        if self._spelled is None:
            self._spelled = self._folding.reasons(self._applying, self._unknown, self._ask)
        return self._spelled

    @override
    def __contains__(self, one: object) -> bool:
        return one in self._found

    @override
    def __iter__(self) -> Iterator[Applied]:
        return iter(self._found)

    @override
    def __len__(self) -> int:
        return len(self._found)

    @override
    def __hash__(self) -> int:
        return hash(self._found)

    @override
    def __or__(self, other: AbstractSet[T]) -> frozenset[Applied | T]:
        return self._found.union(other)


class Folding:
    """Folds rules for one stretch of time.

    Args:
        now: any time of the stretch, seconds since the epoch.
        atlas: of the rules' boundaries; `bound` is how many boundaries are remembered.
    """

    def __init__(self, rules: tuple[Rule, ...], now: float, atlas: Atlas, bound: int) -> None:
        self._rules = rules
        self._atlas = atlas
        self._width = len(atlas)
        self._remembered = bound
        self._bounds: dict[int, Boundary] = {}
        self._unfolded = tuple(Unfolded.of(rule, now) for rule in rules)
        self._process = Axis(self._both(_at(rule.process, now)) for rule in rules)
        self._retain = Axis(self._both(_at(rule.retain, now)) for rule in rules)
        self._demanding = sum(1 << n for n, rule in enumerate(self._unfolded) if rule.demands)

    def processed(self, start: Boundary, applying: int) -> Boundary:
        """What the rules leave of a boundary on the process axis."""
        return self._bound(self._process.met(self._pair(start), applying))

    def folded(self, start: Allowed, applying: int) -> Allowed:
        """What the rules leave of a grant when each of them is known to apply."""
        process = self._process.met(self._pair(start.process), applying)
        retain = self._retain.met(self._pair(start.retain), applying)
        within = self._bound(process)
        kept = within if retain == process else self._bound(retain)
        reasons = Reasons(self, applying)
        demanding = applying & self._demanding
        if demanding:
            return self._demanded(start, within, kept, reasons, demanding)
        rest = (start.operate, _NOTHING, NO_OBLIGATIONS, _NO_PREFERENCE, reasons, start.good_until)
        return tuple.__new__(Allowed, (within, kept, *rest))

    def _demanded(
        self, start: Allowed, within: Boundary, kept: Boundary, reasons: Reasons, demanding: int
    ) -> Allowed:
        rules = [self._unfolded[n] for n in bits(demanding)]
        operate, until = start.operate.mask, start.good_until
        for rule in rules:
            operate &= rule.operate
            until = sooner(until, rule.good_until)
        return Allowed(
            within,
            kept,
            Countries(operate),
            _NOTHING.union(*(rule.require for rule in rules)),
            _obligations(rules),
            frozenset(rule.prefer for rule in rules if rule.prefer is not None),
            reasons,
            until,
        )

    def explained(self, folded: Allowed, applying: int, unknown: int, ask: Ask) -> Allowed:
        """The same, where some rules apply since something is not known: the reasons say what."""
        process, retain, operate, require, obligations, prefer, _, until = folded
        reasons = Reasons(self, applying, unknown, ask)
        return Allowed(process, retain, operate, require, obligations, prefer, reasons, until)

    def reasons(self, applying: int, unknown: int, ask: Ask | None) -> frozenset[Applied]:
        """Why these rules apply; `ask` where something is not known."""
        known = applying & ~unknown
        found = {self._unfolded[n].known for n in bits(known)}
        facts = ask.facts if ask is not None else Attributes()
        for n in bits(unknown):
            rule = self._rules[n]
            silent = tuple(sorted(open_attributes(rule.condition, facts)))
            found.add(Applied(rule.name, rule.row, rule.because, silent))
        return frozenset(found)

    def good_until(self, rules: int) -> float | None:
        """The first end of any of these rules."""
        return earliest(self._unfolded[n].good_until for n in bits(rules))

    def _pair(self, one: Boundary) -> int:
        return one.sure | one.possible << self._width

    def _both(self, one: Boundary | None) -> int | None:
        return None if one is None else self._pair(one)

    def _bound(self, both: int) -> Boundary:
        known = self._bounds.get(both)
        if known is None:
            sure, possible = both & ((1 << self._width) - 1), both >> self._width
            bound = Boundary(self._atlas, sure, possible)
            known = kept(self._bounds, both, bound, self._remembered)
        return known


def kept(memory: dict[K, V], key: K, value: V, bound: int) -> V:
    """Remember a value; a full memory starts again."""
    if len(memory) >= bound:
        memory.clear()
    memory[key] = value
    return value


def _at(bound: Timed[Boundary] | None, now: float) -> Boundary | None:
    return None if bound is None else bound.at(now)


def _obligations(chosen: Iterable[Unfolded]) -> Obligations:
    result = NO_OBLIGATIONS
    for rule in chosen:
        for obligation in rule.obligations:
            result = result.add(obligation)
    return result
