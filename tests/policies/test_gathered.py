from policies.gathered import PolicyFile, gather_files
from policies.written import Errors


def test_entries_keep_their_places() -> None:
    errors = Errors()
    found = gather_files(
        [PolicyFile("a.yaml", b"tenants:\n  t: {weight: 2}\nrules:\n  - {name: r, require: x}\n")],
        [PolicyFile("b.yaml", b"rules:\n  - {name: s, require: x}\n")],
        errors,
    )
    assert errors.found == []
    assert str(found.sections["tenants"]["t"].mark) == "a.yaml:2:3"
    marks = [(config.name, str(e.mark), baseline) for e, config, baseline in found.rules]
    assert marks == [("r", "a.yaml:4:5", True), ("s", "b.yaml:2:5", False)]


def test_a_rule_moved_out_of_the_baseline_is_another_policy() -> None:
    rule = PolicyFile("a.yaml", b"rules: [{name: r, require: x}]")
    inside = gather_files([rule], [], Errors()).digest("catalog")
    outside = gather_files([], [rule], Errors()).digest("catalog")
    assert inside != outside
    assert inside != gather_files([rule], [], Errors()).digest("another catalog")
