"""A client may ask for less time than the router gives, never for more."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import RequestError
from router.inbound.deadlines import seconds_for, whole_body
from tests.exchanges import FakeExchange, PromptExchange


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h"]), st.floats(0.001, 3600))
def test_never_above_the_limit(number: int, unit: str, most: float) -> None:
    found = seconds_for(f"{number}{unit}".encode(), most)
    size = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
    assert found == min(number * size, most)


def test_silence_is_the_routers_limit() -> None:
    assert seconds_for(None, 7.0) == 7.0


@pytest.mark.parametrize("said", [b"", b"30", b"soon", b"0s", b"-1s", b"1s,2s", b"\xff", b"9" * 9])
def test_what_is_no_time_is_refused(said: bytes) -> None:
    with pytest.raises(RequestError, match="x-domicile-deadline") as error:
        seconds_for(said, 7.0)
    assert (error.value.code, error.value.status) == ("invalid_header", 400)


async def test_a_body_that_comes_too_slowly_is_refused_at_the_deadline() -> None:
    class Slow(FakeExchange):
        async def body(self, limit: int) -> bytes:
            await asyncio.Event().wait()
            raise AssertionError

    until = asyncio.get_running_loop().time() + 0.02
    with pytest.raises(RequestError, match="send it faster") as error:
        await asyncio.wait_for(whole_body(Slow(), 10, until), 5)
    assert (error.value.code, error.value.status) == ("deadline", 504)


async def test_a_body_that_is_there_is_taken_even_late() -> None:
    class There(PromptExchange):
        def here(self, limit: int) -> bytes | None:
            return b"{}"

    assert await whole_body(There(), 10, 0.0) == b"{}"
