"""What a change of policy means for requests that were made: decided again, as recorded.

The region log keeps what was known of each request, not its prompt. Each is decided under
both policies at one time, and its model's endpoints are judged for a plain call: what in a
call moved bytes is not in a decision's record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from policies.attributes import AUTHORITATIVE, Supplied, gather
from policies.conditions import Candidate
from policies.eligibility import Eligible, judge
from policies.engine import Ask, decide
from policies.loader import Loaded
from policies.model import Policy
from policies.proving.requests import records, role
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Footprint


@dataclass(frozen=True, slots=True)
class Known:
    """What was known of one attribute: who said which value, and whether that was all."""

    name: str
    said: frozenset[tuple[str, str]]
    closed: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded request, as far as policy may know it. `said` pairs hold value and source."""

    tenant: str
    app: str | None
    model: str
    purpose: str
    router: str
    attributes: frozenset[Known]


@dataclass(frozen=True, slots=True)
class Served:
    """What one policy does with a request: its endpoints, and the places these may run in."""

    endpoints: frozenset[str]
    places: frozenset[str]


@dataclass(frozen=True, slots=True)
class Shift:
    """Requests of one tenant for one model that change in the same way."""

    tenant: str
    model: str
    count: int
    before: Served
    after: Served

    @property
    def gained(self) -> tuple[str, ...]:
        """Places they may run in only after the change."""
        return tuple(sorted(self.after.places - self.before.places))

    @property
    def lost(self) -> tuple[str, ...]:
        """Places they may run in only before it."""
        return tuple(sorted(self.before.places - self.after.places))

    @property
    def how(self) -> str:
        """`now refused`, `now served`, or `other endpoints`."""
        if not self.after.endpoints:
            return "now refused"
        return "other endpoints" if self.before.endpoints else "now served"


@dataclass(frozen=True, slots=True)
class Shifts:
    """What changes, most requests first; `total` requests were looked at, `same` don't change."""

    shifts: tuple[Shift, ...]
    total: int

    @property
    def same(self) -> int:
        """Requests that reach the same endpoints before and after."""
        return self.total - sum(shift.count for shift in self.shifts)

    @property
    def widens(self) -> bool:
        """Whether any of them may run in a place that it could not run in before."""
        return any(shift.gained for shift in self.shifts)


def shifts(old: Loaded, new: Loaded, recorded: Iterable[Recorded], now: float) -> Shifts:
    """Decide each recorded request under both policies, and count what changes.

    Args:
        now: seconds since the epoch at which both are decided.
    """
    counts = Counter(recorded)
    before, after = _Serving(old, old.policy, now), _Serving(new, old.policy, now)
    found: Counter[tuple[str, str, Served, Served]] = Counter()
    for one, count in counts.items():
        was, is_ = before.of(one), after.of(one)
        if was != is_:
            found[one.tenant, one.model, was, is_] += count
    order = sorted(found.items(), key=lambda item: (-item[1], item[0][:2]))
    made = (Shift(*key[:2], count, *key[2:]) for key, count in order)
    return Shifts(tuple(made), counts.total())


class _Serving:
    """One policy's answers. `first` is the policy the requests were recorded under."""

    def __init__(self, loaded: Loaded, first: Policy, now: float) -> None:
        self._policy = loaded.policy
        self._first = first
        self._now = now
        self._footprints: Mapping[str, Footprint] = {
            name: footprint(endpoint, PLAIN_CALL, loaded.catalog, now)
            for name, endpoint in loaded.policy.endpoints.items()
        }

    def of(self, one: Recorded) -> Served:
        """Where the request may go."""
        tenant = self._policy.tenants.get(one.tenant)
        if tenant is None or one.model not in self._policy.models:
            return Served(frozenset(), frozenset())
        if tenant.models is not None and one.model not in tenant.models:
            return Served(frozenset(), frozenset())
        names = frozenset(self._eligible(one))
        places = (self._footprints[name].process.ids for name in names)
        return Served(names, frozenset(place for ids in places for place in ids))

    def _eligible(self, one: Recorded) -> Iterator[str]:
        opened = [known.name for known in one.attributes if self._was_opened(known)]
        supplied = [*records(self._policy, one.tenant, one.app), *self._said(one)]
        known = [name for name in opened if name in self._policy.declared]
        attributes = gather(self._policy.declared, supplied, self._policy.trusted(one.app), known)
        ask = Ask(one.tenant, one.app, attributes, one.purpose)
        decision = decide(self._policy, ask, self._now)
        for tier, endpoint in self._policy.candidates(one.model):
            candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
            where = self._footprints[endpoint.name]
            verdict = judge(decision, candidate, endpoint, where, one.router, self._now)
            if isinstance(verdict, Eligible):
                yield endpoint.name

    def _said(self, one: Recorded) -> Iterator[Supplied]:
        """What was said, as this policy accepts it; records speak for themselves."""
        trusted = self._policy.trusted(one.app)
        app = self._first.apps.get(one.app) if one.app is not None else None
        carried = app.attributes if app is not None else {}
        for known in one.attributes:
            declared = self._policy.declared.get(known.name)
            for value, source in sorted(known.said):
                of_app = source == "app" and value in carried.get(known.name, ())
                if source == "tenant" or of_app:
                    continue
                # A trusted app's header is recorded as the app's own word.
                spoken = "header" if source == "app" else source
                accepted = role(self._policy, known.name, spoken, known.name in trusted)
                if declared is not None and value in declared.values and accepted:
                    yield Supplied(known.name, (value,), spoken)

    def _was_opened(self, known: Known) -> bool:
        """Open although something settled it: a classifier had not finished."""
        declared = self._first.declared.get(known.name)
        settled = any(source in AUTHORITATIVE for _, source in known.said)
        settled = settled or (declared is not None and bool(declared.default))
        return settled and not known.closed
