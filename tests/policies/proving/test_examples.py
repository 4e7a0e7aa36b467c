from policies.proving.examples import CounterExample, in_force, minimal, smallest
from policies.proving.logic import Logic, holds
from policies.proving.requests import Request
from tests.policies.samples import loaded

REQUEST = Request("acme", None, "interactive", (("data", "health", "header"),))


def test_the_smallest_has_fewest_and_a_minimal_one_no_spare() -> None:
    logic = Logic()
    a, b, c, d = (logic.fresh() for _ in range(4))
    wanted = logic.any_of((logic.all_of((a, b)), logic.all_of((b, c, d))))
    for how in (minimal, smallest):
        example = how(logic, (a, b, c, d), wanted)
        assert example is not None
        assert [holds(x, example) for x in (a, b, c, d)] in (
            [True, True, False, False],
            [False, True, True, True],
        )
    least = smallest(logic, (a, b, c, d), wanted)
    assert least is not None
    assert sum(holds(x, least) for x in (a, b, c, d)) == 2
    assert smallest(logic, (a, b), wanted, -b) is None
    assert minimal(logic, (-a,), a) is not None


def test_a_broken_assert_reads_as_one_sentence() -> None:
    outside = (("processed", tuple(f"aws:r{n}" for n in range(8))),)
    shown = CounterExample(REQUEST, 0.0, "big", ("stored",), "self:fra1", outside, rules=("x", "y"))
    assert str(shown) == (
        "tenant `acme`, `data: health` said by header: `big` with stored by the router in "
        "self:fra1 is eligible, processed in aws:r0, aws:r1, aws:r2, aws:r3, aws:r4, aws:r5 and "
        "2 more; rules that apply: x, y"
    )


def test_a_broken_ensure_reads_as_one_sentence() -> None:
    shown = CounterExample(REQUEST, 0.0, model="chat", lost="aws", left=("own",))
    assert "without aws, model `chat` has only own left; no rule applies" in str(shown)
    quiet = CounterExample(REQUEST, 0.0, model="chat", lost="nothing")
    assert "with everything up, model `chat` has no endpoint left" in str(quiet)


def test_rules_on_trial_are_absent_or_present() -> None:
    policy = loaded(
        "tenants: {acme: {grant: {process: EU}}}\n"
        "rules: [{name: r, process_within: DE, dry_run: {until: 2030-01-01}}]\n"
    )
    assert in_force(policy, 0.0, trials=False).rules == ()
    assert in_force(policy, 0.0, trials=True).rules[0].dry_run_until is None
    assert len(in_force(policy, 4e9, trials=False).rules) == 1
