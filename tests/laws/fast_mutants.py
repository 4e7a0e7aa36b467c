"""Wrong versions of the fast engine and the fast filter; equality with the reference kills them."""

from __future__ import annotations

from policies import compiled, folding, judging, masks
from tests.laws.mutants import Mutant

_ALL = judging.Judge.judge_all
_ROW = judging.Judge._row

FAST = (
    Mutant(
        "fast: open is false",
        masks.Asked.masks,
        "return self.others | self.positive | absent",
        "return self.others | hit | absent",
    ),
    Mutant(
        "fast: open is true",
        masks.Asked.masks,
        "self.positive & ~hit | absent",
        "0",
    ),
    Mutant("fast: bars are ignored", masks.Asked._barred, "barred |=", "barred ="),
    Mutant(
        "fast: absence is not knowledge",
        masks.Asked.masks,
        "return self.others | hit | absent, 0",
        "return self.others | hit, 0",
    ),
    Mutant(
        "fast: unasked values pass",
        masks.Asked.masks,
        "return self.others | hit | absent, 0",
        "return self.others | self.positive | absent, 0",
    ),
    Mutant(
        "fast: masks of another state",
        compiled.Compiled._masks,
        "asked.known.get(state)",
        "next(iter(asked.known.values()), None)",
    ),
    Mutant(
        "fast: ∪ for ∩ over attributes",
        compiled.Compiled._masks,
        "possible &= maybe",
        "possible |= maybe",
    ),
    Mutant(
        "fast: silence is closed",
        compiled.Compiled._masks,
        "states.get(name, OPEN)",
        "states.get(name, OPEN)._replace(closed=True)",
    ),
    Mutant("fast: tenants are not asked for", compiled.Compiled._own, "possible &= maybe", "pass"),
    Mutant(
        "fast: complex conditions are masks",
        compiled.Compiled._looked_at,
        "left = possible & self._complex",
        "left = 0",
    ),
    Mutant(
        "fast: complex false rules apply", compiled.Compiled._looked_at, "possible &= ~bit", "pass"
    ),
    Mutant(
        "fast: candidate rules for everybody",
        compiled.Compiled.decide,
        "possible & self._candidate & unsure & ~dry",
        "0",
    ),
    Mutant(
        "fast: trials apply", compiled.Compiled.decide, "dry = possible & stretch.dry", "dry = 0"
    ),
    Mutant(
        "fast: forget pending ends",
        compiled.Compiled.decide,
        "sooner(good_until, stretch.folding.good_until(pending))",
        "good_until",
    ),
    Mutant(
        "fast: forget trials' ends",
        compiled.Compiled.decide,
        "sooner(common.good_until, stretch.dry_until)",
        "common.good_until",
    ),
    Mutant("fast: ∪ for ∩ on process", folding.Axis.met, "both &= here", "both |= here"),
    Mutant("fast: ∪ for ∩ by rule", folding.Axis.met, "both &= own", "both |= own"),
    Mutant("fast: boundaries of all rules", folding.Axis.met, "if applying & rules:", "if True:"),
    Mutant(
        "fast: possible for sure",
        folding.Folding._bound,
        "Boundary(self._atlas, sure, possible)",
        "Boundary(self._atlas, possible, possible)",
    ),
    Mutant(
        "fast: sure for possible",
        folding.Folding._bound,
        "Boundary(self._atlas, sure, possible)",
        "Boundary(self._atlas, sure, sure)",
    ),
    Mutant(
        "fast: one boundary for all",
        folding.Folding._bound,
        "self._bounds.get(both)",
        "next(iter(self._bounds.values()), None)",
    ),
    Mutant(
        "fast: retain is process",
        folding.Folding.folded,
        "else self._bound(retain)",
        "else within",
    ),
    Mutant(
        "fast: process is retain",
        folding.Folding.folded,
        "if retain == process",
        "if retain & 1 == process & 1",
    ),
    Mutant(
        "fast: drop a rule",
        folding.Folding.folded,
        "demanding = applying & self._demanding",
        "demanding = applying & self._demanding & (applying - 1)",
    ),
    Mutant("fast: lose operators", folding.Folding._demanded, "operate &= rule.operate", "pass"),
    Mutant(
        "fast: lose ends",
        folding.Folding._demanded,
        "sooner(until, rule.good_until)",
        "until",
    ),
    Mutant(
        "fast: lose obligations",
        folding._obligations,
        "result.add(obligation)",
        "NO_OBLIGATIONS.add(obligation)",
    ),
    Mutant(
        "fast: lose reasons", folding.Folding.reasons, "bits(known)", "bits(known & (known - 1))"
    ),
    Mutant("fast: know everything", compiled.Compiled._common, "if unknown:", "if False:"),
    Mutant(
        "fast: one memory for all times",
        compiled.Compiled._stretch,
        "bisect_right(self._ends, now)",
        "0",
    ),
    Mutant(
        "fast: the end is inclusive",
        compiled.Compiled._stretch,
        "bisect_right(self._ends, now)",
        "sum(end < now for end in self._ends)",
    ),
    Mutant(
        "fast: memory forgets the tenant",
        compiled.Compiled._common,
        "key = (ask.tenant, applying)",
        'key = ("", applying)',
    ),
    Mutant(
        "fast: memory forgets the rules",
        compiled.Compiled._common,
        "key = (ask.tenant, applying)",
        "key = (ask.tenant, 0)",
    ),
    Mutant(
        "fast: memory forgets the purpose",
        compiled.Compiled._own,
        "ask.app, ask.purpose)",
        'ask.app, "interactive")',
    ),
    Mutant(
        "fast: grants of strangers",
        compiled.Compiled._grant,
        "known.grant if known is not None",
        "next(iter(self.policy.tenants.values())).grant if True",
    ),
    Mutant(
        "judge: process is not looked at",
        judging.Judge.judge,
        "(process.mask | self._router) & ~bound.sure",
        "self._router & ~bound.sure",
    ),
    Mutant(
        "judge: the router is nowhere",
        judging.Judge.judge,
        "(process.mask | self._router) & ~bound.sure",
        "process.mask & ~bound.sure",
    ),
    Mutant(
        "judge: unknown process passes", judging.Judge.judge, "or process.mask & UNKNOWN_BIT", ""
    ),
    Mutant(
        "judge: retain is not looked at",
        judging.Judge.judge,
        "or footprint.retain.mask & ~allowed.retain.sure",
        "",
    ),
    Mutant(
        "judge: operate is not looked at",
        judging.Judge.judge,
        "or footprint.operate.mask & ~allowed.operate.mask",
        "",
    ),
    Mutant(
        "judge: assurances are not asked for",
        judging.Judge.judge,
        "allowed.require\n        or",
        "",
    ),
    Mutant("judge: obligations are not looked at", judging.Judge.judge, "or obligations.held", ""),
    Mutant("judge: conflicts pass", judging.Judge.judge, "or obligations.conflicts", ""),
    Mutant("judge: old facts pass", judging.Judge.judge, "or not (ends is None or now < ends)", ""),
    Mutant(
        "judge: a lapsed decision passes", judging.Judge.judge, "or not decision.is_good(now)", ""
    ),
    Mutant(
        "judge: candidates share the common part",
        judging.Judge.judge,
        "decision.settled(candidate)",
        "decision._replace(pending=())",
    ),
    Mutant(
        "judge: eligible for ever",
        judging.Judge._good_until,
        "earliest([*held, decision.good_until, allowed.good_until, ends])",
        "None",
    ),
    Mutant(
        "judge: reasons of another footprint",
        judging.Judge._excluded,
        "footprint.process.mask,",
        "",
    ),
    Mutant(
        "judge: reasons of another boundary", judging.Judge._excluded, "allowed.process.sure,", ""
    ),
    Mutant("all: unknown process passes", _ROW, " | UNKNOWN_BIT", ""),
    Mutant(
        "all: process is not looked at",
        _ROW,
        "process.mask & (~allowed.process.sure | UNKNOWN_BIT)",
        "0",
    ),
    Mutant(
        "all: retain is not looked at",
        _ROW,
        "or footprint.retain.mask & ~allowed.retain.sure",
        "",
    ),
    Mutant(
        "all: operate is not looked at",
        _ROW,
        "or footprint.operate.mask & ~allowed.operate.mask",
        "",
    ),
    Mutant("all: the router is nowhere", _ALL, "or self._router & ~inside.sure", ""),
    Mutant(
        "all: facts hold for ever",
        _ROW,
        "lapsed = ends is not None and now >= ends",
        "lapsed = False",
    ),
    Mutant(
        "all: facts hold once looked at",
        _ALL,
        "or now >= seats.until",
        "",
    ),
    Mutant(
        "all: candidates share the common part",
        _ALL,
        "decision.pending\n        or",
        "",
    ),
    Mutant(
        "all: obligations are not looked at",
        _ALL,
        "or allowed.obligations.held",
        "",
    ),
    Mutant("all: assurances are not asked for", _ALL, "or allowed.require", ""),
    Mutant("all: assurances don't end", _ROW, "if endpoint.assurances", "if False"),
    Mutant("all: reasons of another bound", _ALL, "(inside.sure, ", "(0, "),
    Mutant("all: reasons of another retain", _ALL, "allowed.retain.sure, ", "0, "),
    Mutant("all: reasons of another operator", _ALL, "allowed.operate.mask, ", "0, "),
    Mutant("all: eligible for ever", _ALL, "sooner(until, ends)", "until"),
    Mutant("all: eligible without ends", _ALL, "until if ends is None", "None if ends is None"),
    Mutant(
        "all: reasons of other places",
        _ALL,
        "id(places))",
        "0)",
    ),
)
