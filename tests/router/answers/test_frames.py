"""Errors within answers: what of them is safe, and what status they amount to."""

from hypothesis import given
from hypothesis import strategies as st

from router.answers.frames import StreamError

LEAF = st.none() | st.booleans() | st.integers() | st.text() | st.floats()
KEYS = st.sampled_from(["type", "code", "status", "message"])


@given(LEAF | st.lists(LEAF) | st.dictionaries(KEYS, LEAF | st.lists(LEAF)))
def test_whatever_an_error_holds_it_is_bounded_and_clean(value: object) -> None:
    found = StreamError.read(value)
    assert 400 <= found.status <= 599
    assert 0 < len(found.kind) <= 64
    assert found.kind.isascii()
    assert found.kind.isprintable()
    assert " " not in found.kind
    assert len(found.message) <= 2000


def test_a_status_is_taken_from_a_number_before_a_name() -> None:
    assert StreamError.read({"type": "rate_limit_error", "code": 503}).status == 503
    assert StreamError.read({"type": "throttlingException"}).status == 429
    assert StreamError.read({"type": "x", "code": "rate_limit_exceeded"}).status == 429
    assert StreamError.read({"code": 1000}).status == 500
