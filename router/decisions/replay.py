"""`audit replay`: decide again what the log says was decided, and compare.

For a decision or refusal, from its entry and the snapshot stored beside the log, nothing else:

 1. the snapshot is stored, loads, and has the policy digest that the entry names;
 2. the attributes follow from what each source is said to have supplied;
 3. the decision: allowed sets, rules with reasons, unknowns, dry runs, obligations;
 4. every endpoint of the model: eligible, or excluded for the same reasons of place;
 5. the plan holds endpoints that are eligible, each once, and ends no later than they do;
 6. a refusal for its place is one that had to be.

What only the request's own bytes decide (features, context length, unknown parameters) is not in
the log. Such reasons are taken as recorded: they only ever leave endpoints out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Final

import orjson

from policies.attributes import AttributeRefused, Attributes, State, Supplied, gather
from policies.conditions import Candidate
from policies.eligibility import CODES, Eligible, judge
from policies.engine import Ask, Decision, decide
from policies.model import Policy, Priority
from policies.timed import earliest
from regions.footprints.base import footprint
from regions.footprints.joining import joined
from regions.model import Call
from router.audit.layout import Folder
from router.audit.lines import Value
from router.audit.reading import Shown
from router.decisions.replayed import World, WorldMissing, world
from router.entries.entry_bodies import allowed_body

KINDS: Final = frozenset({"decision", "refusal"})
ELIGIBLE: Final = "eligible"
Body = Mapping[str, Value]
Verdicts = Mapping[str, Eligible | tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Replayed:
    """One entry decided again; `differences` is empty when it came out the same."""

    shown: Shown
    differences: tuple[str, ...]


@dataclass(slots=True)
class Replayer:
    """Decides again; keeps each snapshot that it loaded."""

    folder: Folder
    worlds: dict[str, World | WorldMissing] = field(default_factory=dict)

    def replay(self, shown: Shown) -> Replayed:
        """One decision or refusal, decided again."""
        found = self._world(str(shown.body.get("snapshot")))
        if isinstance(found, WorldMissing):
            return Replayed(shown, (str(found),))
        return Replayed(shown, tuple(_differences(shown, found)))

    def _world(self, digest: str) -> World | WorldMissing:
        known = self.worlds.get(digest)
        if known is None:
            try:
                known = world(self.folder, digest)
            except WorldMissing as missing:
                known = missing
            self.worlds[digest] = known
        return known


def sample(entries: Iterable[Shown], count: int, random: Random) -> list[Shown]:
    """So many decisions and refusals, each as likely as another; in the order of the log."""
    kept: list[tuple[int, Shown]] = []
    number = 0
    for shown in entries:
        if shown.kind in KINDS:
            if len(kept) < count:
                kept.append((number, shown))
            elif (at := random.randrange(number + 1)) < count:
                kept[at] = (number, shown)
            number += 1
    return [shown for _, shown in sorted(kept, key=lambda one: one[0])]


def _differences(shown: Shown, found: World) -> Iterator[str]:
    body = shown.body
    who = _object(body.get("who"))
    if who.get("policy") != found.policy.digest:  # 1
        yield f"policy: recorded {who.get('policy')}, stored {found.policy.digest}"
    if _object(who.get("router")) != {"id": found.router, "region": found.region}:
        yield "router: the entry names another than its snapshot"
    recorded = _attributes(body)
    yield from _gathered(body, who, found, recorded)  # 2
    now = inf if who.get("clock") == "behind" else shown.time / 1e6
    ask = Ask(str(who["tenant"]), str(who["app"]) or None, recorded, str(who["purpose"]))
    decision = decide(found.policy, ask, now)
    again, allowed = _object(_plain(allowed_body(decision))), body.get("allowed")
    if "kept" not in _object(allowed):  # written before entries said how long they are kept
        again = {name: value for name, value in again.items() if name != "kept"}
    yield from _unequal("allowed", allowed, again)  # 3
    verdicts = _verdicts(decision, found, body, who) if "candidates" in body else {}
    yield from _candidates(body, verdicts)  # 4
    yield from _plan(body, verdicts, found.policy) if "plan" in body else ()  # 5
    if shown.kind == "refusal":
        yield from _refusal(str(body.get("code")), decision, verdicts, found)  # 6


def _attributes(body: Body) -> Attributes:
    states, origins = {}, {}
    for name, one in _object(body.get("attributes")).items():
        said = _object(one)
        states[name] = State(frozenset(_texts(said.get("values"))), said.get("closed") is True)
        pairs = (text.rpartition(": ") for text in _texts(said.get("from")))
        origins[name] = frozenset((value, source) for value, _, source in pairs)
    return Attributes(states, {name: pairs for name, pairs in origins.items() if pairs})


def _gathered(body: Body, who: Body, found: World, recorded: Attributes) -> Iterator[str]:
    said = [
        Supplied(name, (value,), source)
        for name, pairs in recorded.origins.items()
        for value, source in pairs
    ]
    try:
        again = gather(found.policy.declared, said, found.policy.trusted(str(who["app"]) or None))
    except AttributeRefused as refused:
        yield f"attributes: {refused}"
        return
    for name in sorted({*again, *recorded}):
        one, other = recorded[name], again[name]
        # A classifier that stopped early opens an attribute; nothing closes one by itself.
        if one.values != other.values or (one.closed and not other.closed):
            yield f"attributes: `{name}` doesn't follow from what was said of it"


def _verdicts(decision: Decision, found: World, body: Body, who: Body) -> Verdicts:
    call = Call(str(who["surface"]), movers=frozenset(_texts(body.get("moves"))))
    verdicts: dict[str, Eligible | tuple[str, ...]] = {}
    for tier, endpoint in found.policy.candidates(str(who["model"])):
        where = footprint(endpoint, call, found.catalog, decision.now)
        drifted = found.drifted.get(endpoint.name)
        where = where if drifted is None else joined(where, drifted)
        candidate = Candidate(endpoint.name, endpoint.model, endpoint.provider, tier)
        verdict = judge(decision, candidate, endpoint, where, found.region, decision.now)
        if isinstance(verdict, Eligible):
            verdicts[endpoint.name] = verdict
        else:
            reasons = (f"{r.code}: {r.detail}" if r.detail else r.code for r in verdict.reasons)
            verdicts[endpoint.name] = tuple(reasons)
    return verdicts


def _candidates(body: Body, verdicts: Verdicts) -> Iterator[str]:
    recorded = _object(body.get("candidates"))
    for name in sorted({*recorded, *verdicts}):
        verdict = verdicts.get(name)
        if name not in recorded or verdict is None:
            where = "the log" if name not in recorded else "the policy"
            yield f"candidates: `{name}` is missing in {where}"
            continue
        mine = [] if isinstance(verdict, Eligible) else sorted(verdict)
        theirs = [r for r in _texts(recorded[name]) if r.partition(": ")[0] in CODES]
        yield from _unequal(f"candidate `{name}`", sorted(theirs), mine)
        if recorded[name] == ELIGIBLE and mine:
            yield f"candidates: `{name}` was eligible and must not have been"


def _plan(body: Body, verdicts: Verdicts, policy: Policy) -> Iterator[str]:
    plan = _texts(body.get("plan"))
    recorded = _object(body.get("candidates"))
    eligible = {name for name, one in recorded.items() if one == ELIGIBLE}
    for name in sorted(set(plan) - eligible):
        yield f"plan: `{name}` was not eligible"
    if len(set(plan)) != len(plan):
        yield "plan: an endpoint stands twice"
    planned = [v for n in plan if isinstance(v := verdicts.get(n), Eligible)]
    # A preference may leave eligible endpoints out, a pool batch requests, and a burst budget whom
    # it is written at; nothing else may.
    passed = set(_object(body.get("passed")))
    yield from _passed(passed, plan, policy)
    expected = eligible - _pooled_out(body, eligible, policy) - passed
    if not any(one.allowed.prefer for one in planned) and expected - set(plan):
        yield f"plan: {', '.join(sorted(expected - set(plan)))} is missing"
    for name in sorted(set(plan) & (eligible - expected - passed)):
        yield f"plan: `{name}` is kept for more urgent requests"
    yield from _unequal("prefill", _object(body.get("prefill")), _halves(plan, policy))
    until = earliest(one.good_until for one in planned)
    mine = None if until is None else int(until)
    if body.get("good_until") != mine:
        yield f"good_until: recorded {body.get('good_until')}, decided again {mine}"


def _passed(passed: AbstractSet[str], plan: Sequence[str], policy: Policy) -> Iterator[str]:
    for name in sorted(passed):
        known = policy.endpoints.get(name)
        if known is None or known.burst is None:
            yield f"plan: `{name}` was passed over for a burst budget that it doesn't have"
        elif name in plan:
            yield f"plan: `{name}` was passed over, and stands in it"


def _pooled_out(body: Body, eligible: AbstractSet[str], policy: Policy) -> set[str]:
    """The endpoints that a request of this class was kept out of."""
    if _object(body.get("who")).get("priority") != Priority.BATCH.label:
        return set()
    settings = {name: policy.endpoints[name].settings for name in eligible}
    kept = {name for name, one in settings.items() if one.get("pool") == "interactive"}
    return kept if kept < eligible else set()


def _halves(plan: Sequence[str], policy: Policy) -> dict[str, object]:
    known = {name: one.prefill for name, one in policy.endpoints.items() if name in plan}
    return {name: half.name for name, half in known.items() if half is not None}


def _refusal(code: str, decision: Decision, verdicts: Verdicts, found: World) -> Iterator[str]:
    outside = [name for name, one in verdicts.items() if not isinstance(one, Eligible)]
    home = found.policy.atlas.place(found.region)
    had_to: dict[str, Callable[[], bool]] = {
        "no_grant": lambda: decision.denied == "no_grant",
        "obligations_conflict": lambda: bool(decision.common.conflict),
        "no_endpoint_inside_boundary": lambda: len(outside) == len(verdicts),
        "misdirected": lambda: not decision.common.process.contains(home),
        "no_router_inside_boundary": lambda: not decision.common.process.contains(home),
    }
    if code in had_to and not had_to[code]():
        yield f"refusal: `{code}` doesn't follow from the policy"


def _unequal(what: str, recorded: object, again: object) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(again, dict):
        for name in sorted({*recorded, *again}):
            yield from _unequal(f"{what}.{name}", recorded.get(name), again.get(name))
    elif recorded != again:
        yield f"{what}: recorded {_short(recorded)}, decided again {_short(again)}"


def _short(value: object) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 200 else text[:200] + "…"


def _plain(value: object) -> object:
    return orjson.loads(orjson.dumps(value))


def _object(value: object) -> Body:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> Sequence[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
