from policies.findings import Severity
from policies.lint import lint, worst
from tests.policies.samples import EXAMPLE, NOW, example, loading


def test_findings_are_sorted_worst_first_and_say_where() -> None:
    found = lint(example(), NOW, {"log": "aws:us-east-1"})
    assert worst(found) is Severity.ERROR
    assert [f.severity for f in found] == sorted(f.severity for f in found)
    assert str(found[0]).startswith("main.yaml:5:3: error: `log` is in aws:us-east-1")
    assert str(found[0]).endswith("(store_outside)")
    assert worst(()) is None


def test_a_clean_policy_has_no_errors() -> None:
    assert worst(lint(example(), NOW, {"log": "aws:eu-central-1"})) is not Severity.ERROR


def test_nothing_is_found_twice() -> None:
    found = lint(loading(EXAMPLE), NOW)
    assert len(set(found)) == len(found)
