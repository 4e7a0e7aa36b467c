from random import Random

import orjson
import pytest

from router.audit.entry import Entry, Interned
from router.audit.errors import EntryRefused
from router.audit.intake import Intake
from router.audit.recovery import Recovered


def intake(segment_bytes: int = 1 << 20) -> Intake:
    return Intake("eu-1", segment_bytes, Random(1).randbytes, lambda _: False, Recovered())


def decision(number: int, shared: Interned | None = None) -> Entry:
    return Entry("decision", f"r{number}", 10.0 + number, {"n": number}, shared)


def test_an_interned_value_stands_before_its_first_use_and_once() -> None:
    desk, shared = intake(), Interned({"tenant": "a"})
    assert [desk.add(decision(1, shared)), desk.add(decision(2, Interned({"tenant": "a"})))] == [
        2,
        3,
    ]
    lines = [orjson.loads(line) for line in desk.take(publish=False).lines]
    assert [line["k"] for line in lines] == ["intern", "decision", "decision"]
    assert [line["b"]["@"] for line in lines[1:]] == [1, 1]


def test_a_full_segment_ends_with_its_batch_and_the_next_starts_afresh() -> None:
    desk, shared = intake(100), Interned({"tenant": "a"})
    desk.add(decision(1, shared))
    first = desk.take(publish=False)
    assert first.start is not None
    assert (first.start.index, first.start.open) == (0, ())
    index = desk.add(decision(2, shared))
    second = desk.take(publish=True)
    assert second.publish
    assert second.start is not None
    assert (second.start.index, second.start.open) == (3, (("r1", 2),))
    assert second.start.time == 11.0
    assert index == 5  # after the segment line and the value, interned again
    assert desk.take(publish=False).start is not None  # what is full stays full


def test_an_old_segment_ends_though_it_is_not_full() -> None:
    desk = Intake("eu-1", 1 << 20, Random(1).randbytes, lambda _: False, Recovered(), 60.0)
    started = []
    for second in (0, 30, 59, 61, 90, 121, 300):
        desk.add(Entry("refusal", "r", 1000.0 + second, {}))
        batch = desk.take(publish=False)
        if batch.start is not None:
            started.append((second, batch.start.time))
    # Each begins with the first batch after the one that made the segment before it old.
    assert started == [(0, 0.0), (90, 1061.0), (300, 1121.0)]


def test_a_segment_found_at_recovery_goes_on_from_when_it_began() -> None:
    state = Recovered(segment=0, segment_time=1000.0, newest=1050.0)
    desk = Intake("eu-1", 1 << 20, Random(1).randbytes, lambda _: False, state, 60.0)
    for second, starts in ((1055, False), (1061, False), (1062, True)):
        desk.add(Entry("refusal", "r", float(second), {}))
        assert (desk.take(publish=False).start is not None) is starts


def test_what_is_taken_waits_no_longer() -> None:
    desk = intake()
    desk.add(decision(1))
    waiting = desk.waiting_bytes
    assert waiting == sum(len(line) + 1 for line in desk.take(publish=False).lines)
    assert desk.waiting_bytes == 0
    again = desk.take(publish=False)
    assert (again.lines, again.start) == ([], None)


def test_a_refused_entry_takes_no_place() -> None:
    desk = intake()
    desk.add(decision(1))
    for bad in (
        decision(1),
        Entry("outcome", "r9", 1.0, {}),
        Entry("attempt", "r9", 1.0, {}),
        Entry("decision", "r2", 1.0, {"snapshot": "0" * 64}),
        Entry("decision", "r 2", 1.0, {}),
    ):
        with pytest.raises(EntryRefused):
            desk.add(bad)
    assert desk.add(Entry("outcome", "r1", 1.0, {})) == 2
    assert desk.open == {}


def test_the_newest_time_never_falls() -> None:
    desk = intake()
    desk.add(decision(5))
    desk.add(decision(1))
    assert desk.newest == 15.0


def test_nonces_are_never_used_twice() -> None:
    desk = intake()
    for number in range(600):
        desk.add(decision(number))
    nonces = [orjson.loads(line)["n"] for line in desk.take(publish=False).lines]
    assert len(set(nonces)) == 600
