"""Times to come back in an error's headers, members and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.providers.waits import RETRY_CEILING, retry_after, retry_in

NOW = 1_795_000_000.0

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
        ({"message": "try again in 1d"}, 3600.0),
        ({"msg": "try again in 3s"}, 3.0),
        ({"message": {"a": "try again in 3s"}}, None),
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


SENT = (b"date", b"Fri, 01 Jan 2100 00:00:00 GMT")


def spent(
    reset: bytes, which: bytes = b"-requests", left: bytes = b"0"
) -> tuple[tuple[bytes, bytes], ...]:
    """A limit as OpenAI's servers write it: what is left of it, and when it is full again."""
    return (b"x-ratelimit-remaining" + which, left), (b"x-ratelimit-reset" + which, reset)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (((b"retry-after", b"7"),), 7.0),
        (((b"retry-after", b"1.5"),), 1.5),
        (((b"retry-after-ms", b"250"), (b"retry-after", b"9")), 0.25),
        (((b"retry-after", b"-3"),), 0.0),
        (((b"retry-after", b"1800"),), 1800.0),
        (((b"retry-after", b"86400000"),), RETRY_CEILING),
        (((b"retry-after", b"NaN"),), None),
        (((b"retry-after", b"inf"),), None),
        (((b"retry-after", b"soon"),), None),
        (((b"retry-after", b""),), None),
        ((), None),
        (((b"retry-after", b"Fri, 01 Jan 9999 00:00:00 GMT"),), RETRY_CEILING),
        (((b"retry-after", b"Thu, 01 Jan 1970 00:00:00 GMT"),), 0.0),
        (((b"retry-after", b"Thu, 99 Xxx 9999 99:99:99 GMT"),), None),
        # By the clock of whoever says it, whatever this machine's says.
        ((SENT, (b"retry-after", b"Fri, 01 Jan 2100 00:00:05 GMT")), 5.0),
        ((SENT, *spent(b"4102444809")), 9.0),
        (((b"date", b"today"), (b"retry-after", b"Thu, 01 Jan 1970 00:00:00 GMT")), 0.0),
        (spent(b"6m0s"), 360.0),
        (spent(b"1d2h3m4.5s"), RETRY_CEILING),
        (spent(b"1h"), 3600.0),
        (spent(b"7.66s"), 7.66),
        (spent(b"120ms"), 0.12),
        (spent(b"42"), 42.0),
        (spent(b"1795000009"), 9.0),
        (spent(b"1795000009500"), 9.5),
        (spent(b"1"), 1.0),
        (spent(b"-1s"), None),
        (spent(b"-5"), 0.0),
        (spent(b"9" * 4000), None),
        (spent(b"9" * 400 + b"d"), RETRY_CEILING),
        (spent(b"soon"), None),
        (spent(b""), None),
        (spent(b"NaN"), None),
        (spent(b"9s", left=b"1"), None),
        (spent(b"9s", left=b"none"), None),
        (spent(b"9s")[:1], None),
        (spent(b"9s")[1:], None),
        ((*spent(b"9s"), (b"retry-after", b"2")), 2.0),
        ((*spent(b"9s"), *spent(b"3m", b""), *spent(b"1h", b"-tokens", left=b"7")), 180.0),
    ],
)
def test_retry_after(headers: tuple[tuple[bytes, bytes], ...], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@given(st.binary(max_size=40))
def test_retry_after_is_always_sane(value: bytes) -> None:
    for headers in (((b"retry-after", value),), spent(value), spent(b"9s", left=value)):
        told = retry_after(headers, NOW)
        assert told is None or 0 <= told <= RETRY_CEILING
