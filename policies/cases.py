"""Cases: requests as data beside a policy, what the world is like, and what must come of it.

One runner for tests, command line and console. Coverage counts, for every rule, that some
case made it apply and some case did not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from pydantic import Field

from policies.attributes import AttributeRefused, Attributes, Supplied, gather, nearest
from policies.conditions import ALWAYS, Candidate
from policies.eligibility import Eligible, Excluded, judge
from policies.engine import Applied, Ask, Decision, decide
from policies.files import Moment, Strict, Words
from policies.loader import Loaded
from policies.opening import Choice, opened
from policies.timed import UNKNOWN_TIME, effective_now
from regions.boundaries import boundary
from regions.document import Document, Mark, parse_as
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Call, Endpoint, Footprint, Tier
from regions.places import PlaceError

DAY: Final = 86_400.0
Values = Mapping[str, Words]


class Request(Strict):
    """Who asks for what, and what each source says."""

    tenant: str
    app: str | None = None
    model: str
    purpose: Literal["interactive", "batch", "shadow", "probe"] = "interactive"
    headers: Values = Field(default_factory=dict)
    body: Values = Field(default_factory=dict)
    key: Values = Field(default_factory=dict)
    token: Values = Field(default_factory=dict)
    operator: Values = Field(default_factory=dict)
    classifiers: Mapping[str, Values] = Field(default_factory=dict)
    opened: Words = ()
    movers: Words = ()


class World(Strict):
    """What differs from a quiet day.

    `down` names endpoints, regions or providers; `widened` gives an endpoint's profile more
    places; `clock` is `behind` (the log is ahead of it) or `unknown`.
    """

    now: Moment | None = None
    clock: Literal["right", "behind", "unknown"] = "right"
    router: str | None = None
    down: Words = ()
    widened: Mapping[str, Words] = Field(default_factory=dict)


class Expect(Strict):
    """What must come of it; only what is given is checked."""

    endpoints: Words | None = None
    refused: str | None = None
    excluded: Values = Field(default_factory=dict)
    applied: Words | None = None
    because: Words = ()
    unknown: Words | None = None
    obligations: Words | None = None
    require: Words | None = None
    dry_run: Words | None = None
    processed_within: str | None = None
    retained_within: str | None = None


class Case(Strict):
    """One request with its world and expectations."""

    name: str
    request: Request
    world: World = World()
    expect: Expect


class CaseFile(Strict):
    """Cases of one policy, judged at `now` by the router in `router`."""

    version: Literal["1"] = "1"
    now: Moment
    router: str
    cases: Annotated[tuple[Case, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class Suite:
    """A case file with its places."""

    document: Document
    file: CaseFile

    @classmethod
    def parse(cls, text: str | bytes, name: str) -> Suite:
        """Read a case file.

        Raises:
            DocumentErrors: what is wrong in it.
        """
        return cls(*parse_as(text, name, CaseFile))

    def mark(self, number: int) -> Mark:
        """Where a case stands."""
        return self.document.mark(("cases", number))


@dataclass(frozen=True, slots=True)
class Happened:
    """What came of a case: open endpoints, or a refusal's code; `decision` unless refused early."""

    endpoints: tuple[str, ...] = ()
    refused: str | None = None
    decision: Decision | None = None
    excluded: Mapping[str, tuple[str, ...]] | None = None
    applied: frozenset[Applied] = frozenset()
    obligations: frozenset[str] = frozenset()
    require: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Result:
    """A case with what is wrong about it; nothing when it passed."""

    name: str
    mark: Mark
    problems: tuple[str, ...]
    happened: Happened


@dataclass(frozen=True, slots=True)
class Report:
    """All results, and the branches of rules that no case took."""

    results: tuple[Result, ...]
    uncovered: tuple[str, ...]
    branches: int

    @property
    def passed(self) -> bool:
        """Whether no case has a problem."""
        return not any(result.problems for result in self.results)

    @property
    def coverage(self) -> float:
        """The share of branches some case took, 0 to 1; 1 for a policy without rules."""
        return 1.0 - len(self.uncovered) / self.branches if self.branches else 1.0


