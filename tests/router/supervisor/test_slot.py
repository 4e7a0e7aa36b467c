"""A worker's place: its socket outlives a process, not a row of failures."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from router.server import bind
from router.supervisor.slot import LONGEST_PAUSE, STEADY, Slot


def slot() -> Slot:
    def door(listens: bool) -> socket.socket:
        return bind(("127.0.0.1", 0), "listen", shared=True, listens=listens)

    return Slot(1, "eu-1.w1", door, door(True))


def test_the_first_end_is_followed_at_once_and_keeps_the_socket() -> None:
    one = slot()
    one.state = "serving"
    assert one.ended(STEADY + 1) == 0.0
    assert (one.state, one.failures) == ("down", 1)
    assert one.door is not None
    one.shut()


def test_further_ends_are_spaced_out_and_give_the_connections_to_the_others() -> None:
    one = slot()
    pauses = [one.ended(0.0) for _ in range(12)]
    assert pauses[:5] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert one.door is None


def test_a_worker_that_served_for_long_begins_anew() -> None:
    one = slot()
    for _ in range(5):
        one.ended(0.0)
    one.state, one.since = "serving", 100.0
    assert one.ended(100.0 + STEADY + 1) == 0.0
    one.state, one.since = "serving", 200.0
    assert one.ended(201.0) == 0.5


def test_sockets_of_one_address_take_connections_side_by_side() -> None:
    first = bind(("127.0.0.1", 0), "listen", shared=True)
    with first, bind(first.getsockname(), "listen", shared=True) as second:
        first.setblocking(False)
        second.setblocking(False)
        made = [socket.create_connection(first.getsockname()) for _ in range(40)]
        counts = [_queued(first), _queued(second)]
        for connection in made:
            connection.close()
    assert sum(counts) == 40
    assert min(counts) > 0


def _queued(door: socket.socket) -> int:
    count = 0
    while True:
        try:
            connection, _ = door.accept()
        except BlockingIOError:
            return count
        connection.close()
        count += 1


def test_who_waits_at_a_worker_that_takes_long_is_turned_away_to_the_others() -> None:
    one = slot()
    assert one.door is not None
    with (
        one.door.dup() as kept_by_the_process,
        bind(one.door.getsockname(), "listen", shared=True) as sibling,
    ):
        address = sibling.getsockname()
        waiting = [socket.create_connection(address) for _ in range(40)]
        for _ in range(2):  # the second time there is nothing to do
            one.turn_away()
        later = [socket.create_connection(address) for _ in range(40)]
        sibling.setblocking(False)
        taken = _queued(sibling)
        assert 40 <= taken < 80, "all that came later, and those who had waited there"
        reset = 0
        for connection in waiting:
            connection.settimeout(0.01)
            try:
                reset += connection.recv(1) == b"never"
            except ConnectionResetError:
                reset += 1
            except TimeoutError:
                continue
        assert reset + taken >= 80
        assert not kept_by_the_process.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        for connection in (*waiting, *later):
            connection.close()


async def test_nobody_waits_for_a_spaced_start_while_others_serve() -> None:
    made: list[bool] = []

    async def silent(_: Slot, __: object) -> object:
        await asyncio.Event().wait()
        return None

    for alone in (False, True):
        one = slot()

        def noted(listens: bool, real: Callable[[bool], socket.socket] = one.bind) -> socket.socket:
            made.append(listens)
            return real(listens)

        one.bind = noted
        for _ in range(2):
            one.ended(0.0)
        assert one.door is None
        await one.start(silent, 0.0, alone=alone)
        try:
            assert (one.door is not None) is alone
            one.turn_away()
            assert one.door is None
        finally:
            one.kill()
            assert one.process is not None
            await one.process.wait()
            one.ended(0.0)
    assert made == [False, True]
