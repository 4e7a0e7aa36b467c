"""Three-valued conditions over a request's attributes and, symbolically, over the candidate.

What the candidate is becomes known only when an endpoint is looked at: until then a
condition over the served model, the provider or the tier is UNKNOWN.

| p       | q       | all     | any     | not p   |
|---------|---------|---------|---------|---------|
| TRUE    | UNKNOWN | UNKNOWN | TRUE    | FALSE   |
| UNKNOWN | UNKNOWN | UNKNOWN | UNKNOWN | UNKNOWN |
| FALSE   | UNKNOWN | FALSE   | UNKNOWN | TRUE    |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from typing_extensions import override

from policies.attributes import Attributes, Truth
from regions.model import Tier


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a rule may ask of an endpoint: the model it serves, its provider, its tier."""

    endpoint: str
    model: str
    provider: str
    tier: Tier

    def get(self, key: str) -> str:
        """The value a condition compares with, for `served_model`, `provider` or `tier`."""
        if key == "served_model":
            return self.model
        return self.provider if key == "provider" else self.tier.label


class Condition(ABC):
    """Something a rule may ask of a request and a candidate."""

    __slots__ = ()

    @property
    @abstractmethod
    def needs_candidate(self) -> bool:
        """Whether any part of it asks about the candidate."""

    @abstractmethod
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        """Its truth for this request; `candidate=None` leaves the candidate unknown."""

    @abstractmethod
    def leaves(self) -> Iterator[Comparison]:
        """Every comparison in it."""

    @abstractmethod
    def describe(self) -> str:
        """One line, as in `data_class: health`."""


class Comparison(Condition):
    """Whether what is looked at has one of `values`; `subject` says what that is."""

    __slots__ = ()
    values: frozenset[str]

    @property
    @abstractmethod
    def subject(self) -> str:
        """The attribute's or the candidate's word."""

    @override
    def leaves(self) -> Iterator[Comparison]:
        yield self

    @override
    def describe(self) -> str:
        return f"{self.subject}: {_listed(self.values)}"


@dataclass(frozen=True, slots=True)
class Is(Comparison):
    """One of `values` is among the attribute's values."""

    attribute: str
    values: frozenset[str]

    @property
    @override
    def subject(self) -> str:
        return self.attribute

    @property
    @override
    def needs_candidate(self) -> bool:
        return False

    @override
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        return facts[self.attribute].has_any(self.values)


@dataclass(frozen=True, slots=True)
class CandidateIs(Comparison):
    """The candidate's `served_model`, `provider` or `tier` is one of `values`."""

    key: str
    values: frozenset[str]

    @property
    @override
    def subject(self) -> str:
        return self.key

    @property
    @override
    def needs_candidate(self) -> bool:
        return True

    @override
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        if candidate is None:
            return Truth.UNKNOWN
        return Truth.TRUE if candidate.get(self.key) in self.values else Truth.FALSE


@dataclass(frozen=True, slots=True)
class _Several(Condition):
    """Conditions put together."""

    parts: tuple[Condition, ...] = ()

    @property
    @override
    def needs_candidate(self) -> bool:
        return any(part.needs_candidate for part in self.parts)

    @override
    def leaves(self) -> Iterator[Comparison]:
        for part in self.parts:
            yield from part.leaves()

    def _joined(self, word: str) -> str:
        return f" {word} ".join(f"({part.describe()})" for part in self.parts)


@dataclass(frozen=True, slots=True)
class AllOf(_Several):
    """Every part holds; without parts it always does."""

    @override
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        return min((p.truth(facts, candidate) for p in self.parts), default=Truth.TRUE)

    @override
    def describe(self) -> str:
        return self._joined("and") or "always"


@dataclass(frozen=True, slots=True)
class AnyOf(_Several):
    """At least one part holds; without parts none does."""

    @override
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        return max((p.truth(facts, candidate) for p in self.parts), default=Truth.FALSE)

    @override
    def describe(self) -> str:
        return self._joined("or") or "never"


@dataclass(frozen=True, slots=True)
class Not(Condition):
    """The part does not hold. Only over attributes that nobody can claim (law 5)."""

    part: Condition

    @property
    @override
    def needs_candidate(self) -> bool:
        return self.part.needs_candidate

    @override
    def truth(self, facts: Attributes, candidate: Candidate | None) -> Truth:
        return Truth(2 - self.part.truth(facts, candidate))

    @override
    def leaves(self) -> Iterator[Comparison]:
        return self.part.leaves()

    @override
    def describe(self) -> str:
        return f"not ({self.part.describe()})"


ALWAYS: Final = AllOf()


def negated_leaves(condition: Condition, under: bool = False) -> Iterator[Comparison]:
    """Every comparison that stands under a `not`: none of them may be over a claimable one."""
    if isinstance(condition, Not):
        yield from negated_leaves(condition.part, under=True)
    elif isinstance(condition, AllOf | AnyOf):
        for part in condition.parts:
            yield from negated_leaves(part, under)
    elif under:
        yield from condition.leaves()


def open_attributes(condition: Condition, facts: Attributes) -> frozenset[str]:
    """The attributes whose openness leaves a comparison of this condition unknown."""
    return frozenset(
        leaf.attribute
        for leaf in condition.leaves()
        if isinstance(leaf, Is) and leaf.truth(facts, None) is Truth.UNKNOWN
    )


def _listed(values: frozenset[str]) -> str:
    return next(iter(values)) if len(values) == 1 else f"[{', '.join(sorted(values))}]"
