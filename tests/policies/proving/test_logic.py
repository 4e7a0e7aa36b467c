from itertools import combinations, product

import pytest

from policies.proving.logic import Logic, Undecided, holds


def test_formulas_are_simplified_and_known_again() -> None:
    logic = Logic()
    a, b = logic.fresh(), logic.fresh()
    assert logic.all_of(()) == logic.true
    assert logic.any_of(()) == logic.false
    assert logic.all_of((a, logic.true, a)) == a
    assert logic.all_of((a, -a)) == logic.false
    assert logic.any_of((a, logic.true)) == logic.true
    assert logic.all_of((a, b)) == logic.all_of((b, a))
    assert logic.any_of((a, b)) == -logic.all_of((-a, -b))


def test_a_formula_is_equivalent_to_its_literal() -> None:
    logic = Logic()
    a, b = logic.fresh(), logic.fresh()
    either, both = logic.any_of((a, b)), logic.all_of((a, b))
    for first, second in product((True, False), repeat=2):
        example = logic.ask(a if first else -a, b if second else -b)
        assert example is not None
        assert holds(either, example) == (first or second)
        assert holds(both, example) == (first and second)
    assert logic.ask(both, -either) is None


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_distinct_leaves_at_most_one_while_it_is_assumed(count: int) -> None:
    logic = Logic()
    when = logic.fresh()
    each = [logic.fresh() for _ in range(count)]
    logic.distinct(each, when)
    for one in each:
        assert logic.ask(when, one) is not None
    for one, other in combinations(each, 2):
        assert logic.ask(when, one, other) is None
        assert logic.ask(one, other) is not None


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_at_most(count: int) -> None:
    logic = Logic()
    each = [logic.fresh() for _ in range(count)]
    for most in range(count + 1):
        bound = logic.at_most(each, most)
        for held in range(count + 1):
            assumed = [*each[:held], *([] if bound is None else [bound])]
            assert (logic.ask(*assumed) is not None) == (held <= most)


def test_a_counter_counts_what_is_certain_too() -> None:
    logic = Logic()
    a = logic.fresh()
    bound = logic.at_most((logic.true, a, logic.false), 1)
    assert bound is not None
    assert logic.ask(bound, a) is None
    assert logic.ask(bound) is not None


def test_no_answer_within_the_budget_is_no_answer() -> None:
    """Nine pigeons in eight holes: a small question that takes many conflicts."""
    logic = Logic(conflicts=5)
    inside = [[logic.fresh() for _ in range(8)] for _ in range(9)]
    for pigeon in inside:
        logic.add(*pigeon)
    for hole in range(8):
        logic.distinct([pigeon[hole] for pigeon in inside], logic.true)
    with pytest.raises(Undecided):
        logic.ask()
