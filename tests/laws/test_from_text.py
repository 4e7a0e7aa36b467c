"""Policies as people write them: what the loader makes of a text means what the text says.

The other laws and proofs build rules as objects. Here whole files are written at random: boundaries
as texts, lists and mappings with ends, `when`, `unless`, match tables with `otherwise`, trials and
promises. A second reading of the same words, in sets of countries and Kleene's truths, must find
the same endpoints eligible, and the same promises broken.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from random import Random

import pytest

from policies.attributes import Attributes, Supplied, gather
from policies.conditions import Candidate
from policies.eligibility import Eligible, judge
from policies.engine import Ask, decide
from policies.gathered import PolicyFile
from policies.loader import Loaded, load
from policies.prove import Outcome, prove
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Tier
from tests.laws.worlds import chance, some

COUNTRIES = ("DE", "FR", "US", "GB", "CH")
WORDS: Mapping[str, frozenset[str]] = {
    **{code: frozenset({code}) for code in COUNTRIES},
    **{f"self:{code.lower()}1": frozenset({code}) for code in COUNTRIES},
    "EU": frozenset({"DE", "FR"}),
    "EEA": frozenset({"DE", "FR"}),
    "worldwide": frozenset(COUNTRIES),
}
ROUTER = "DE"
NOW = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
LATER, PAST = "2027-06-01", "2026-06-01"
DATA, SECTOR = ("x", "y", "z"), ("p", "q")
TENANTS, PURPOSES = ("acme", "beta"), ("interactive", "batch", "probe", "shadow")

Places = frozenset[str]
Known = Mapping[str, tuple[frozenset[str], bool]]
"""Attribute → the values it has, and whether those are all."""
Truth = Callable[[Known], int]
"""0 false, 1 not known, 2 true."""


@dataclass
class Rule:
    """What one rule, or one row of its table, says: its condition, and where it leaves."""

    when: Truth
    where: Places
    trial: bool = False


@dataclass
class Written:
    """A policy as text, and the second reading of it."""

    text: str
    grants: Mapping[str, Places]
    rules: list[Rule]
    promises: list[tuple[Truth, Places]] = field(default_factory=list)

    def allowed(self, known: Known, tenant: str) -> Places:
        """What remains: of every rule that is not known to be false."""
        left = self.grants[tenant]
        for rule in self.rules:
            if not rule.trial and rule.when(known):
                left &= rule.where
        return left

    def reached(self, known: Known, tenant: str) -> Places:
        """Countries whose endpoints may be asked: the router's own must be inside, too."""
        left = self.allowed(known, tenant)
        return left if ROUTER in left else frozenset()


# -- boundaries ---------------------------------------------------------------------------


def boundary(
    rnd: Random, named: Mapping[str, Places], depth: int = 2, ends: bool = True
) -> tuple[object, Places]:
    """Something that is written, and the countries it means now."""
    if depth == 0 or chance(rnd, 35):
        return member(rnd, named, ends)
    one, means = boundary(rnd, named, depth - 1, ends)
    other, taken = boundary(rnd, named, depth - 1, ends)
    less, without = boundary(rnd, {}, depth - 1, ends=False)
    shape = rnd.randrange(5)
    if shape == 0:
        return [one, other], means | taken
    if shape == 1:
        return {"and": [one, other]}, means & taken
    if shape == 2:
        return {"plus": [one, other], "minus": less}, (means | taken) - without
    if shape == 3:
        return {"plus": [one], "and": [other]}, means & taken  # a list of `and` is all of it
    return text(rnd, named, depth, ends)


def member(rnd: Random, named: Mapping[str, Places], ends: bool) -> tuple[object, Places]:
    word = rnd.choice([*WORDS, *(named if ends else ())])
    means = named.get(word, WORDS.get(word, frozenset()))
    if not ends or chance(rnd, 60):
        return word, means
    until = rnd.choice((LATER, PAST))
    return {"within": word, "until": until}, means if until == LATER else frozenset()