def run(loaded: Loaded, suite: Suite) -> Report:
    """Run every case of a suite against a policy."""
    results = []
    for number, case in enumerate(suite.file.cases):
        happened, problems = Happened(), tuple(_misnamed(loaded, case))
        try:
            happened = happens(loaded, suite.file, case)
            problems += tuple(_problems(loaded, case, happened))
        except PlaceError as problem:
            problems += (str(problem),)
        results.append(Result(case.name, suite.mark(number), problems, happened))
    wanted = set(_branches(loaded))
    taken = {branch for result in results for branch in _taken(loaded, result.happened)}
    return Report(tuple(results), tuple(sorted(wanted - taken)), len(wanted))


def happens(loaded: Loaded, file: CaseFile, case: Case) -> Happened:
    """What comes of a case, by the same engine that serves requests."""
    policy, request = loaded.policy, case.request
    try:
        attributes = _attributes(loaded, request)
    except AttributeRefused as problem:
        return Happened(refused=problem.code)
    if request.model not in policy.models:
        return Happened(refused="model_not_found")
    now = _now(file, case.world)
    ask = Ask(request.tenant, request.app, attributes, request.purpose)
    decision = decide(policy, ask, now)
    router = case.world.router or file.router
    verdicts = [
        (_judged(loaded, case, decision, tier, endpoint, router, now))
        for tier, endpoint in policy.candidates(request.model)
    ]
    return _outcome(case, decision, verdicts, policy.atlas.place(router).mask)


def _judged(
    loaded: Loaded,
    case: Case,
    decision: Decision,
    tier: Tier,
    endpoint: Endpoint,
    router: str,
    now: float,
) -> tuple[Eligible | Excluded, Endpoint, Footprint]:
    call = replace(PLAIN_CALL, movers=frozenset(case.request.movers))
    where = _footprint(loaded, case.world, endpoint, call, now)
    candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
    return judge(decision, candidate, endpoint, where, router, now), endpoint, where


def _footprint(
    loaded: Loaded, world: World, endpoint: Endpoint, call: Call, now: float
) -> Footprint:
    found = footprint(endpoint, call, loaded.catalog, now)
    more = world.widened.get(endpoint.name)
    if not more:
        return found
    return replace(found, process=found.process | loaded.catalog.atlas.place(*more))


def _outcome(
    case: Case,
    decision: Decision,
    verdicts: list[tuple[Eligible | Excluded, Endpoint, Footprint]],
    router: int,
) -> Happened:
    eligible = [(v, e, f) for v, e, f in verdicts if isinstance(v, Eligible)]
    excluded = {e.name: v.codes for v, e, _ in verdicts if isinstance(v, Excluded)}
    alive = [
        Choice(e.name, f.process, v.allowed.prefer)
        for v, e, f in eligible
        if not _is_down(case.world, e, f)
    ]
    endpoints = opened(alive)
    allowed = [decision.common, *(v.allowed for v, _, _ in eligible)]
    return Happened(
        endpoints,
        _refusal(decision, bool(eligible), bool(alive), bool(endpoints), router),
        decision,
        excluded,
        frozenset(one for a in allowed for one in a.applied),
        frozenset(kind for a in allowed for kind in a.obligations.held),
        frozenset(name for a in allowed for name in a.require),
    )


def _refusal(
    decision: Decision, eligible: bool, alive: bool, opens: bool, router: int
) -> str | None:
    """The code a client would get, as the twelve steps give it."""
    if decision.denied:
        return decision.denied
    if decision.common.conflict:
        return "obligations_conflict"
    if router & ~decision.common.process.sure:
        return "misdirected"
    if not eligible:
        return "no_endpoint_inside_boundary"
    if not alive:
        return "no_endpoint_available"
    return None if opens else "prefer_conflict"


def _is_down(world: World, endpoint: Endpoint, where: Footprint) -> bool:
    """Named itself, by its provider, or all its regions by theirs."""
    down = set(world.down)
    if {endpoint.name, endpoint.provider} & down:
        return True
    return endpoint.source in down or set(where.process.ids) <= down


def _now(file: CaseFile, world: World) -> float:
    clock = world.now if world.now is not None else file.now
    if world.clock == "unknown":
        return UNKNOWN_TIME
    newest = clock + DAY if world.clock == "behind" else None
    return effective_now(clock, newest).time


def _attributes(loaded: Loaded, request: Request) -> Attributes:
    policy = loaded.policy
    supplied = list(_records(loaded, request))
    said: Mapping[str, Values] = {
        "header": request.headers,
        "body": request.body,
        "key": request.key,
        "token": request.token,
        "operator": request.operator,
        **{f"classifier:{name}": values for name, values in request.classifiers.items()},
    }
    for source, values in said.items():
        supplied += [Supplied(name, tuple(v), source) for name, v in values.items()]
    return gather(policy.declared, supplied, policy.trusted(request.app), request.opened)


