"""What an upstream's error means, and that none of its words come along."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.health import Sign
from router.answers.outcomes import Failed
from router.providers.base import Kind
from router.providers.failures import (
    RETRY_CEILING,
    by_status,
    call_id,
    openai_error,
    openai_failure,
    retry_after,
)
from router.transport.messages import Fate

NOW = 1_795_000_000.0


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, Kind.LOAD), (529, Kind.LOAD), (425, Kind.LOAD),
        (408, Kind.ILL), (424, Kind.ILL), (500, Kind.ILL), (502, Kind.ILL), (503, Kind.ILL),
        (504, Kind.ILL), (520, Kind.ILL), (522, Kind.ILL), (524, Kind.ILL), (599, Kind.ILL),
        (401, Kind.AUTH), (402, Kind.AUTH), (403, Kind.AUTH), (407, Kind.AUTH),
        (404, Kind.MISSING), (405, Kind.MISSING), (501, Kind.MISSING),
        (400, Kind.CLIENT), (413, Kind.CLIENT), (422, Kind.CLIENT),
        (301, Kind.BAD_ANSWER), (204, Kind.BAD_ANSWER),
    ],
)  # fmt: skip
def test_statuses(status: int, kind: Kind) -> None:
    failure = openai_failure(status, (), b"<html>", NOW)
    assert by_status(status) is failure.kind is kind
    assert failure.status == status


@pytest.mark.parametrize(
    ("status", "sign"),
    [(429, Sign.LOAD), (529, Sign.LOAD), (503, Sign.ILL), (400, Sign.CLIENT), (401, Sign.LOAD)],
)
def test_load_is_not_illness(status: int, sign: Sign) -> None:
    failure = openai_failure(status, (), b"", NOW)
    assert Failed.told(failure, Fate.REFUSED).sign is sign


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


def test_context_length_keeps_the_number_only(canary: str) -> None:
    message = (
        f"This model's maximum context length is 1024 tokens. However, {canary} you requested "
        "2000 tokens. http://10.0.0.8/v1?key=sk-1"
    )
    body = json.dumps({"error": {"message": message, "code": 400}}).encode()
    failure = openai_failure(400, (), body, NOW)
    assert failure.kind is Kind.CONTEXT_LENGTH
    assert "1024 tokens" in failure.message
    assert "2000" not in repr(failure)
    assert canary not in repr(failure)


def test_codes_and_parameters_out_of_the_lists_only(canary: str) -> None:
    error = {"message": canary, "code": canary, "type": "invalid_request_error", "param": canary}
    failure = openai_error(400, error, None)
    assert (failure.provider_code, failure.param) == ("invalid_request_error", None)
    error["param"] = "temperature"
    assert "`temperature`" in openai_error(400, error, None).message


def test_content_filter() -> None:
    assert openai_error(400, {"code": "content_filter"}, None).kind is Kind.REFUSED


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just("canary-x") | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "message", "code", "type", "param", "detail", "canary-x"]),
            inner,
            max_size=4,
        )
    ),
)


@given(st.integers(100, 699), JSON)
def test_no_word_of_the_upstream_comes_along(status: int, body: object) -> None:
    failure = openai_failure(
        status, ((b"retry-after", b"canary-x"),), json.dumps(body).encode(), NOW
    )
    assert "canary-x" not in repr(failure)


@pytest.mark.parametrize(
    "told",
    [
        "0199f1de-24b8-7cc1-9e0a-3f5f5a5e7d10",
        "req_95c3f7c6a2d34bc3a1e5d3aa10c2b9f4",
        "chatcmpl-0199f1de24b87cc19e0a3f5f5a5e7d10",
        "1F2E3D4C",
    ],
)
def test_call_ids_have_the_form_of_one(told: str) -> None:
    assert call_id(((b"x-request-id", told.encode()),), b"x-request-id") == told


@pytest.mark.parametrize("told", ["", "a b", "a" * 65, "Anna-Schmidt", "req_health-data", "abc"])
def test_text_is_no_call_id(told: str) -> None:
    assert call_id(((b"x-request-id", told.encode()),), b"x-request-id") is None


def test_no_header_no_call_id() -> None:
    assert call_id((), b"x-request-id") is None
