"""What opens the log lies beside it, survives the process, and can be erased for good."""

import errno
import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Lock

import pytest

from router.audit.entry import keyed_digest
from router.audit.errors import LogDamaged, LogUnavailable
from router.audit.openings import (
    LONGEST,
    Mac,
    Opening,
    Openings,
    Scope,
    TenantKey,
    commitment,
    hmac_once,
    read,
)
from tests.router.audit.faultydisk import FaultyDisk, fails
from tests.router.audit.logbox import START

DAY = 86_400.0


class Box:
    """A side file, opened as often as wanted."""

    def __init__(self, root: Path) -> None:
        self.path = root / "eu-1" / "openings" / "openings.jsonl"
        self.entropy = Random(3).randbytes
        self.disk = FaultyDisk()

    def open(self) -> Openings:
        return Openings(self.path, self.disk, self.entropy, DAY)


@pytest.fixture
def side(tmp_path: Path) -> Box:
    return Box(tmp_path)


def keys(side: Box) -> list[TenantKey]:
    return [one for one in read(side.path) if isinstance(one, TenantKey)]


def test_content_is_bound_by_a_key_of_the_tenant_the_period_and_the_request(side: Box) -> None:
    openings = side.open()
    same = openings.key("clinic", START).content("r1", b"text")
    assert same == openings.key("clinic", START + DAY - 1).content("r1", b"text")
    others = {
        openings.key("clinic", START).content("r2", b"text"),
        openings.key("games", START).content("r1", b"text"),
        openings.key("clinic", START).content("r1", b"text!"),
        openings.key("clinic", START + DAY).content("r1", b"text"),
    }
    assert len({same, *others}) == 5
    (key, *_) = keys(side)
    request_key = hmac.digest(hmac.digest(key.key, b"content", "sha256"), b"r1", "sha256")
    assert keyed_digest(request_key, b"text").startswith(same)
    assert len(same) == 32
    assert b"text" not in side.path.read_bytes()


@pytest.mark.parametrize("size", [0, 1, 32, 63, 64])
def test_the_mac_is_hmac(size: int) -> None:
    random = Random(size)
    key, message = random.randbytes(size), random.randbytes(200)
    assert Mac(key).over(message) == hmac.digest(key, message, "sha256")
    assert hmac_once(key, message) == hmac.digest(key, message, "sha256")


