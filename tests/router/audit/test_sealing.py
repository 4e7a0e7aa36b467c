"""Finished segments are put once, locked, read back; nothing is skipped, nothing local is lost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from router.audit.anchors.witness import AnchorRefused
from router.audit.layout import Folder
from router.audit.sealing import SealRefused, compressed, uncompressed
from tests.router.audit.logbox import LogBox
from tests.router.audit.sealable import INSIDE, TERMS, fill, sealer
from tests.router.audit.shelf import Shelf


async def test_all_but_the_open_segment_is_sealed(box: LogBox) -> None:
    await fill(box)
    shelf = Shelf()
    segments = Folder(box.folder).log("eu-1").segments()
    assert len(segments) > 3
    done = list(sealer(box, shelf).run())
    assert [one.first for one in done] == [segment.first for segment in segments[:-1]]
    assert [one.end for one in done] == [segment.first for segment in segments[1:]]
    assert {one.mode for one in done} == {"COMPLIANCE"}
    for one, segment in zip(done, segments, strict=False):
        assert uncompressed(one.key, shelf.read(one.key)) == segment.path.read_bytes()
        assert one.until > datetime.fromtimestamp(box.clock.now, UTC) + timedelta(days=990)
        folder = one.key.rpartition("/")[0]
        mine = [key for key in shelf.created if key.startswith(folder)]
        assert mine[-1] == one.key, "the segment comes last"
    assert sealer(box, shelf).sealed() == [
        replace(one, until=one.until.replace(microsecond=0)) for one in done
    ]


async def test_a_second_run_has_nothing_to_do(box: LogBox) -> None:
    await fill(box)
    shelf = Shelf()
    assert list(sealer(box, shelf).run())
    count = len(shelf.created)
    assert list(sealer(box, shelf).run()) == []
    await fill(box)
    assert list(sealer(box, shelf).run())
    assert len(shelf.created) > count


async def test_a_run_that_breaks_off_anywhere_is_taken_up_again(box: LogBox) -> None:
    await fill(box)
    whole = Shelf()
    list(sealer(box, whole).run())
    Folder(box.folder).log("eu-1").sealed.unlink()
    broken = Shelf()
    for number in range(len(whole.created)):
        broken.fails_after = number
        with pytest.raises(AnchorRefused):
            list(sealer(box, broken).run())
        # As if the process had died before it could note what it put.
        Folder(box.folder).log("eu-1").sealed.unlink(missing_ok=True)
    Folder(box.folder).log("eu-1").sealed.unlink(missing_ok=True)
    broken.fails_after = None
    assert (
        len(list(sealer(box, broken).run())) == len(Folder(box.folder).log("eu-1").segments()) - 1
    )
    assert broken.objects.keys() == whole.objects.keys()


DAY = 86_400


@pytest.mark.parametrize(
    ("least", "most", "days"),
    [(0, None, 1000), (DAY, 3000 * DAY, 1000), (2000 * DAY, None, 2000), (0, 30 * DAY, 30)],
)
async def test_the_lock_is_as_long_as_the_policy_of_then_wants_and_no_longer(
    box: LogBox, least: int, most: int | None, days: int
) -> None:
    await fill(box, kept={"least": least, "most": most})
    for one in sealer(box, Shelf()).run():
        lasts = one.until - datetime.fromtimestamp(box.clock.now, UTC)
        assert timedelta(days=days, hours=-1) < lasts < timedelta(days=days, minutes=1)


async def test_records_that_can_not_be_kept_as_they_want_are_not_sealed(box: LogBox) -> None:
    await fill(box, kept={"least": 40 * DAY, "most": 40 * DAY})
    box.clock.now += 39.5 * DAY  # the shortest lock is a day: it would be kept too long
    shelf = Shelf()
    with pytest.raises(SealRefused, match="can't be locked as its entries want"):
        list(sealer(box, shelf).run())
    assert not shelf.created


async def test_a_bucket_outside_what_is_recorded_is_refused(box: LogBox) -> None:
    await fill(box, 6)
    await fill(box, 6, ("aws:eu-west-1",))
    await fill(box, 6, INSIDE)
    shelf = Shelf()
    with pytest.raises(SealRefused, match=r"may not be kept in `aws:eu-central-1`: eu-1/segments"):
        list(sealer(box, shelf).run())
    first = [key for key in shelf.created if key.endswith("segment.jsonl.zst")]
    with pytest.raises(SealRefused, match="inside"):
        list(sealer(box, shelf).run())
    again = [key for key in shelf.created if key.endswith("segment.jsonl.zst")]
    assert again == first, "what comes after it waits"


@pytest.mark.parametrize(
    ("shelf", "told"),
    [
        (Shelf(mode="GOVERNANCE"), "locked as `GOVERNANCE`"),
        (Shelf(mode=""), "locked as `not at all`"),
        (Shelf(shorter=timedelta(days=3)), "locked only until"),
    ],
)
async def test_a_weaker_lock_is_no_seal(box: LogBox, shelf: Shelf, told: str) -> None:
    await fill(box)
    with pytest.raises(SealRefused, match=told):
        list(sealer(box, shelf).run())
    assert sealer(box, shelf).sealed() == []


async def test_governance_is_a_seal_only_where_it_was_asked_for(box: LogBox) -> None:
    await fill(box)
    soft = replace(TERMS, mode="GOVERNANCE")
    done = list(sealer(box, Shelf(mode="GOVERNANCE"), soft).run())
    assert {one.mode for one in done} == {"GOVERNANCE"}


async def test_what_stands_there_with_other_bytes_is_found(box: LogBox) -> None:
    await fill(box)
    shelf = Shelf()
    key = next(sealer(box, shelf).run()).key
    Folder(box.folder).log("eu-1").sealed.unlink()
    shelf.objects[key] = (compressed(b"other"), shelf.objects[key][1])
    with pytest.raises(SealRefused, match="holds something else"):
        list(sealer(box, shelf).run())


async def test_an_empty_file_that_a_crash_left_ends_no_segment(box: LogBox) -> None:
    await fill(box)
    log = Folder(box.folder).log("eu-1")
    last = log.segments()[-1]
    empty = log.segment(last.first + 100)
    empty.path.write_bytes(b"")
    done = list(sealer(box, Shelf()).run())
    assert last.first not in [one.first for one in done]


async def test_a_list_that_can_not_be_read_stops_it(box: LogBox) -> None:
    await fill(box)
    log = Folder(box.folder).log("eu-1")
    for text in ("nonsense\n", "{}\n", '{"end":"x"}\n', "5\n"):
        log.sealed.write_text(text)
        with pytest.raises(SealRefused, match="can't be read"):
            list(sealer(box, Shelf()).run())


def test_what_is_unpacked_has_a_bound() -> None:
    data = compressed(b"x" * 5000)
    assert uncompressed("k", data) == b"x" * 5000
    for spoiled, most in (
        (data, 4999),
        (b"nonsense", 9),
        (data[:-2] + b"zz", 9999),
        (data[:9], 9999),
    ):
        with pytest.raises(SealRefused):
            uncompressed("k", spoiled, most)
