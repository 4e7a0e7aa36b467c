from policies.attributes import State
from policies.conditions import AllOf, AnyOf, CandidateIs, Is, Not
from policies.masks import Asked, bits, is_plain, necessary

A, B = Is("a", frozenset({"x"})), Is("b", frozenset({"x", "y"}))
SMALL = CandidateIs("tier", frozenset({"small"}))


def test_bits() -> None:
    assert list(bits(0b1010_0001)) == [0, 5, 7]
    assert list(bits(0)) == []


def test_what_a_condition_needs() -> None:
    nested = AllOf((A, AllOf((Not(B), SMALL)), AnyOf((A, B))))
    assert list(necessary(nested)) == [("a", A.values, False), ("b", B.values, True)]
    assert not is_plain(nested)
    assert is_plain(AllOf((A, Not(B), SMALL, Not(SMALL))))
    assert not is_plain(Not(AllOf((A, B))))


def test_masks_of_one_attribute() -> None:
    asked = Asked()
    asked.add(0b001, ["x"], negated=False)
    asked.add(0b010, ["x"], negated=True)
    asked.freeze(0b111)
    assert asked.masks(State(frozenset({"x"}), closed=True)) == (0b101, 0)
    assert asked.masks(State(frozenset({"y"}), closed=True)) == (0b110, 0)
    assert asked.masks(State()) == (0b111, 0b011)
    assert asked.masks(State(frozenset({"x"}), closed=False)) == (0b101, 0)
    assert asked.others == 0b100


def test_masks_of_a_state_are_remembered_up_to_a_bound() -> None:
    asked = Asked()
    asked.add(0b01, ["x"], negated=False)
    asked.freeze(0b11, 2)
    for value in "abcdx":
        state = State(frozenset({value}), closed=True)
        assert asked.look(state) == asked.masks(state) == asked.known[state]
    assert len(asked.known) <= 2
