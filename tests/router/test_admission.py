"""Admission: places are given back, and a bad body says where, not what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.admission import Concurrency, Lease, optional_flag, parse, require
from router.errors import RequestError


def test_a_full_key_is_refused_and_others_are_not() -> None:
    limits = Concurrency(2)
    first, _ = limits.enter("a", None), limits.enter("a", None)
    with pytest.raises(RequestError) as caught:
        limits.enter("a", None)
    assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
    limits.enter("b", None)
    first.close()
    first.close()
    limits.enter("a", None)
    assert limits.total == 3


def test_a_keys_own_limit_goes_first() -> None:
    limits = Concurrency(1)
    limits.enter("a", 2)
    limits.enter("a", 2)
    with pytest.raises(RequestError):
        limits.enter("a", 2)


@given(st.lists(st.booleans(), max_size=50))
def test_places_never_leak(steps: list[bool]) -> None:
    limits = Concurrency(1000)
    held: list[Lease] = []
    for enter in steps:
        if enter or not held:
            held.append(limits.enter("k", None))
        else:
            held.pop().close()
    assert limits.total == len(held)
    for lease in held:
        lease.close()
    assert limits.total == 0


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"secret-canary": tru}', "invalid_json"),
        (b'{"a": "\xff"}', "invalid_json"),
        (b'{"a": "\\ud800"}', "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "invalid_json"),
        (b"[]", "invalid_request"),
        (b'"text"', "invalid_request"),
        (b"null", "invalid_request"),
        (b"NaN", "invalid_json"),
    ],
)
def test_bad_bodies(raw: bytes, code: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(raw)
    assert caught.value.code == code
    assert "canary" not in str(caught.value.body())


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_400(raw: bytes) -> None:
    try:
        status = 200 if isinstance(parse(raw), dict) else 0
    except RequestError as error:
        status = error.status
    assert status in (200, 400)


def test_required_and_optional_parameters() -> None:
    assert require({"model": "m"}, "model", str, "a string") == "m"
    for body in ({}, {"model": None}, {"model": 3}):
        with pytest.raises(RequestError) as caught:
            require(body, "model", str, "a string")
        assert caught.value.param == "model"
    assert optional_flag({"stream": None}, "stream") is False
    assert optional_flag({"stream": True}, "stream") is True
    with pytest.raises(RequestError):
        optional_flag({"stream": "yes"}, "stream")
