"""Obligations: what a rule demands of the endpoint, the data or the record.

Each kind is a frozen dataclass whose `meet` is associative and commutative and gives
`None` when nothing satisfies both; then the request is refused (`obligations_conflict`).
What an obligation removes is in `policies.eligibility`; what it changes in the request is
enforced by the router, which does not start when a kind has no enforcer.

| kind              | effect                                                              |
|-------------------|---------------------------------------------------------------------|
| zero_retention    | only endpoints that keep nothing, or hold the assurance `zdr`       |
| redact            | identifiers of these kinds are replaced before anything is sent     |
| no_batch          | the request is not accepted as a line of a batch                    |
| no_store          | nothing of the conversation is stored, by us or by the provider     |
| tier              | the tier is not below a floor nor above a ceiling                   |
| max_price         | only endpoints with a known price at most this                      |
| in_region         | only endpoints that process in exactly one listed region            |
| no_global         | no profile whose places may be anywhere                             |
| record_retention  | the record of the request is kept at least, and at most, so long    |
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Self

from typing_extensions import override

from policies.timed import earliest
from regions.model import Price, Tier


class Obligation(ABC):
    """One kind of obligation. Kinds without a setting meet by being the same."""

    __slots__ = ()
    kind: ClassVar[str]

    def meet(self, other: Self) -> Self | None:
        """One obligation that satisfies both of this kind; `None` when there is none."""
        return other

    def describe(self) -> Mapping[str, object]:
        """Its settings in closed words, for the log."""
        return {}


@dataclass(frozen=True, slots=True)
class ZeroRetention(Obligation):
    """The provider keeps nothing of the call."""

    kind: ClassVar[str] = "zero_retention"


@dataclass(frozen=True, slots=True)
class Redact(Obligation):
    """Identifiers of these kinds are replaced in the prompt; more kinds redact more."""

    kind: ClassVar[str] = "redact"
    identifiers: frozenset[str] = frozenset()

    @override
    def meet(self, other: Redact) -> Redact | None:
        return Redact(self.identifiers | other.identifiers)

    @override
    def describe(self) -> Mapping[str, object]:
        return {"identifiers": sorted(self.identifiers)}


@dataclass(frozen=True, slots=True)
class NoBatch(Obligation):
    """Not as a line of a batch."""

    kind: ClassVar[str] = "no_batch"


@dataclass(frozen=True, slots=True)
class NoStore(Obligation):
    """Nothing of the conversation is stored."""

    kind: ClassVar[str] = "no_store"


@dataclass(frozen=True, slots=True)
class TierRange(Obligation):
    """The tier is at least `floor` and at most `ceiling`."""

    kind: ClassVar[str] = "tier"
    floor: Tier = Tier.SMALL
    ceiling: Tier = Tier.LARGE

    @override
    def meet(self, other: TierRange) -> TierRange | None:
        floor, ceiling = max(self.floor, other.floor), min(self.ceiling, other.ceiling)
        return TierRange(floor, ceiling) if floor <= ceiling else None

    @override
    def describe(self) -> Mapping[str, object]:
        return {"floor": self.floor.label, "ceiling": self.ceiling.label}


ANY_TIER: Final = TierRange()


@dataclass(frozen=True, slots=True)
class MaxPrice(Obligation):
    """US dollars per million tokens, at most; `None` leaves that side unbounded."""

    kind: ClassVar[str] = "max_price"
    input: float | None = None
    output: float | None = None

    @override
    def meet(self, other: MaxPrice) -> MaxPrice | None:
        return MaxPrice(earliest((self.input, other.input)), earliest((self.output, other.output)))

    def admits(self, price: Price) -> bool:
        """Whether a price is known and low enough on each bounded side."""
        sides = ((self.input, price.input), (self.output, price.output))
        return all(cap is None or (cost is not None and cost <= cap) for cap, cost in sides)

    @override
    def describe(self) -> Mapping[str, object]:
        return {"input": self.input, "output": self.output}


@dataclass(frozen=True, slots=True)
class InRegion(Obligation):
    """Processed in exactly one listed region."""

    kind: ClassVar[str] = "in_region"


@dataclass(frozen=True, slots=True)
class NoGlobal(Obligation):
    """Not through a profile whose places may be anywhere."""

    kind: ClassVar[str] = "no_global"


@dataclass(frozen=True, slots=True)
class RecordRetention(Obligation):
    """The record is kept between `least` and `most` seconds; `most=None` is without end."""

    kind: ClassVar[str] = "record_retention"
    least: float = 0.0
    most: float | None = None

    @override
    def meet(self, other: RecordRetention) -> RecordRetention | None:
        least, most = max(self.least, other.least), earliest((self.most, other.most))
        return RecordRetention(least, most) if most is None or least <= most else None

    @override
    def describe(self) -> Mapping[str, object]:
        return {"least": self.least, "most": self.most}


# The kinds of identifiers that can be found and replaced; the router's enforcer knows each.
IDENTIFIERS: Final = frozenset(
    {"card", "email", "iban", "ip_address", "medical_record", "national_id", "passport", "phone"}
)

AnyObligation = (
    ZeroRetention
    | Redact
    | NoBatch
    | NoStore
    | TierRange
    | MaxPrice
    | InRegion
    | NoGlobal
    | RecordRetention
)

KINDS: Final[Mapping[str, type[AnyObligation]]] = {
    kind.kind: kind
    for kind in (
        ZeroRetention,
        Redact,
        NoBatch,
        NoStore,
        TierRange,
        MaxPrice,
        InRegion,
        NoGlobal,
        RecordRetention,
    )
}


def meet(one: AnyObligation, other: AnyObligation) -> AnyObligation | None:
    """Both obligations of one kind as one; `None` when nothing satisfies both."""
    if one.kind != other.kind:
        raise TypeError(f"obligations `{one.kind}` and `{other.kind}` are of different kinds")
    return one.meet(other)  # type: ignore[arg-type]  # same kind, so the same class


@dataclass(frozen=True, slots=True)
class Obligations:
    """At most one obligation per kind; a kind whose meet was empty stays a conflict."""

    held: Mapping[str, AnyObligation] = field(default_factory=dict)
    conflicts: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[AnyObligation]:
        return iter([self.held[kind] for kind in sorted(self.held)])

    def __contains__(self, kind: object) -> bool:
        return kind in self.held or kind in self.conflicts

    def get(self, kind: str) -> AnyObligation | None:
        """The obligation of this kind, if any."""
        return self.held.get(kind)

    def add(self, one: AnyObligation) -> Obligations:
        """These obligations and one more."""
        if one.kind in self.conflicts:
            return self
        before = self.held.get(one.kind)
        both = one if before is None else meet(before, one)
        if both is not None:
            return Obligations({**self.held, one.kind: both}, self.conflicts)
        rest = {kind: o for kind, o in self.held.items() if kind != one.kind}
        return Obligations(rest, self.conflicts | {one.kind})

    @property
    def tiers(self) -> TierRange:
        """The tiers allowed; all when no rule says otherwise."""
        held = self.held.get(TierRange.kind)
        if held is None:
            return ANY_TIER  # as nearly always; to ask for the type is a call of Python
        return held if isinstance(held, TierRange) else ANY_TIER

    @property
    def record_retention(self) -> RecordRetention:
        """How long the record is kept; unbounded when no rule says otherwise."""
        held = self.held.get(RecordRetention.kind)
        return held if isinstance(held, RecordRetention) else RecordRetention()

    def describe(self) -> Mapping[str, object]:
        """The closed-vocabulary form for the log."""
        held: dict[str, object] = {o.kind: o.describe() for o in self.held.values()}
        return {**held, **dict.fromkeys(self.conflicts, "conflict")}


NO_OBLIGATIONS: Final = Obligations()