def test_a_pseudonym_is_stable_for_a_period_and_tells_nothing_across(side: Box) -> None:
    openings = side.open()
    names = [
        openings.key("clinic", START + at).pseudonym("ann") for at in (0, DAY / 2, DAY, 2 * DAY)
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert openings.key("games", START + 2 * DAY).pseudonym("ann") != names[-1]
    assert all(len(name) == 16 for name in names)


def test_keys_outlive_the_process_and_only_their_owner_reads_them(side: Box) -> None:
    first = side.open().key("clinic", START).content("r1", b"text")
    assert side.open().key("clinic", START + 5).content("r1", b"text") == first
    assert stat.S_IMODE(side.path.parent.stat().st_mode) == 0o700


def test_a_clock_set_back_keeps_the_key(side: Box) -> None:
    openings = side.open()
    first = openings.key("clinic", START).content("r1", b"text")
    assert openings.key("clinic", START - 3 * DAY).content("r1", b"text") == first


def test_a_commitment_is_opened_by_its_opening_only(side: Box) -> None:
    openings = side.open()
    made = openings.commit("clinic", "r1", "model", "secret-project", START)
    again = openings.commit("clinic", "r1", "model", "secret-project", START)
    assert made != again
    one, _ = (line for line in read(side.path) if isinstance(line, Opening))
    assert one.commitment == made
    assert commitment(one.salt, "model", "secret-project") == made
    assert commitment(one.salt, "mode", "lsecret-project") != made
    assert openings.commit("clinic", "r1", "model", "x" * (LONGEST + 1), START) is None


def fill(openings: Openings) -> None:
    for day in range(3):
        for tenant in ("clinic", "games"):
            openings.key(tenant, START + day * DAY).content(f"r{day}", b"text")
            openings.commit(tenant, f"{tenant}-{day}", "model", "m", START + day * DAY)


@pytest.mark.parametrize(
    ("scope", "erased"),
    [
        (Scope(), (6, 6, 0)),
        (Scope(tenant="clinic"), (3, 3, 0)),
        (Scope(tenant="nobody"), (0, 0, 0)),
        (Scope(request="games-1"), (0, 1, 6)),
        (Scope(before=START + 2 * DAY), (4, 4, 2)),
        (Scope(before=START + 1.5 * DAY), (2, 4, 4)),  # a key is needed until its period ends
        (Scope(tenant="clinic", before=START + DAY), (1, 1, 2)),
    ],
)
def test_a_scope_erases_what_fits_and_nothing_else(
    side: Box, scope: Scope, erased: tuple[int, int, int]
) -> None:
    openings = side.open()
    fill(openings)
    before = read(side.path)
    covered = openings.covered(scope)
    assert (covered.keys, covered.openings, covered.kept) == erased
    assert read(side.path) == before
    assert openings.erase(scope) == covered
    assert len(read(side.path)) == 12 - erased[0] - erased[1]
    assert openings.covered(scope).keys == 0
    assert [one for one in before if one not in read(side.path)] == [
        one for one in before if scope.covers(one, DAY)
    ]


def test_a_tenant_whose_key_is_gone_gets_another(side: Box) -> None:
    openings = side.open()
    first = openings.key("clinic", START)
    openings.erase(Scope(tenant="clinic"))
    second = openings.key("clinic", START)
    assert (second.id == first.id, second.key == first.key) == (False, False)
    assert side.open().key("clinic", START) == second


def test_a_torn_line_is_cut_and_a_broken_one_is_named(side: Box) -> None:
    side.open().key("clinic", START).content("r1", b"text")
    whole = side.path.read_bytes()
    side.path.write_bytes(whole + whole[:20])
    side.open()
    assert side.path.read_bytes() == whole
    for bad in (b"{}\n", b"nonsense\n", whole.replace(b'"key":"', b'"key":"A'), b"[]\n"):
        side.path.write_bytes(whole + bad)
        with pytest.raises(LogDamaged, match="line 2"):
            side.open()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_what_can_not_be_kept_is_not_recorded(side: Box, code: int) -> None:
    openings = side.open()
    side.disk.fault = fails("open", code)
    for _ in range(2):
        with pytest.raises(LogUnavailable, match=rf"openings.jsonl`: {os.strerror(code)}$"):
            openings.key("clinic", START).content("r1", b"text")
    with pytest.raises(LogUnavailable):
        openings.commit("clinic", "r1", "model", "m", START)
    side.disk.fault = lambda _name, _number: None
    assert openings.key("clinic", START).content("r1", b"text")
    assert len(keys(side)) == 1


def test_sync_is_asked_of_the_disk_once_per_change(side: Box) -> None:
    openings = side.open()
    openings.sync()
    assert "sync" not in side.disk.calls
    openings.key("clinic", START).content("r1", b"text")
    openings.sync()
    openings.sync()
    assert side.disk.calls.count("sync") == 1


def test_half_a_line_on_a_full_disk_spoils_no_later_one(side: Box) -> None:
    openings = side.open()
    openings.key("clinic", START)
    side.disk.fault, side.disk.torn = fails("write", errno.ENOSPC), 0.5
    for _ in range(2):
        with pytest.raises(LogUnavailable):
            openings.key("games", START)
    side.disk.fault = lambda _name, _number: None
    key = openings.key("games", START)
    assert side.open().key("games", START) == key
    assert [one.tenant for one in keys(side)] == ["clinic", "games"]


def test_an_erasure_that_broke_off_leaves_no_copy_for_the_next(side: Box) -> None:
    openings = side.open()
    fill(openings)
    draft = side.path.with_name(f".{side.path.name}.4711.draft")  # of a process that was killed
    for erasing in (lambda: openings.erase(Scope(tenant="clinic")), lambda: side.open()):
        draft.write_bytes(side.path.read_bytes())
        erasing()
        assert not draft.exists()


class Turn:
    """The side file's lock; `after` happens as soon as it is free again."""

    def __init__(self, after: Callable[[], object]) -> None:
        self._lock = Lock()
        self._after = iter([after])

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        for after in self._after:
            after()


def test_a_key_that_is_erased_as_soon_as_it_is_kept_is_used_no_more(
    side: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings = side.open()
    monkeypatch.setattr(openings, "_turn", Turn(lambda: openings.erase(Scope())))
    first = openings.key("clinic", START)
    assert keys(side) == []
    assert openings.find("clinic", first.id) is None
    assert openings.key("clinic", START) != first
