"""Wrong engines: the real source of one function with one change, put in its place.

A function's code object is replaced while a mutant lives, so everything that calls it
meets the mutant, and nothing is copied that could drift from the real code.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import cast

from policies import attributes, conditions, eligibility, engine, model, obligations, outer, timed


@dataclass(frozen=True)
class Mutant:
    """In `target`'s source, `before` (which stands there once) becomes `after`."""

    name: str
    target: object
    before: str
    after: str

    @contextmanager
    def alive(self) -> Iterator[None]:
        function = _function(self.target)
        source = textwrap.dedent(inspect.getsource(function))
        if source.count(self.before) != 1:
            raise LookupError(f"mutant `{self.name}`: `{self.before}` is not there exactly once")
        text = "from __future__ import annotations\n" + source.replace(self.before, self.after)
        namespace: dict[str, object] = dict(function.__globals__)
        exec(compile(text, f"<mutant {self.name}>", "exec"), namespace)
        saved = function.__code__
        function.__code__ = _function(namespace[function.__name__]).__code__
        try:
            yield
        finally:
            function.__code__ = saved


def _function(target: object) -> FunctionType:
    if isinstance(target, property):
        target = target.fget
    return cast(FunctionType, target)


MUTANTS = (
    Mutant("∪ for ∩ on process", engine._within, "allowed & bound", "allowed | bound"),
    Mutant("∪ for ∩ on operate", engine.narrowed, "operate & rule", "operate | rule"),
    Mutant(
        "retain takes the process bound", engine.narrowed, "rule.retain, now", "rule.process, now"
    ),
    Mutant("drop the last rule", engine._not_false, "in rules:", "in rules[:-1]:"),
    Mutant(
        "ignore unknown",
        engine._not_false,
        "truth is not Truth.FALSE",
        "truth is Truth.TRUE or rule.condition.needs_candidate",
    ),
    Mutant(
        "ignore unknown for candidates",
        engine.Decision.allowed,
        "truth is not Truth.FALSE",
        "truth is Truth.TRUE",
    ),
    Mutant("apply false rules", engine._not_false, "truth is not Truth.FALSE", "True"),
    Mutant(
        "forget candidate rules",
        engine.decide,
        "pending.append(rule)",
        "pass",
    ),
    Mutant(
        "candidate rules for everybody",
        engine.decide,
        "truth is Truth.UNKNOWN and rule.condition.needs_candidate",
        "False",
    ),
    Mutant("ignore the grant", engine.granted, "grant.process.at(now)", "atlas.worldwide()"),
    Mutant(
        "retain defaults to process",
        engine.granted,
        "grant.retain.at(now)",
        "grant.process.at(now)",
    ),
    Mutant(
        "no grant is a grant",
        engine.granted,
        "atlas.nowhere(), atlas.nowhere()",
        "atlas.worldwide(), atlas.nowhere()",
    ),
    Mutant("operate ignores the grant", engine.granted, "grant.operate.at(now)", "Countries.any()"),
    Mutant(
        "lose obligations",
        engine.narrowed,
        "obligations.add(obligation)",
        "Obligations().add(obligation)",
    ),
    Mutant("lose assurances", engine.narrowed, "allowed.require | rule.require", "rule.require"),
    Mutant("lose preferences", engine.narrowed, "allowed.prefer |", "frozenset() or"),
    Mutant("lose reasons", engine.narrowed, "allowed.applied |", "frozenset() or"),
    Mutant("a decision holds for ever", engine.Decision.is_good, "at < self.good_until", "True"),
    Mutant(
        "forget rules' ends",
        engine.narrowed,
        "earliest((allowed.good_until, rule_good_until(rule, now)))",
        "allowed.good_until",
    ),
    Mutant(
        "forget trials' ends",
        engine.decide,
        "rule.dry_run_until for rule in policy.rules if rule.is_dry(now)",
        "None",
    ),
    Mutant("trial rules never apply", model.Rule.is_dry, "now < self.dry_run_until", "True"),
    Mutant("trial rules apply", model.Rule.is_dry, "now < self.dry_run_until", "False"),
    Mutant("until is inclusive", timed.Timed.at, "now < end", "now <= end"),
    Mutant("ignore until", timed.Timed.at, "self.values[-1]", "self.values[0]"),
    Mutant("only the first end", timed.Timed.good_until, "now < end", "True"),
    Mutant("the clock is believed", timed.effective_now, "clock < newest - tolerance", "False"),
    Mutant("the log's time is ignored", timed.effective_now, "max(clock, newest)", "clock"),
    Mutant("open is false", attributes.State.has_any, "self.closed", "True"),
    Mutant("closed is unknown", attributes.State.has_any, "self.closed", "False"),
    Mutant("claims close", attributes._state, "bool(settled)", "bool(settled or claimed)"),
    Mutant("claims replace", attributes._state, "settled | claimed", "claimed or settled"),
    Mutant("claims are dropped", attributes._state, "settled | claimed", "settled"),
    Mutant("failed classifiers are ignored", attributes._state, "and not opened", ""),
    Mutant("all is any", conditions.AllOf.truth, "min(", "max("),
    Mutant("any is all", conditions.AnyOf.truth, "max(", "min("),
    Mutant("not is identity", conditions.Not.truth, "2 - self", "0 + self"),
    Mutant(
        "not unknown is false",
        conditions.Not.truth,
        "2 - self.part.truth(facts, candidate)",
        "0 if self.part.truth(facts, candidate) else 2",
    ),
    Mutant("process is not looked at", eligibility._process, "if outside:", "if False:"),
    Mutant(
        "unknown process passes", eligibility._process, "not footprint.process.is_known", "False"
    ),
    Mutant(
        "possible for sure",
        eligibility._process,
        "allowed.process.outside(footprint.process)",
        "PlaceSet(router.atlas, footprint.process.mask & ~allowed.process.possible)",
    ),
    Mutant(
        "the router is nowhere",
        eligibility._process,
        "not allowed.process.contains(router)",
        "False",
    ),
    Mutant("old facts pass", eligibility._process, "now >= footprint.good_until", "False"),
    Mutant("retain is not looked at", eligibility._retain, "elif outside:", "elif False:"),
    Mutant(
        "unknown retention passes", eligibility._retain, "if not outside.is_known:", "if False:"
    ),
    Mutant(
        "retain judged by process",
        eligibility._retain,
        "allowed.retain.outside(kept)",
        "allowed.process.outside(kept)",
    ),
    Mutant(
        "operators are not looked at",
        eligibility._operate,
        "allowed.operate.contains(footprint.operate)",
        "True",
    ),
    Mutant(
        "unknown operators pass",
        eligibility._operate,
        "if not outside.is_known:\n        yield",
        "if not outside.is_known:\n        () or",
    ),
    Mutant(
        "assurances are not asked for",
        eligibility._assurances,
        "not _holds(endpoint, name, now)",
        "False",
    ),
    Mutant("lapsed is held", eligibility._holds, "and one.held(now)", ""),
    Mutant("conflicts pass", eligibility._decision, "sorted(allowed.conflict)", "()"),
    Mutant("a lapsed decision passes", eligibility._decision, "not decision.is_good(now)", "False"),
    Mutant("batches pass", eligibility._obligations, 'decision.ask.purpose == "batch"', "False"),
    Mutant(
        "kept is zero",
        eligibility._obligations,
        'not (footprint.retain.is_nothing or _holds(endpoint, "zdr", now))',
        "False",
    ),
    Mutant("any tier below", eligibility._of_endpoint, "candidate.tier < one.floor", "False"),
    Mutant("any tier above", eligibility._of_endpoint, "candidate.tier > one.ceiling", "False"),
    Mutant(
        "any price", eligibility._of_endpoint, "and not one.admits(endpoint.price)", "and False"
    ),
    Mutant(
        "unknown prices pass",
        obligations.MaxPrice.admits,
        "cost is not None and cost <= cap",
        "cost is None or cost <= cap",
    ),
    Mutant("areas are regions", eligibility._one_region, "isinstance(atom, Region)", "True"),
    Mutant("two regions are one", eligibility._one_region, "len(places) == 1 and", ""),
    Mutant(
        "global by name only",
        eligibility._is_global,
        "any(isinstance(atom, Elsewhere | Unknown) for atom in places)",
        "False",
    ),
    Mutant("global by place only", eligibility._is_global, "named or", "False or"),
    Mutant("eligible for ever", eligibility.judge, "earliest(ends)", "None"),
    Mutant(
        "tier ranges unite",
        obligations.TierRange.meet,
        "max(self.floor, other.floor)",
        "min(self.floor, other.floor)",
    ),
    Mutant(
        "empty ranges pass",
        obligations.RecordRetention.meet,
        "most is None or least <= most",
        "True",
    ),
    Mutant("redact less", obligations.Redact.meet, "identifiers | other", "identifiers & other"),
    Mutant(
        "conflicts heal", obligations.Obligations.add, "if one.kind in self.conflicts:", "if False:"
    ),
    Mutant("outer: claims deny", outer.bound_of, "is Truth.TRUE", "is not Truth.FALSE"),
    Mutant("outer: no rules", outer.bound_of, "is Truth.TRUE", "is None"),
    Mutant(
        "outer: defaults count",
        outer._early,
        "frozenset[str]() if trusted else declaration.default",
        "declaration.default",
    ),
    Mutant("outer: heads are final", outer._early, "and final", ""),
    Mutant("outer: trials count", outer.bound_of, "or rule.is_dry(now)", ""),
    Mutant(
        "outer: no grant",
        outer.bound_of,
        "known.grant if known is not None else None, now).process",
        "known.grant if known is not None else None, now).process | policy.atlas.worldwide()",
    ),
)
