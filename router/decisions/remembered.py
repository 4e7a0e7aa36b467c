"""What was worked out about requests alike, for as long as nothing it depends on changes.

A hit equals what steps 1, 3 and 4 would compute afresh: a memory belongs to one snapshot, and is
emptied whenever time passes a moment at which the policy changes. Keys hold everything else that
counts: whose key, what the head and the body say, what the classifiers found, and the purpose.
Each part is bounded: a client that varies what it says fills it, and it starts again.
"""

from __future__ import annotations

from math import inf
from typing import Final, TypeVar

from classifiers.suite import NOTHING, Findings, Suite
from policies.attributes import Attributes
from policies.compiled import Compiled
from policies.engine import Decision
from router import deciding
from router.inbound.misdirection import Direction
from router.inbound.said import attributes_in, said_in_body
from router.snapshot import Snapshot
from router.types import (
    Admitted,
    Authenticated,
    Classified,
    Decided,
    Purpose,
    make_classified,
    make_decided,
)

K = TypeVar("K")
V = TypeVar("V")

BOUND: Final = 8192
"""Entries of each kind."""


class Memory:
    """Steps 1, 3 and 4 with a memory; belongs to one event loop. See `deciding`."""

    __slots__ = ("_at", "_before")

    def __init__(self) -> None:
        self._at: _OfSnapshot | None = None
        self._before: _OfSnapshot | None = None

    def _of(self, snapshot: Snapshot) -> _OfSnapshot:
        """The memory of a snapshot; requests in flight may still have the one before."""
        found = self._at
        if found is not None and found.snapshot is snapshot:
            return found
        if self._before is not None and self._before.snapshot is snapshot:
            return self._before
        self._before, self._at = found, _OfSnapshot(snapshot)
        return self._at

    def elsewhere(self, known: Authenticated) -> Direction | None:
        """See `deciding.elsewhere`."""
        return self._of(known.arrival.snapshot).elsewhere(known)

    def classified(self, admitted: Admitted, suite: Suite) -> Classified:
        """See `deciding.classified`; the prompt is looked into only if somebody reads it."""
        asked, surface = admitted.asked, admitted.arrival.surface
        of = self._of(admitted.snapshot)
        if suite.empty and asked.model not in admitted.snapshot.difficulty:
            tokens = asked.texts
            if tokens is None:
                tokens = surface.tokens(admitted.body)
            attributes = of.attributes(admitted, NOTHING)
            return make_classified(admitted, attributes, tokens + asked.output_tokens, tokens)
        view = surface.view(admitted.body, asked.texts)
        attributes = of.attributes(admitted, suite.run(view))
        return make_classified(
            admitted, attributes, view.tokens + asked.output_tokens, view.tokens, view
        )

    def decided(self, classified: Classified) -> Decided:
        """See `deciding.decided`."""
        admitted = classified.admitted
        return make_decided(classified, self._of(admitted.snapshot).decision(classified))


class _OfSnapshot:
    """The memory of one snapshot."""

    __slots__ = ("_attributes", "_compiled", "_decisions", "_outer", "_since", "_until", "snapshot")

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._compiled = Compiled(snapshot.policy)
        self._since, self._until = inf, -inf
        self._outer: dict[object, Direction | None] = {}
        self._attributes: dict[object, Attributes] = {}
        self._decisions: dict[tuple[int, Purpose], Decision] = {}

    def _look_at(self, now: float) -> None:
        """Forget when the policy may have changed. An unknown time is remembered by nothing."""
        if not self._since <= now < self._until:
            self._since, self._until = self._compiled.constant(now)
            self._outer.clear()
            self._decisions.clear()

    def elsewhere(self, known: Authenticated) -> Direction | None:
        self._look_at(known.now.time)
        arrival, principal = known.arrival, known.principal
        head = arrival.exchange.head
        said = attributes_in(head) if head.own else ()
        key = (principal.key, principal.tenant, principal.app, said, arrival.purpose)
        try:
            return self._outer[key]
        except KeyError:
            found = deciding.elsewhere(known, self._compiled)
        return _kept(self._outer, key, found)

    def attributes(self, admitted: Admitted, found: Findings) -> Attributes:
        """One object for all requests of which the same is known, by which they are found again."""
        known = admitted.authenticated
        said = known.arrival.exchange.head
        head = attributes_in(said) if said.own else ()
        body = said_in_body(admitted)
        holder = known.principal
        claims = None if found is NOTHING else (found.findings, found.opened)
        key = (holder.key, holder.tenant, holder.app, head, body, claims)
        attributes = self._attributes.get(key)
        if attributes is None:
            attributes = deciding.gathered(admitted, body, found)
            _kept(self._attributes, key, attributes)
        return attributes

    def decision(self, classified: Classified) -> Decision:
        known = classified.admitted.authenticated
        now = known.now.time
        self._look_at(now)
        attributes = classified.attributes
        key = (id(attributes), known.arrival.purpose)
        found = self._decisions.get(key)
        # An id is another object's once the first is gone, which the entry's own prevents.
        if found is None or found.ask.attributes is not attributes:
            found = self._compiled.decide(deciding.ask(known, attributes), now)
            _kept(self._decisions, key, found)
        if found.now == now:
            return found
        ask, common, pending, dry, denied, digest, _, until = found
        return Decision(ask, common, pending, dry, denied, digest, now, until)


def _kept(memory: dict[K, V], key: K, value: V) -> V:
    if len(memory) >= BOUND:
        memory.clear()
    memory[key] = value
    return value
