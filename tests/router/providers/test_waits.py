"""Times to come back in an error's members and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.providers.waits import retry_in

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ({}, None),
        ({"message": "no"}, None),
        ({"message": "try again later, 5 were asked"}, None),
        ({"message": "a country in 5s"}, None),
        ({"message": "Please try again in 6m1.2s. Limit 9, Used 8."}, 361.2),
        ({"message": "Please retry after 59 seconds."}, 59.0),
        ({"message": "Please retry in 26.660853464s."}, 26.660853464),
        ({"message": "Please wait 2 minutes"}, 120.0),
        ({"message": "try again in 250ms. Or look 10 h away"}, 0.25),
        ({"message": "try again in 2h5m"}, 3600.0),
        ({"detail": "retry in 3 s"}, 3.0),
        ({"retry_after": 7, "message": "try again in 5s"}, 7.0),
        ({"retry_after": "7.5"}, 7.5),
        ({"retry_after_ms": 1500}, 1.5),
        ({"retryAfter": -4}, 0.0),
        ({"retry_after": 1e300}, 3600.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "Infinity"}, None),
        ({"retry_after": [5]}, None),
        ({"details": [{}, {"retryDelay": "26s"}]}, 26.0),
        ({"details": [{"retryDelay": 26}, None, "26s"]}, None),
        ({"details": {"retryDelay": "26s"}}, None),
    ],
)
def test_what_is_told(error: dict[str, object], seconds: float | None) -> None:
    assert retry_in(error, 3600.0) == (None if seconds is None else pytest.approx(seconds))


@given(st.dictionaries(st.sampled_from(["message", "retry_after", "details", "detail"]), VALUES))
def test_whatever_is_told_is_bounded(error: dict[str, object]) -> None:
    told = retry_in(error, 60.0)
    assert told is None or 0.0 <= told <= 60.0
