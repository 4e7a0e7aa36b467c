import pytest

from policies.eligibility import CODES, Reason
from policies.explain import say


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_reason_is_a_sentence_without_a_gap(code: str) -> None:
    assert "{" not in say(Reason(code, "x"))
    assert "  " not in say(Reason(code, ""))


def test_the_detail_is_told() -> None:
    assert say(Reason("assurance_missing", "baa")) == "assurance `baa` is not held"
    assert say(Reason("process_unknown", "")).endswith("missing: not said")