def text(rnd: Random, named: Mapping[str, Places], depth: int, ends: bool) -> tuple[str, Places]:
    """One line: words with `+`, `-`, `&` and brackets."""
    if depth == 0 or chance(rnd, 30):
        word = rnd.choice([*WORDS, *(named if ends else ())])
        return word, named.get(word, WORDS.get(word, frozenset()))
    (one, means), sign = text(rnd, named, depth - 1, ends), rnd.choice("+-&")
    other, taken = text(rnd, named if sign != "-" else {}, depth - 1, ends and sign != "-")
    found = {"+": means | taken, "-": means - taken, "&": means & taken}[sign]
    return f"({one} {sign} {other})", found


# -- conditions ---------------------------------------------------------------------------


def condition(rnd: Random, depth: int = 2, claims: bool = True) -> tuple[dict[str, object], Truth]:
    """A mapping, and its truth. Without `claims` nothing in it is what a client may say."""
    if depth == 0 or chance(rnd, 40):
        return leaf(rnd, claims)
    parts = [condition(rnd, depth - 1, claims) for _ in range(rnd.randint(1, 2))]
    truths = [truth for _, truth in parts]
    how = rnd.randrange(4)
    if how == 0:
        inner, truth = condition(rnd, depth - 1, claims=False)
        return {"not": inner}, lambda known: 2 - truth(known)
    if how == 1:
        return {"any": [one for one, _ in parts]}, lambda known: max(t(known) for t in truths)
    return {"all": [one for one, _ in parts]}, lambda known: min(t(known) for t in truths)


def leaf(rnd: Random, claims: bool) -> tuple[dict[str, object], Truth]:
    values = {"sector": SECTOR, "tenant": TENANTS, "purpose": PURPOSES} | (
        {"data": DATA} if claims else {}
    )
    name = rnd.choice([*values, *(["data"] * 2 if claims else [])])
    wanted = some(rnd, values[name], 1, 2)
    written: object = wanted[0] if len(wanted) == 1 and chance(rnd, 50) else wanted
    return {name: written}, is_in(name, frozenset(wanted))


def is_in(name: str, wanted: frozenset[str]) -> Truth:
    def truth(known: Known) -> int:
        values, closed = known[name]
        return 2 if values & wanted else 0 if closed else 1

    return truth


def both(one: Truth, other: Truth) -> Truth:
    return lambda known: min(one(known), other(known))


# -- files --------------------------------------------------------------------------------


def written(rnd: Random) -> Written:
    """A whole policy."""
    named: dict[str, Places] = {}
    boundaries: dict[str, object] = {}
    for name in ("ours", "theirs")[: rnd.randint(0, 2)]:
        boundaries[name], means = boundary(rnd, dict(named))
        named[name] = means
    grants, tenants = {}, {}
    for name in TENANTS:
        process: object = "worldwide"
        grants[name] = WORDS["worldwide"]
        if chance(rnd, 40):
            process, grants[name] = boundary(rnd, named)
        tenants[name] = {"grant": {"process": process, "retain": "worldwide"}}
    rules: list[Rule] = []
    told = [rule(rnd, f"rule-{n}", named, rules) for n in range(rnd.randint(0, 4))]
    promises, asserts = [], []
    for _ in range(2):
        spoken, truth = condition(rnd)
        outside, means = boundary(rnd, named)
        promises.append((truth, means))
        asserts.append({"never": {**spoken, "processed_outside": outside}})
    silence = {"default": "x"} if chance(rnd, 50) else {}
    endpoints = {
        code.lower(): {
            "kind": "vllm", "region": f"self:{code.lower()}1", "model": "m", "operate": [code],
            "retain": "nothing", "url": f"http://127.0.0.{n + 1}:8000",
        }
        for n, code in enumerate(COUNTRIES)
    }  # fmt: skip
    policy = {
        "version": "1",
        "regions": {f"self:{code.lower()}1": {"country": code} for code in COUNTRIES},
        "tenants": tenants, "endpoints": endpoints, "boundaries": boundaries, "rules": told,
        "models": {"m": {"tiers": {"large": list(endpoints)}}},
        "attributes": {
            "data": {"values": DATA, "from": ["header", "key"], **silence},
            "sector": {"values": SECTOR, "from": ["key"]},
        },
        "assert": asserts,
    }  # fmt: skip
    return Written(json.dumps(policy, indent=1), grants, rules, promises)


