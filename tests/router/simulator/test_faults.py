from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import httpx
import pytest

from router.simulator.faults import Fault, FaultBook, Kind
from router.simulator.replica import Replica
from tests.router.simulator.breaking import ask, body, raw


def pieces(text: str) -> list[str]:
    return [line for line in text.split("\n\n") if line]


def data_of(text: str) -> list[object]:
    """Event data by the HTML rules: lines joined, empty events dropped."""
    blocks = text.replace("\r\n", "\n").split("\n\n")
    found: list[object] = []
    for block in blocks:
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line[:5] == "data:"]
        if data := "\n".join(lines):
            found.append(json.loads(data) if data != "[DONE]" else data)
    return found


@pytest.mark.parametrize("status", [429, 500, 503, 520, 529])
async def test_error_statuses_come_with_a_json_error_and_retry_after(
    replica: Replica, status: int
) -> None:
    replica.fail(Fault(Kind.STATUS, status=status, retry_after="NaN", error="Overloaded"))
    answer = await ask(replica)
    assert answer.status_code == status
    assert answer.headers["retry-after"] == "NaN"
    assert answer.json()["error"]["code"] == status
    assert answer.json()["error"]["type"] == "Overloaded"
    assert replica.seen[0].outcome == f"status:{status}"
    assert replica.seen[0].faults == ("status",)


@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("kind", [Kind.RESET_AFTER, Kind.CLOSE_AFTER, Kind.STALL_AFTER])
async def test_a_stream_is_cut_after_so_many_frames(
    replica: Replica, kind: Kind, after: int
) -> None:
    replica.fail(Fault(kind, after=after))
    received = await raw(replica)
    assert received.count(b"data: ") == after
    assert b"[DONE]" not in received
    await asyncio.sleep(0.01)
    wanted = {Kind.RESET_AFTER: "reset", Kind.CLOSE_AFTER: "close", Kind.STALL_AFTER: "gone"}
    assert replica.seen[0].outcome == wanted[kind]
    errors = {
        Kind.RESET_AFTER: httpx.ReadError,
        Kind.CLOSE_AFTER: httpx.RemoteProtocolError,
        Kind.STALL_AFTER: httpx.ReadTimeout,
    }
    with pytest.raises(errors[kind]):
        await ask(replica, patience=0.1)


async def test_a_stream_that_ends_properly_but_early(replica: Replica) -> None:
    replica.fail(Fault(Kind.END_AFTER, after=1))
    answer = await ask(replica)
    assert answer.status_code == 200
    (only,) = pieces(answer.text)
    assert json.loads(only[6:])["choices"][0]["delta"] == {"role": "assistant", "content": ""}


@pytest.mark.parametrize("after", [0, 3])
async def test_an_error_event_before_or_after_content(replica: Replica, after: int) -> None:
    replica.fail(Fault(Kind.ERROR_EVENT, status=429, after=after))
    found = pieces((await ask(replica)).text)
    contents = [event for event in found if '"content":' in event and '"role"' not in event]
    assert len(contents) == after
    assert json.loads(found[-2][6:])["error"]["code"] == 429
    assert found[-1] == "data: [DONE]"


async def test_one_bad_line_in_a_stream_that_is_otherwise_complete(replica: Replica) -> None:
    whole = pieces((await ask(replica)).text)
    replica.fail(Fault(Kind.BAD_LINE, after=2))
    found = pieces((await ask(replica)).text)
    broken = [event for event in found if event not in whole]
    assert len(broken) == 1
    assert found.index(broken[0]) == 3  # role, two words
    assert [event for event in found if event in whole] == whole
    with pytest.raises(ValueError):
        json.loads(broken[0][6:])


async def test_a_first_chunk_without_choices_and_comments(replica: Replica) -> None:
    replica.fail(Kind.EMPTY_CHOICES)
    replica.fail(Kind.COMMENTS)
    found = pieces((await ask(replica)).text)
    assert found[0] == ": keep-alive"
    assert json.loads(found[1][6:])["choices"] == []
    assert found.count(": keep-alive") * 2 == len(found)


async def test_odd_but_legal_event_streams_carry_the_same_data(replica: Replica) -> None:
    whole = (await ask(replica)).text
    replica.fail(Kind.ODD_SSE)
    answer = await ask(replica)
    assert answer.content.startswith(b"\xef\xbb\xbf")
    assert b"event: ping\n\n" in answer.content
    assert b"\r\n" in answer.content
    assert data_of(answer.content.decode("utf-8-sig")) == data_of(whole)


async def test_bytes_split_anywhere_are_the_same_bytes(replica: Replica) -> None:
    whole = (await ask(replica)).content
    for size, after in ((1, 0), (3, 0), (0, 11), (0, 150)):
        replica.faults.clear()
        replica.fail(Fault(Kind.SPLIT, size=size, after=after))
        assert (await ask(replica)).content == whole


async def test_slow_answers_are_slow_where_they_should_be(replica: Replica) -> None:
    loop = asyncio.get_running_loop()
    for kind in (Kind.SLOW_HEAD, Kind.SLOW_START, Kind.TRICKLE):
        replica.faults.clear()
        replica.fail(Fault(kind, seconds=0.03))
        async with httpx.AsyncClient(trust_env=False) as http:
            url = replica.url + "/v1/chat/completions"
            started = loop.time()
            async with http.stream("POST", url, json=body(stream=True)) as answer:
                head = loop.time() - started
                times = [loop.time() async for line in answer.aiter_lines() if line]
        assert (head >= 0.03) is (kind is Kind.SLOW_HEAD)
        assert times[0] - started >= 0.03
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert (min(gaps) >= 0.02) is (kind is Kind.TRICKLE)


def test_probability_is_seeded_and_times_counts_down() -> None:
    def draws(seed: int) -> list[bool]:
        book = FaultBook(seed)
        book.arm(Fault(Kind.STATUS, probability=0.3))
        return [book.draw().instead is not None for _ in range(400)]

    assert draws(1) == draws(1) != draws(2)
    assert 80 < sum(draws(1)) < 160
    book = FaultBook()
    book.arm(Fault(Kind.STATUS, times=2))
    book.arm(Fault(Kind.STATUS, times=2))  # an equal one is another one
    assert [book.draw().instead is not None for _ in range(5)] == [True] * 4 + [False]


def test_faults_hit_only_what_they_are_meant_for() -> None:
    book = FaultBook()
    book.arm(Fault(Kind.STATUS, model="big", region="eu-", path="/chat"))
    assert book.draw(model="big-1", region="aws:eu-west-1", path="/v1/chat").instead is not None
    for other in (("small", "aws:eu-west-1", "/v1/chat"), ("big", "us", "/v1/chat")):
        assert book.draw(model=other[0], region=other[1], path=other[2]).instead is None
    book.arm(Fault(Kind.TRICKLE))
    book.clear(Kind.STATUS)
    assert [fault.kind for fault in book.armed] == [Kind.TRICKLE]
    assert book.draw().names == ("trickle",)


def test_faults_from_json_are_checked() -> None:
    fault = Fault.parse({"kind": "status", "status": 500, "probability": 1, "times": None})
    assert fault == Fault(Kind.STATUS, status=500, probability=1)
    for bad in (
        {}, {"kind": "x"}, {"kind": "hang", "size": "1"}, {"kind": "hang", "after": True},
        {"kind": "hang", "colour": "red"}, {"kind": "hang", "status": None},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            Fault.parse(bad)