def _records(loaded: Loaded, request: Request) -> Iterator[Supplied]:
    """What the tenant's and the app's own records say."""
    tenant = loaded.policy.tenants.get(request.tenant)
    app = loaded.policy.apps.get(request.app or "")
    for name, values in tenant.attributes.items() if tenant is not None else ():
        yield Supplied(name, tuple(values), "tenant")
    for name, values in app.attributes.items() if app is not None else ():
        yield Supplied(name, tuple(values), "app")


# -- judging a case --------------------------------------------------------------------------


def _misnamed(loaded: Loaded, case: Case) -> Iterator[str]:
    """Names of the world that name nothing: such a case would pass for the wrong reason."""
    endpoints = loaded.policy.endpoints
    providers = {endpoint.provider for endpoint in endpoints.values()}
    for name in case.world.down:
        if name not in endpoints and name not in providers and name not in loaded.policy.atlas:
            known = {*endpoints, *providers}
            yield f"down: `{name}` is no endpoint, provider or region{nearest(name, known)}"
    for name in (*case.world.widened, *case.expect.excluded):
        if name not in endpoints:
            yield f"`{name}` is no endpoint{nearest(name, endpoints)}"


def _problems(loaded: Loaded, case: Case, happened: Happened) -> Iterator[str]:
    expect = case.expect
    if expect.endpoints is not None and happened.endpoints != expect.endpoints:
        yield f"endpoints: expected {list(expect.endpoints)}, got {list(happened.endpoints)}"
    if happened.refused != expect.refused:
        yield f"refused: expected `{expect.refused}`, got `{happened.refused}`"
    for name, codes in expect.excluded.items():
        found = (happened.excluded or {}).get(name, ())
        for code in codes:
            if code not in found:
                yield f"`{name}` should be excluded by `{code}`, not by {list(found)}"
    yield from _sets(happened, expect)
    yield from _bounds(loaded, happened, expect)


def _sets(happened: Happened, expect: Expect) -> Iterator[str]:
    decision = happened.decision
    found: Mapping[str, frozenset[str]] = {
        "applied": frozenset(one.rule for one in happened.applied),
        "unknown": frozenset(decision.unknowns if decision is not None else ()),
        "dry_run": frozenset(decision.dry_run if decision is not None else ()),
        "obligations": happened.obligations,
        "require": happened.require,
    }
    for key, values in found.items():
        wanted = getattr(expect, key)
        if wanted is not None and frozenset(wanted) != values:
            yield f"{key}: expected {sorted(wanted)}, got {sorted(values)}"
    reasons = {one.because for one in happened.applied}
    for because in expect.because:
        if because not in reasons:
            yield f"because: no applied rule says `{because}`"


def _bounds(loaded: Loaded, happened: Happened, expect: Expect) -> Iterator[str]:
    if happened.decision is None:
        return
    common = happened.decision.common
    axes = (
        ("processed_within", expect.processed_within, common.process),
        ("retained_within", expect.retained_within, common.retain),
    )
    for key, text, allowed in axes:
        if text is None:
            continue
        named = {n: b.values[0] for n, b in loaded.policy.boundaries.items()}
        try:
            outside = allowed.sure & ~boundary(text, loaded.policy.atlas, named).sure
        except PlaceError as problem:
            yield f"{key}: {problem}"
            continue
        if outside:
            yield f"{key}: `{text}` is exceeded"


def _branches(loaded: Loaded) -> Iterator[str]:
    for rule in loaded.policy.rules:
        name = f"{rule.name} [{rule.row}]" if rule.row else rule.name
        yield f"{name}: applies"
        if rule.condition != ALWAYS:
            yield f"{name}: does not apply"


def _taken(loaded: Loaded, happened: Happened) -> Iterator[str]:
    if happened.decision is None:
        return
    applied = {(one.rule, one.row) for one in happened.applied}
    applied |= {(rule, "") for rule in happened.decision.dry_run}
    for rule in loaded.policy.rules:
        name = f"{rule.name} [{rule.row}]" if rule.row else rule.name
        took = (rule.name, rule.row) in applied
        yield f"{name}: {'applies' if took else 'does not apply'}"