def rule(
    rnd: Random, name: str, named: Mapping[str, Places], rules: list[Rule]
) -> dict[str, object]:
    """One rule as it is written; what it says is added to `rules`."""
    told: dict[str, object] = {"name": name}
    when: Truth = lambda known: 2  # noqa: E731
    if chance(rnd, 60):
        told["when"], when = condition(rnd)
    if chance(rnd, 25):
        told["unless"], lifts = condition(rnd, 1, claims=False)
        when = both(when, lambda known, lifts=lifts: 2 - lifts(known))  # type: ignore[misc]
    trial = False
    if chance(rnd, 15):
        until = rnd.choice((LATER, PAST))
        told["dry_run"], trial = {"until": until}, until == LATER
    if chance(rnd, 30):
        rows = some(rnd, DATA, 1, 3)
        table = {}
        for row in rows:
            where, means = boundary(rnd, named)
            table[row] = (
                {"process_within": where} if isinstance(where, dict) or chance(rnd, 50) else where
            )
            rules.append(Rule(both(when, is_in("data", frozenset({row}))), means, trial))
        rest = frozenset(DATA) - frozenset(rows)
        told["match"] = {"data": table}
        if rest:
            where, means = boundary(rnd, named)
            told["match"] = {"data": table, "otherwise": {"process_within": where}}
            rules.append(Rule(both(when, is_in("data", rest)), means, trial))
        return told
    told["process_within"], means = boundary(rnd, named)
    rules.append(Rule(when, means, trial))
    return told


# -- requests -----------------------------------------------------------------------------


def requests(loaded: Loaded) -> Iterator[tuple[str, str, Attributes]]:
    """Every request there can be: who, for what, and what the key and the client say."""
    said = [subset(DATA), subset(DATA), subset(SECTOR)]
    for claimed, carried, sector in product(*said):
        supplied = [
            Supplied(name, values, source)
            for name, values, source in (
                ("data", claimed, "header"), ("data", carried, "key"), ("sector", sector, "key"),
            )
            if values
        ]  # fmt: skip
        attributes = gather(loaded.policy.declared, supplied)
        for tenant, purpose in product(TENANTS, PURPOSES):
            yield tenant, purpose, attributes


def subset(values: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [
        tuple(one for n, one in enumerate(values) if bits >> n & 1)
        for bits in range(1 << len(values))
    ]


def known(tenant: str, purpose: str, attributes: Attributes) -> Known:
    states = {name: (state.values, state.closed) for name, state in attributes.states.items()}
    closed = {"tenant": frozenset({tenant}), "purpose": frozenset({purpose})}
    return {**states, **{name: (values, True) for name, values in closed.items()}}


@pytest.mark.parametrize("seed", range(20))
def test_a_text_means_what_it_says(seed: int) -> None:
    rnd = Random(seed)
    made = written(rnd)
    loaded = load([PolicyFile("main.yaml", made.text.encode())])
    every = list(requests(loaded))
    for tenant, purpose, attributes in rnd.sample(every, 60):
        decision = decide(loaded.policy, Ask(tenant, None, attributes, purpose), NOW)
        found = set()
        for name, endpoint in loaded.policy.endpoints.items():
            candidate = Candidate(name, endpoint.model, endpoint.provider, Tier.LARGE)
            there = footprint(endpoint, PLAIN_CALL, loaded.catalog, NOW)
            verdict = judge(decision, candidate, endpoint, there, "self:de1", NOW)
            if isinstance(verdict, Eligible):
                found.add(name.upper())
        facts = known(tenant, purpose, attributes)
        assert found == made.reached(facts, tenant), (made.text, tenant, purpose, attributes)


@pytest.mark.parametrize("seed", range(20))
def test_a_promise_in_text_is_broken_where_a_request_breaks_it(seed: int) -> None:
    made = written(Random(seed))
    loaded = load([PolicyFile("main.yaml", made.text.encode())])
    verdicts = prove(loaded, NOW, ["self:de1"]).verdicts
    for (speaks, inside), verdict in zip(made.promises, verdicts, strict=True):
        broken = any(
            # A promise speaks of what it may be about, and of the router, which sees the prompt.
            speaks(facts := known(*one))
            and (there := made.reached(facts, one[0]))
            and not there | {ROUTER} <= inside
            for one in requests(loaded)
        )
        assert (verdict.outcome is Outcome.BROKEN) == broken, (made.text, verdict)
