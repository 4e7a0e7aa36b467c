"""The formula of the laws, and laws 1, 2, 3 and 7: rules only ever narrow."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from policies.eligibility import Eligible, judge
from policies.engine import decide
from policies.obligations import (
    KINDS,
    AnyObligation,
    Obligations,
    RecordRetention,
    Redact,
    TierRange,
    meet,
)
from regions.model import Tier
from tests.laws import oracle
from tests.laws.worlds import law, make_obligation, make_rule, make_world, some


def formula(rnd: Random) -> None:
    world = make_world(rnd)
    decision = decide(world.policy, world.ask, world.now)
    for place in world.places:
        allowed = decision.allowed(place.candidate)
        expected = oracle.allowed(world, place.candidate)
        assert allowed.process == expected.process
        assert allowed.retain == expected.retain
        assert allowed.operate == expected.operate
        applying = oracle.applying(world, place.candidate)
        assert {one.rule for one in allowed.applied} == {rule.name for rule in applying}
        assert allowed.require == {name for rule in applying for name in rule.require}
        assert len(allowed.prefer) == len([r for r in applying if r.prefer is not None])


def law_1_order_and_repetition(rnd: Random) -> None:
    world = make_world(rnd)
    again = [*world.policy.rules, *world.policy.rules[:2]]
    rnd.shuffle(again)
    one = decide(world.policy, world.ask, world.now)
    other = decide(world.with_rules(again).policy, world.ask, world.now)
    assert (one.dry_run, one.good_until, one.unknowns) == (
        other.dry_run,
        other.good_until,
        other.unknowns,
    )
    for place in world.places:
        assert one.allowed(place.candidate) == other.allowed(place.candidate)


def law_2_more_rules_never_widen(rnd: Random) -> None:
    world = make_world(rnd)
    rule, _ = make_rule(rnd, world.atlas, "one-more")
    more = world.with_rules([*world.policy.rules, rule])
    before = decide(world.policy, world.ask, world.now)
    after = decide(more.policy, world.ask, world.now)
    for place in world.places:
        fewer, most = before.allowed(place.candidate), after.allowed(place.candidate)
        assert oracle.no_wider(most, fewer)
        for kind, obligation in fewer.obligations.held.items():
            held = most.obligations.held.get(kind)
            assert kind in most.obligations.conflicts or (
                held is not None and meet(held, obligation) == held
            )


def law_3_never_beyond_the_grant(rnd: Random) -> None:
    world = make_world(rnd)
    decision = decide(world.policy, world.ask, world.now)
    tenant = world.policy.tenants.get(world.tenant)
    grant = tenant.grant if tenant is not None else None
    process, retain, operate = world.bounds.get(f"grant:{world.tenant}", (None, None, None))
    for place in world.places:
        allowed = decision.allowed(place.candidate)
        if grant is None:
            assert allowed.process.sure == allowed.retain.sure == allowed.operate.mask == 0
            found = judge(
                decision, place.candidate, place.endpoint, place.footprint, world.router, 0
            )
            assert not isinstance(found, Eligible)
            continue
        assert process is not None
        assert retain is not None
        assert operate is not None
        assert not allowed.process.sure & ~process.naive(world.now).sure
        assert not allowed.retain.sure & ~retain.naive(world.now).sure
        assert not allowed.operate.mask & ~operate.naive(world.now).mask


def law_7_the_rest_only_removes(rnd: Random) -> None:
    """Without obligations, assurances and preferences: the same sets, no fewer endpoints."""
    world = make_world(rnd)
    bare = world.with_rules(
        replace(rule, obligations=(), require=frozenset(), prefer=None)
        for rule in world.policy.rules
    )
    full = decide(world.policy, world.ask, world.now)
    less = decide(bare.policy, world.ask, world.now)
    for place in world.places:
        one, other = full.allowed(place.candidate), less.allowed(place.candidate)
        assert (one.process, one.retain, one.operate) == (
            other.process,
            other.retain,
            other.operate,
        )
        judged = [
            judge(d, place.candidate, place.endpoint, place.footprint, world.router, world.now)
            for d in (full, less)
        ]
        assert isinstance(judged[1], Eligible) or not isinstance(judged[0], Eligible)


def obligations_meet(rnd: Random) -> None:
    """`meet` is associative, commutative and idempotent; a conflict stays one."""
    kinds = some(rnd, KINDS, 1, 2)
    made = [make_obligation(rnd, kinds) for _ in range(rnd.randint(1, 4))]
    shuffled = [*made, *made[:1]]
    rnd.shuffle(shuffled)
    one, other = Obligations(), Obligations()
    for obligation in made:
        one = one.add(obligation)
    for obligation in shuffled:
        other = other.add(obligation)
    assert one == other
    assert {o.kind for o in made} == {*one.held, *one.conflicts}
    for kind in {o.kind for o in made}:
        assert (kind in one.conflicts) == (not _satisfiable([o for o in made if o.kind == kind]))
    redacts = [o for o in made if isinstance(o, Redact)]
    union = frozenset(i for o in redacts for i in o.identifiers)
    assert one.get(Redact.kind) == (Redact(union) if redacts else None)


def _satisfiable(made: list[AnyObligation]) -> bool:
    tiers = [o for o in made if isinstance(o, TierRange)]
    records = [o for o in made if isinstance(o, RecordRetention)]
    some_tier = any(all(o.floor <= tier <= o.ceiling for o in tiers) for tier in Tier)
    moments = [n / 2 for n in range(40)]
    return some_tier and any(
        all(o.least <= m and (o.most is None or m <= o.most) for o in records) for m in moments
    )


test_formula = law(formula)
test_law_1 = law(law_1_order_and_repetition)
test_law_2 = law(law_2_more_rules_never_widen)
test_law_3 = law(law_3_never_beyond_the_grant)
test_law_7 = law(law_7_the_rest_only_removes)
test_obligations_meet = law(obligations_meet)
