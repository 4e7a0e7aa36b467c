"""What a report counts: cells of requests, what failed on the way, and what else happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Family: TypeAlias = Literal["processed", "unanswered", "refused", "misdirected", "open"]
RECORDS: Final = 5
"""Records that are named for each cell; `audit query` lists all."""


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """The part of a cell that is always named: where, who received, under what; or why not.

    `told` is whether the provider itself told the place; otherwise `places` are all it may have
    been. `code` says why a request was refused or not answered.
    """

    countries: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    told: bool = False
    recipient: str = ""
    mechanism: str = ""
    retained: str = ""
    law: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Requests alike: the finest that a report tells apart."""

    family: Family
    tenant: str
    data_class: str
    kept: Kept


@dataclass(frozen=True, slots=True)
class Ref:
    """An entry that a figure counts."""

    log: str
    index: int
    request: str

    @property
    def record(self) -> str:
        """As answers carry it and commands take it."""
        return f"{self.log}/{self.index}"


@dataclass(frozen=True, slots=True, order=True)
class Failed:
    """One way in which an endpoint did not answer; `places` are where it may have been sent."""

    endpoint: str
    result: str
    places: tuple[str, ...]
    countries: tuple[str, ...]
    recipient: str


@dataclass(slots=True)
class Tally:
    """What is counted of one group. `covered` lie below an anchor that was given, `hidden` may not
    be named where the reader is."""

    count: int = 0
    covered: int = 0
    hidden: int = 0
    steps: Counter[int] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    trials: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: Counter[Failed] = field(default_factory=Counter)
    moved: int = 0
    routers: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    endpoints: set[str] = field(default_factory=set)
    records: list[Ref] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count another's too."""
        self.count += other.count
        self.covered += other.covered
        self.hidden += other.hidden
        self.moved += other.moved
        for name in ("steps", "statuses", "rules", "trials", "failed", "routers"):
            getattr(self, name).update(getattr(other, name))
        self.endpoints |= other.endpoints
        self.records = [*self.records, *other.records][:RECORDS]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to the router, not to one request."""

    time: int
    record: str
    kind: str
    what: str
    who: str
    detail: str


@dataclass(frozen=True, slots=True)
class Silence:
    """A running process wrote nothing from one time to another, microseconds."""

    log: str
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class Covered:
    """How far one log is held elsewhere: lines below the anchor, and the newest time there."""

    size: int
    newest: int


def summed(tallies: Iterable[Tally]) -> Tally:
    """All of them together."""
    whole = Tally()
    for one in tallies:
        whole.add(one)
    return whole
