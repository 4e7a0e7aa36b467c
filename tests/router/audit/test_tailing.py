"""A tail gives what `page` gives, in whatever pieces it is read, and parses each line once."""

from __future__ import annotations

from random import Random

import pytest

from router.audit import tailing
from router.audit.entry import Entry, Interned, Json
from router.audit.layout import Folder, LogFolder
from router.audit.lines import LineInvalid, parse_line
from router.audit.paging import Owned, page
from router.audit.tailing import Tail
from tests.router.audit.logbox import LogBox

EVERY = 1 << 30


async def grown(box: LogBox, count: int = 40) -> LogFolder:
    """A log of several segments, with requests that are open over their ends."""
    box.segment_bytes = 3000
    log = await box.open()
    shared = [Interned({"tenant": name}) for name in ("a", "b")]
    open_ = [box.decision(f"long{n}", shared[n % 2]) for n in range(3)]
    for entry in open_:
        await log.commit(entry, None)
    for number in range(count):
        await box.request(log, shared[number % 2])
        if number % 7 == 0:
            attempt: dict[str, Json] = {"endpoint": "fra-large", "number": 1}
            await log.record(Entry("attempt", "long0", box.clock.now, attempt))
        box.clock.now += 30
        await log.tick()
    for entry in open_:
        await log.record(box.outcome(entry.id))
    await log.close()
    folder = Folder(box.folder).log("eu-1")
    assert len(folder.segments()) > 3
    return folder


def size(folder: LogFolder) -> int:
    return sum(one.path.read_bytes().count(b"\n") for one in folder.segments())


def told(found: list[Owned]) -> list[tuple[object, ...]]:
    return [(one.shown, one.owner) for one in found]


@pytest.mark.parametrize("chunk", [64, 1 << 20])
async def test_it_gives_what_a_page_gives(
    box: LogBox, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(tailing, "CHUNK", chunk)
    folder = await grown(box)
    random, whole = Random(1), list(page(folder, -1, EVERY))
    for after in (-1, 0, 5, size(folder) // 2, size(folder) - 2, size(folder)):
        expected = told(list(page(folder, after, EVERY)))
        assert told(Tail(folder, after).read(EVERY, EVERY)) == expected
    for _ in range(10):
        tail, found, upto = Tail(folder, -1), list[Owned](), 0
        while len(found) < len(whole):
            upto += random.randrange(12)
            found += tail.read(upto, random.randrange(1, 9))
            assert all(one.shown.place.index < upto for one in found)
            assert tail.last == (found[-1].shown.place.index if found else -1)
        assert told(found) == told(whole)


async def test_each_line_is_parsed_once(box: LogBox, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = await grown(box)
    parsed: list[bytes] = []

    def counted(raw: bytes) -> object:
        parsed.append(raw)
        return parse_line(raw)

    monkeypatch.setattr(tailing, "parse_line", counted)
    tail = Tail(folder, -1)
    while tail.read(EVERY, 3):
        pass
    assert len(parsed) == size(folder) == len(set(parsed))


async def test_a_torn_line_waits_for_its_end(box: LogBox) -> None:
    folder = await grown(box)
    last = folder.segments()[-1].path
    data = last.read_bytes()
    cut = data.rstrip(b"\n").rindex(b"\n") + 20
    last.write_bytes(data[:cut])
    tail = Tail(folder, -1)
    before = tail.read(EVERY, EVERY)
    assert tail.read(EVERY, EVERY) == []
    last.write_bytes(data)
    (end,) = tail.read(EVERY, EVERY)
    assert told([*before, end]) == told(list(page(folder, -1, EVERY)))


async def test_a_broken_line_is_said(box: LogBox) -> None:
    folder = await grown(box)
    path = folder.segments()[1].path
    path.write_bytes(path.read_bytes().replace(b'"k"', b'"K"', 1))
    with pytest.raises(LineInvalid):
        Tail(folder, -1).read(EVERY, EVERY)


def test_an_empty_folder_has_nothing(box: LogBox) -> None:
    assert Tail(Folder(box.folder).log("eu-1"), -1).read(EVERY, EVERY) == []
