"""That a text belongs to an entry can be shown, of one request, until it is erased."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from router.audit.bundle import ProofRefused, prove_request, verify_bundle
from router.audit.disclosure import Disclosure, belongs, disclose, pseudonyms, read_disclosure
from router.audit.entry import Entry, Json
from router.audit.erasing import erase
from router.audit.layout import Folder, LogFolder
from router.audit.note import parse_checkpoint
from router.audit.openings import Scope
from router.audit.reading import NotInLog, Shown
from tests.router.audit.logbox import START, LogBox

TEXT = b'{"model":"assistant","messages":[]}'


async def written(box: LogBox, scope: Scope | None = None) -> LogFolder:
    """Two requests of one tenant with one body; then, if asked, an erasure."""
    log = await box.open()
    for id_ in ("r1", "r2"):
        body: dict[str, Json] = {
            "plan": ["a"],
            "who": {"tenant": "clinic"},
            "bound": log.openings.key("clinic", START).id,
            "content": log.openings.key("clinic", START).content(id_, TEXT),
            "user": log.openings.key("clinic", START).pseudonym("ann"),
            "committed": {"model": log.openings.commit("clinic", id_, "model", "secret", START)},
        }
        await log.commit(Entry("decision", id_, box.clock.now, body), None)
    if scope is not None:
        await erase(log, scope, "boss", box.clock.now)
    await log.close()
    return Folder(box.folder).log("eu-1")


def proved(box: LogBox, folder: LogFolder, request: str = "r1") -> list[Shown]:
    head = parse_checkpoint(folder.checkpoint.read_text())
    return verify_bundle(prove_request(folder, request, head).to_json(), [box.key])


async def test_a_text_belongs_to_its_entry_and_to_no_other(box: LogBox) -> None:
    folder = await written(box)
    given = read_disclosure(disclose(folder, "r1").to_json())
    assert given == disclose(folder, "r1")
    (entry,) = belongs(proved(box, folder), given, TEXT)
    assert (entry.id, entry.kind) == ("r1", "decision")
    assert [(name, value) for name, _, value in given.openings] == [("model", "secret")]
    with pytest.raises(ProofRefused, match="not what `r1` was sent with"):
        belongs(proved(box, folder), given, TEXT + b" ")
    with pytest.raises(ProofRefused, match="proves nothing of `r1`"):
        belongs(proved(box, folder, "r2"), given, TEXT)


async def test_an_answer_belongs_to_its_outcome(box: LogBox) -> None:
    log = await box.open()
    key = log.openings.key("clinic", START)
    body: dict[str, Json] = {
        "plan": ["a"], "who": {"tenant": "clinic"}, "bound": key.id,
        "content": key.content("r1", TEXT),
    }  # fmt: skip
    await log.commit(Entry("decision", "r1", box.clock.now, body), None)
    got = b"data: hi\n\n"
    told: dict[str, Json] = {"status": "ok", "answer": key.answer("r1", sha256(got).digest())}
    await log.record(Entry("outcome", "r1", box.clock.now, told))
    await log.close()
    folder = Folder(box.folder).log("eu-1")
    given = disclose(folder, "r1")
    assert [one.kind for one in belongs(proved(box, folder), given, got)] == ["outcome"]
    assert [one.kind for one in belongs(proved(box, folder), given, TEXT)] == ["decision"]
    for wrong in (b"answer\0" + sha256(got).digest(), got[:-1]):
        with pytest.raises(ProofRefused):
            belongs(proved(box, folder), given, wrong)


async def test_a_disclosure_opens_one_request_only(box: LogBox) -> None:
    folder = await written(box)
    one = disclose(folder, "r1")
    moved = Disclosure(one.log, "r2", one.key, ())
    with pytest.raises(ProofRefused, match="not what `r2`"):
        belongs(proved(box, folder, "r2"), moved, TEXT)
    assert TEXT not in folder.openings.read_bytes()


async def test_an_opening_that_opens_nothing_is_refused(box: LogBox) -> None:
    folder = await written(box)
    one = disclose(folder, "r1")
    ((name, salt, _),) = one.openings
    lie = Disclosure(one.log, one.request, one.key, [(name, salt, "another")])
    with pytest.raises(ProofRefused, match="opens nothing"):
        belongs(proved(box, folder), lie, TEXT)


@pytest.mark.parametrize(
    ("scope", "key", "openings"),
    [
        (Scope(tenant="clinic"), False, 0),
        (Scope(request="r1"), True, 0),
        (Scope(tenant="games"), True, 1),
    ],
)
async def test_what_was_erased_is_shown_by_nothing(
    box: LogBox, scope: Scope, key: bool, openings: int
) -> None:
    folder = await written(box, scope)
    given = disclose(folder, "r1")
    assert (given.key is not None, len(given.openings)) == (key, openings)
    if not key:
        with pytest.raises(ProofRefused, match="was erased"):
            belongs(proved(box, folder), given, TEXT)


async def test_an_end_users_entries_are_found_by_pseudonym(box: LogBox) -> None:
    folder = await written(box)
    ((_, name),) = pseudonyms(folder, "clinic", "ann")
    assert [one.body.get("user") for one in proved(box, folder)] == [name, None]
    assert pseudonyms(folder, "games", "ann") == []
    assert pseudonyms(folder, "clinic", "bob")[0][1] != name


async def test_a_request_that_is_not_there_opens_nothing(box: LogBox) -> None:
    folder = await written(box)
    with pytest.raises(NotInLog):
        disclose(folder, "r9")


@pytest.mark.parametrize(
    "change", [{"format": "x"}, {"key": 5}, {"openings": [{}]}, {"key": "not base64"}]
)
async def test_what_is_no_disclosure_is_refused(box: LogBox, change: dict[str, object]) -> None:
    folder = await written(box)
    value = json.loads(disclose(folder, "r1").to_json())
    with pytest.raises(ProofRefused):
        read_disclosure(json.dumps({**value, **change}).encode())
    for junk, said in ((b"", "empty"), (b"[]", "form"), (b"{}", "no `format`"), (b"\xff", "UTF-8")):
        with pytest.raises(ProofRefused, match=said):
            read_disclosure(junk)


async def test_the_side_file_is_no_part_of_the_log(box: LogBox, tmp_path: Path) -> None:
    from router.audit.verify import verify

    folder = await written(box)
    assert verify(box.folder, public_keys=[box.key]).ok
    folder.openings.unlink()
    assert verify(box.folder, public_keys=[box.key]).ok
    assert disclose(folder, "r1").key is None
