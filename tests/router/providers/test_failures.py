"""What an upstream's error means, and that none of its words come along."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.health import Sign
from router.answers.outcomes import Failed
from router.providers.base import Kind
from router.providers.failures import (
    by_status,
    call_id,
    named_in,
    openai_error,
    openai_failure,
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


def test_a_long_word_of_an_error_holds_nobody_up() -> None:
    """A client may write it: engines repeat what they refuse."""
    said, began = "'" + "a" * 1_000_000, time.perf_counter()
    assert named_in(said) is None
    assert time.perf_counter() - began < 0.5
    assert named_in(f"{said} but `temperature` is wrong") == "temperature"
