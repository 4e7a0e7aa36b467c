"""What rules leave of each spot, against the engine, for random requests to random worlds."""

from random import Random

from policies.engine import decide
from policies.model import Rule
from policies.obligations import NoBatch
from policies.proving.examples import allowed_by_engine, in_force
from policies.proving.logic import Logic, holds
from policies.proving.reach import Effect, Reach, effects_of
from policies.proving.requests import Requests
from policies.proving.spots import spots
from policies.proving.truths import Truths
from policies.timed import always
from regions.countries import Countries
from tests.policies.proving.small import Small, make_small
from tests.policies.samples import example


def reach_of(small: Small, trials: bool) -> tuple[Requests, Reach]:
    policy = small.policy
    made = Requests(Logic(), (policy,), [rule.condition for rule in policy.rules])
    return made, Reach(made, Truths(made), policy, small.now, trials)


def test_a_spot_is_reached_exactly_when_the_engine_says_so() -> None:
    reached = 0
    for seed in range(120):
        rnd = Random(seed)
        small, trials = make_small(rnd), seed % 2 == 0
        made, reach = reach_of(small, trials)
        found = spots(small.policy, small.facts, small.routers, small.now)
        literals = {spot: reach.reaches(spot) for spot in found}
        judged = in_force(small.policy, small.now, trials)
        for n in range(5):
            example = made.logic.ask(*rnd.sample(made.choices, min(n, len(made.choices))))
            if example is None:
                continue
            request = made.read(example)
            for spot, literal in literals.items():
                wanted = allowed_by_engine(judged, request, spot, small.now) is not None
                reached += wanted
                assert holds(literal, example) == wanted, f"seed {seed}"
    assert reached > 50


def test_each_atom_is_allowed_exactly_when_the_engine_says_so() -> None:
    for seed in range(40):
        rnd = Random(seed)
        small = make_small(rnd)
        made, reach = reach_of(small, trials=False)
        atlas = small.policy.atlas
        bits = [1 << n for n in range(len(atlas))]
        literals = {bit: reach.contains("process", bit) for bit in bits}
        example = made.logic.ask(*rnd.sample(made.choices, min(2, len(made.choices))))
        if example is None:
            continue
        judged = in_force(small.policy, small.now, trials=False)
        common = decide(judged, made.read(example).ask(judged), small.now).common
        for bit, literal in literals.items():
            assert holds(literal, example) == bool(common.process.sure & bit), f"seed {seed}"


def test_everything_a_rule_does_is_an_effect() -> None:
    atlas = example().policy.atlas
    eu = always(atlas.jurisdiction("EU"))
    operate = always(Countries.of(["DE"]))
    rule = Rule("r", process=eu, retain=eu, operate=operate, require=frozenset({"dpa"}),
                obligations=(NoBatch(),))  # fmt: skip
    mask = eu.values[0].sure
    assert list(effects_of(rule, 0.0)) == [
        Effect("process", mask),
        Effect("retain", mask),
        Effect("operate", Countries.of(["DE"]).mask),
        Effect("require", name="dpa"),
        Effect("obligation", obligation=NoBatch()),
    ]
