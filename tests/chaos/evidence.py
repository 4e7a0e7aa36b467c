"""What the region log, the upstream records and the clients say of the same requests, compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from router.audit.layout import Folder
from router.audit.lines import Value
from router.audit.reading import LogReader, Shown
from router.errors import ANSWERS
from router.simulator.bedrock import BedrockCall
from router.simulator.fleet import SimulatedFleet
from tests.chaos.world import OUTSIDE, TENANTS, Clock, Heard

REFUSALS = frozenset({403, 421, 429, 502, 503, 504})
TICK = 2e-6
"""Log times are whole microseconds."""


@dataclass(slots=True)
class Trace:
    """One request in the log: entries in order; times in seconds since the epoch."""

    id: str
    decision: Shown | None = None
    refusals: list[Shown] = field(default_factory=list)
    attempts: list[Shown] = field(default_factory=list)
    outcomes: list[Shown] = field(default_factory=list)

    def add(self, shown: Shown) -> None:
        """One more entry of this request."""
        match shown.kind:
            case "decision":
                assert self.decision is None, f"{shown.place}: decided twice"
                self.decision = shown
            case "attempt":
                self.attempts.append(shown)
            case "outcome":
                self.outcomes.append(shown)
            case _:
                self.refusals.append(shown)

    @property
    def plan(self) -> list[str]:
        """The endpoints decided for."""
        return [] if self.decision is None else texts(self.decision.body["plan"])

    @property
    def tenant(self) -> str:
        """Who asked."""
        assert self.decision is not None
        who = self.decision.body["who"]
        assert isinstance(who, dict)
        return str(who["tenant"])

    @property
    def tried(self) -> list[Mapping[str, Value]]:
        """The attempts its outcome tells of."""
        told = self.outcomes[0].body.get("attempts", []) if self.outcomes else []
        assert isinstance(told, list)
        return [one for one in told if isinstance(one, dict)]

    @property
    def status(self) -> str:
        """How it ended."""
        return str(self.outcomes[0].body["status"]) if self.outcomes else "open"


def texts(value: Value) -> list[str]:
    """A list of words in an entry."""
    assert isinstance(value, list)
    return [str(one) for one in value]


def traces(log: Path, names: Sequence[str] = ("eu-1",)) -> dict[str, Trace]:
    """Every request in the logs of these names, by its id."""
    found: dict[str, Trace] = {}
    readers = [LogReader(Folder(log).log(name)) for name in names]
    for shown in (one for reader in readers for one in reader.entries()):
        if shown.id:
            found.setdefault(shown.id, Trace(shown.id)).add(shown)
    return found


def endpoint_of(region: str) -> str:
    """The endpoint whose replicas are in a region: `fra` in `self:fra1`."""
    return region.removeprefix("self:").removesuffix("1")


@dataclass(frozen=True, slots=True)
class Reached:
    """One request that reached an upstream: which request, where, when (seconds, log's clock)."""

    request: str
    endpoint: str
    replica: str
    at: float


def reached(
    fleet: SimulatedFleet, calls: Iterable[BedrockCall], log: Path, clock: Clock | None = None
) -> Iterator[Reached]:
    """What upstreams saw, oldest first at each. `clock`: the router's, if it has not the machine's,
    which is set right now and then, and so can't be told from a monotonic one."""
    for replica in fleet:
        endpoint = endpoint_of(replica.region)
        for hit in replica.seen:
            if hit.request_id == "probe":
                continue  # a canary: a constant prompt, no client's request
            at = hit.wall if clock is None else clock.at(hit.at)
            yield Reached(hit.request_id, endpoint, replica.name, at)
    by_index = {
        trace.decision.place.index: trace.id
        for trace in traces(log).values()
        if trace.decision is not None
    }
    endpoints = {"us-east-1": "sonnet-us", "eu-central-1": "sonnet-eu"}
    for call in calls:
        if call.method == "GET":
            continue  # a question about profiles: no prompt in it
        named = orjson.loads(call.body)["requestMetadata"]["domicile-record"]
        region = call.region or call.signed_region
        request = by_index[int(named.split("/")[1])]
        at = call.wall if clock is None else clock.at(call.at)
        yield Reached(request, endpoints[region], region, at)


def unjustified(found: Iterable[Reached], log: Mapping[str, Trace]) -> Iterator[str]:
    """Upstream requests that the log does not justify, in words.

    1. its decision is there, earlier, with the endpoint in its plan;
    2. the endpoint is inside the tenant's grant;
    3. unless it is the first attempt's, an attempt entry for it is there, earlier. A request
       written again on a fresh connection to the same replica, because a kept one was dead,
       is one attempt;
    4. the outcome tells of the endpoint.
    """
    by_request: dict[str, list[Reached]] = defaultdict(list)
    for one in found:
        by_request[one.request].append(one)
    for request, hits in by_request.items():
        trace = log.get(request)
        if trace is None or trace.decision is None:
            yield f"{hits[0]} has no decision"
            continue
        for hit in hits:
            if trace.decision.time / 1e6 > hit.at + TICK:
                yield f"{hit} came before its decision"
            if hit.endpoint not in trace.plan:
                yield f"{hit} is not in the plan {trace.plan}"
            if hit.endpoint in OUTSIDE and TENANTS[trace.tenant] != "worldwide":
                yield f"{hit} is outside the grant of {trace.tenant}"
        yield from _unannounced(trace, sorted(hits, key=lambda hit: hit.at))


def _unannounced(trace: Trace, hits: Sequence[Reached]) -> Iterator[str]:
    told = [str(one["endpoint"]) for one in trace.tried]
    for endpoint in {hit.endpoint for hit in hits}:
        if endpoint not in told and trace.status != "unknown":
            yield f"{trace.id} ({trace.status}): {endpoint} was asked, the outcome does not say so"
    # After a crash nobody tells which was first, and a region that stood still notes its hits
    # late: any one may be, but one only.
    firsts = told[:1] or sorted({hit.endpoint for hit in hits})
    yield from min(([*_early(trace, hits, first)] for first in firsts), key=len)


def _early(trace: Trace, hits: Sequence[Reached], first: str) -> Iterator[str]:
    """Hits without an entry of their own before them, if `first` was asked first."""
    for endpoint in {hit.endpoint for hit in hits}:
        seen: dict[str, float] = {}
        for hit in hits:
            if hit.endpoint == endpoint:
                seen.setdefault(hit.replica, hit.at)
        announced = sorted(
            one.time / 1e6 for one in trace.attempts if one.body["endpoint"] == endpoint
        )
        times = list(seen.values())[1 if endpoint == first else 0 :]
        for number, at in enumerate(times):
            if number >= len(announced) or announced[number] > at + TICK:
                yield f"{trace.id}: {endpoint} at {at} without an earlier attempt entry"


def unsettled(log: Mapping[str, Trace]) -> Iterator[str]:
    """Decisions without exactly one outcome."""
    for trace in log.values():
        if trace.decision is not None and len(trace.outcomes) != 1:
            yield f"{trace.id} has {len(trace.outcomes)} outcomes"


def malformed(heard: Iterable[Heard]) -> Iterator[str]:
    """Answers that are neither a whole answer nor a typed error."""
    for one in heard:
        if one.left:
            continue
        if one.status == 200:
            yield from _unfinished(one)
            continue
        if one.status not in REFUSALS:
            yield f"{one.tenant}: status {one.status}: {one.body[:200]!r}"
            continue
        error = orjson.loads(one.body)["error"]
        if not {"message", "type", "param", "code"} <= set(error):
            yield f"{one.tenant}: not OpenAI's shape: {one.body[:200]!r}"
        elif ANSWERS[error["code"]].status != one.status:
            yield f"{one.tenant}: {one.status} for `{error['code']}`"
        elif ANSWERS[error["code"]].retry and "retry-after" not in one.headers:
            yield f"{one.tenant}: `{error['code']}` says nothing of when to come again"


def _unfinished(one: Heard) -> Iterator[str]:
    if not one.stream:
        if orjson.loads(one.body)["object"] != "chat.completion":
            yield f"{one.tenant}: not an answer: {one.body[:200]!r}"
        return
    last = one.body.rstrip(b"\n").rpartition(b"\n\n")[2]
    broke = last.startswith(b"data: {") and b'"code":"incomplete"' in last
    if last != b"data: [DONE]" and not broke:
        yield f"{one.tenant}: a stream that just stops: {one.body[-200:]!r}"


def misplaced(
    heard: Iterable[Heard], log: Mapping[str, Trace], found: Iterable[Reached]
) -> Iterator[str]:
    """Answers whose receipt says another place than the one that was called last (law 12)."""
    last: dict[str, Reached] = {}
    for hit in found:
        if hit.request not in last or last[hit.request].at < hit.at:
            last[hit.request] = hit
    for one in heard:
        if one.status != 200:
            continue
        request = one.headers["x-request-id"]
        trace, hit = log[request], last[request]
        if trace.decision is None or trace.decision.place.index != one.record[0]:
            yield f"{request}: the receipt names another entry"
        said = (one.headers["x-domicile-endpoint"], trace.outcomes[0].body.get("endpoint"))
        if said != (hit.endpoint, hit.endpoint):
            yield f"{request}: {said} is said, {hit.endpoint} was called"
        region = one.headers.get("x-domicile-region", "")
        if hit.replica.startswith("self:") and region != hit.replica.partition("/")[0]:
            yield f"{request}: {region} is said, {hit.replica} was called"
