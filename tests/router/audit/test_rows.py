"""One row per request, with what was decided and how it ended."""

import pytest

from router.audit.layout import Folder
from router.audit.rows import rows, size
from tests.router.audit.asked import fill
from tests.router.audit.logbox import START, LogBox


@pytest.fixture
async def filled(box: LogBox) -> LogBox:
    await fill(box)
    return box


async def test_every_request_is_a_row(filled: LogBox) -> None:
    found = {row.request: row for row in rows(Folder(filled.folder))}
    ended = {id_: (row.kind, row.outcome) for id_, row in found.items()}
    assert ended == {
        "q1": ("decision", "ok"),
        "q2": ("decision", "ok"),
        "q3": ("decision", "incomplete"),
        "q4": ("refusal", "no_grant"),
        "q5": ("misdirected", "misdirected"),
        "q6": ("decision", "open"),
    }
    one = found["q1"]
    assert (one.tenant, one.key, one.attributes) == ("clinic", "clinic-1", ("data_class=health",))
    assert (one.rules, one.dry_run, one.plan) == (("german",), ("trial",), ("fra", "par"))
    assert (one.endpoint, one.provider, one.retained) == ("fra", "self", ("self:fra1",))
    assert (one.tokens_in, one.tokens_out, one.cost, one.millis, one.attempts) == (3, 2, 7, 40, 1)
    assert one.time == round((START + 10) * 1e6)
    assert (one.router, one.router_region) == ("eu-1", "self:fra1")
    assert found["q5"].key == "k"


async def test_a_place_that_was_told_stands_alone(filled: LogBox) -> None:
    found = {row.request: row for row in rows(Folder(filled.folder))}
    assert (found["q1"].places, found["q1"].place_told) == (("self:fra1", "self:par1"), "")
    assert (found["q2"].places, found["q2"].place_told) == (("self:par1",), "self:par1")
    assert found["q2"].retained == ()
    assert found["q6"].places == ()


async def test_progress_adds_up(filled: LogBox) -> None:
    read: list[int] = []
    assert len(list(rows(Folder(filled.folder), read.append))) == 6
    assert sum(read) == size(Folder(filled.folder)) > 0
