from __future__ import annotations

import asyncio

import httpx
import pytest

from router.simulator.faults import Fault, Kind
from router.simulator.replica import Replica
from tests.router.simulator.breaking import ask, raw


async def test_instead_of_an_answer_html_garbage_or_a_redirect(replica: Replica) -> None:
    replica.fail(Fault(Kind.HTML, status=502, times=1))
    page = await ask(replica)
    assert (page.status_code, page.headers["content-type"]) == (502, "text/html")
    replica.fail(Fault(Kind.GARBAGE, times=1))
    garbage = await ask(replica, stream=False)
    assert (garbage.status_code, garbage.headers["content-type"]) == (200, "application/json")
    with pytest.raises(ValueError, match="decode"):
        garbage.json()
    replica.fail(Fault(Kind.REDIRECT, location="http://127.0.0.1:9/elsewhere", times=1))
    moved = await ask(replica)
    assert (moved.status_code, moved.headers["location"]) == (307, "http://127.0.0.1:9/elsewhere")


async def test_a_hang_lasts_until_the_client_leaves(replica: Replica) -> None:
    replica.fail(Kind.HANG)
    with pytest.raises(httpx.ReadTimeout):
        await ask(replica, patience=0.1)
    await asyncio.sleep(0.02)
    assert replica.seen[0].outcome == "gone"


@pytest.mark.parametrize("after", [0, 1, 20])
async def test_a_reset_before_or_in_the_head(replica: Replica, after: int) -> None:
    replica.fail(Fault(Kind.RESET_HEAD, after=after))
    with pytest.raises(httpx.ReadError):
        await ask(replica)
    assert (await raw(replica)) == b"HTTP/1.1 200 OK\r\ncontent-type"[:after]
    assert [hit.outcome for hit in replica.seen] == ["reset_head", "reset_head"]


async def test_lengths_that_lie_and_headers_that_are_huge(replica: Replica) -> None:
    replica.fail(Fault(Kind.WRONG_LENGTH, size=10, times=1))
    with pytest.raises(httpx.RemoteProtocolError):
        await ask(replica, stream=False)
    replica.fail(Fault(Kind.WRONG_LENGTH, size=-10, times=1))
    with pytest.raises(ValueError, match=r"Unterminated|delimiter|Expecting"):
        (await ask(replica, stream=False)).json()
    replica.fail(Fault(Kind.HUGE_HEADERS, size=20_000))
    assert len((await ask(replica)).headers["x-padding"]) == 20_000


async def test_a_kept_alive_connection_is_dropped_without_a_word(replica: Replica) -> None:
    replica.fail(Kind.DROP_IDLE)
    received = await asyncio.wait_for(raw(replica), 0.25)  # ends without a timeout: it was closed
    assert received.endswith(b"0\r\n\r\n")
    assert b"connection: close" not in received


async def test_a_plain_body_can_be_cut_in_its_middle(replica: Replica) -> None:
    replica.fail(Fault(Kind.RESET_AFTER, after=1))
    with pytest.raises(httpx.ReadError):
        await ask(replica, stream=False)
