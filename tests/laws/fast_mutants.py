"""Wrong versions of the fast engine and the fast filter; equality with the reference kills them."""

from __future__ import annotations

from policies import compiled, judging, masks
from tests.laws.mutants import Mutant

_ALL = judging.Judge.judge_all

FAST = (
    Mutant(
        "fast: open is false",
        masks.Asked.masks,
        "self.others | self.positive | absent",
        "self.others | hit | absent",
    ),
    Mutant(
        "fast: open is true",
        masks.Asked.masks,
        "absent, self.others | hit",
        "absent, self.others | self.positive",
    ),
    Mutant("fast: bars are ignored", masks.Asked._barred, "barred |=", "barred ="),
    Mutant(
        "fast: absence is not knowledge",
        masks.Asked.masks,
        "both = self.others | hit | absent",
        "both = self.others | hit",
    ),
    Mutant(
        "fast: unasked values pass",
        compiled.Compiled._masks,
        "asked.others, asked.hits",
        "asked.others | asked.positive, asked.hits",
    ),
    Mutant(
        "fast: ∪ for ∩ over attributes",
        compiled.Compiled._masks,
        "possible &= here",
        "possible |= here",
    ),
    Mutant(
        "fast: complex conditions are masks", compiled.Compiled._looked_at, "if left:", "if False:"
    ),
    Mutant(
        "fast: complex false rules apply", compiled.Compiled._looked_at, "possible &= ~bit", "pass"
    ),
    Mutant(
        "fast: candidate rules for everybody",
        compiled.Compiled._decide,
        "possible & self._candidate & ~certain & ~dry",
        "0",
    ),
    Mutant(
        "fast: trials apply", compiled.Compiled._decide, "dry = possible & stretch.dry", "dry = 0"
    ),
    Mutant(
        "fast: forget pending ends",
        compiled.Compiled._decide,
        "earliest([good_until, *untils])",
        "good_until",
    ),
    Mutant(
        "fast: forget trials' ends",
        compiled.Compiled._decide,
        "sooner(common.good_until, stretch.dry_until)",
        "common.good_until",
    ),
    Mutant(
        "fast: ∪ for ∩ on process",
        compiled.Compiled._fold,
        "process &= rule.process[0]",
        "process |= rule.process[0]",
    ),
    Mutant(
        "fast: possible for sure",
        compiled.Compiled._fold,
        "process &= rule.process[0]",
        "process &= rule.process[1]",
    ),
    Mutant(
        "fast: retain is process",
        compiled.Compiled._fold,
        "kept = self._bound(retain, retain_may)",
        "kept = within",
    ),
    Mutant(
        "fast: drop a rule",
        compiled.Compiled._fold,
        "left = applying",
        "left = applying & (applying - 1)",
    ),
    Mutant("fast: lose operators", compiled._met, "operate &= rule.operate", "pass"),
    Mutant(
        "fast: lose obligations",
        compiled._obligations,
        "result.add(obligation)",
        "NO_OBLIGATIONS.add(obligation)",
    ),
    Mutant("fast: lose reasons", compiled.Compiled._reasons, "if not unknown >> n & 1", "if False"),
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
        compiled.Compiled.decide,
        "(ask.tenant, ask.app,",
        "(ask.app,",
    ),
    Mutant("fast: memory forgets the purpose", compiled.Compiled.decide, "ask.purpose, *", "*"),
    Mutant(
        "fast: memory keeps the time",
        compiled.Compiled.decide,
        "known.ask is ask and known.now == now",
        "True",
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
        "decision.allowed(candidate) if decision.pending else decision.common",
        "decision.common",
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
    Mutant("all: unknown process passes", _ALL, " | UNKNOWN_BIT", ""),
    Mutant("all: process is not looked at", _ALL, "process.mask & elsewhere", "0"),
    Mutant(
        "all: retain is not looked at",
        _ALL,
        "or footprint.retain.mask & retain",
        "",
    ),
    Mutant(
        "all: operate is not looked at",
        _ALL,
        "or footprint.operate.mask & operate",
        "",
    ),
    Mutant("all: the router is nowhere", _ALL, "or self._router & ~inside.sure", ""),
    Mutant(
        "all: facts hold for ever",
        _ALL,
        "ends is not None and now >= ends",
        "False",
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
    Mutant(
        "all: reasons of another bound",
        judging.Judge._table,
        "table = self._tables.get(bounds)",
        "bounds = (0, 0, 0)\n    table = self._tables.get(bounds)",
    ),
    Mutant("all: eligible for ever", _ALL, "sooner(until, ends)", "until"),
    Mutant(
        "all: reasons of another footprint",
        _ALL,
        "table.get(id(footprint))\n            if known is None or known[0] is not footprint:",
        "next(iter(table.values()), None)\n            if known is None:",
    ),
)
