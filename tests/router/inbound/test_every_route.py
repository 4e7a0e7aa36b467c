"""What FastAPI's routes ask before anything else, over every head there can be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from router.errors import RequestError
from router.inbound.every_route import once
from router.inbound.once import ONCE

NAMES = st.sampled_from([*sorted(ONCE), b"accept", b"cookie", b"host"])


def request(names: Sequence[bytes]) -> Request:
    headers = [(name, b"%d" % number) for number, name in enumerate(names)]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": headers})


@given(names=st.lists(NAMES, max_size=8))
async def test_a_head_is_refused_where_it_says_twice_whose_it_is(names: list[bytes]) -> None:
    twice = [name.decode() for name in sorted(ONCE) if names.count(name) > 1]
    if not twice:
        await once(request(names))
        return
    with pytest.raises(RequestError) as caught:
        await once(request(names))
    assert (caught.value.code, caught.value.param) == ("invalid_header", twice[0])


async def test_the_same_value_twice_is_still_twice() -> None:
    headers = [(b"authorization", b"Bearer a")] * 2
    with pytest.raises(RequestError):
        await once(Request({"type": "http", "method": "GET", "path": "/", "headers": headers}))


async def test_two_ways_to_say_it_are_not_one_of_them_twice() -> None:
    await once(request([b"authorization", b"x-api-key"]))
