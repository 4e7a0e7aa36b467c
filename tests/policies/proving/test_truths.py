from random import Random

from policies.attributes import Truth
from policies.proving.logic import Logic, holds
from policies.proving.requests import Requests
from policies.proving.truths import Truths
from tests.policies.proving.brute import ways
from tests.policies.proving.small import make_condition, make_small


def test_conditions_are_as_true_as_the_engine_says() -> None:
    """Random requests, random conditions, with and without the candidate."""
    for seed in range(60):
        rnd = Random(seed)
        small = make_small(rnd)
        policy = small.policy
        conditions = [make_condition(rnd, policy.declared, 3, free=True) for _ in range(4)]
        made = Requests(Logic(), (policy,), conditions)
        truths = Truths(made)
        candidates = [None, *(way.candidate for way in ways(small))]
        pairs = [(c, k, truths.truth(c, k)) for c in conditions for k in candidates]
        for n in range(6):
            chosen = rnd.sample(made.choices, min(n, len(made.choices)))
            example = made.logic.ask(*chosen)
            if example is None:
                continue
            facts = made.read(example).ask(policy).facts
            for condition, candidate, (true, maybe) in pairs:
                wanted = condition.truth(facts, candidate)
                assert holds(true, example) == (wanted is Truth.TRUE), f"seed {seed}"
                assert holds(maybe, example) == (wanted is not Truth.FALSE), f"seed {seed}"
