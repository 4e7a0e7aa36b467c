import orjson
import pytest

from router.audit.heads import Heads
from router.audit.layout import Folder, LogFolder
from router.audit.note import load_signer, parse_checkpoint
from router.audit.receipt import Receipt
from tests.router.audit.logbox import LogBox


@pytest.fixture
async def folder(box: LogBox) -> LogFolder:
    await box.refill(20)
    return Folder(box.folder).log("eu-1")


def heads(box: LogBox, folder: LogFolder, held: frozenset[str] = frozenset()) -> Heads:
    found = Heads("eu-1", [box.key])
    found.published(folder, held, [])
    return found


def published(folder: LogFolder) -> list[str]:
    return [
        orjson.loads(line)["checkpoint"] for line in folder.checkpoints.read_bytes().splitlines()
    ]


def test_published_checkpoints_are_heads(box: LogBox, folder: LogFolder) -> None:
    found = heads(box, folder)
    assert not found.findings
    assert not found.notices
    assert [head.size for head in found.all] == [
        parse_checkpoint(t).size for t in published(folder)
    ]


def test_one_publication_behind_is_a_crash_unless_it_went_out(
    box: LogBox, folder: LogFolder
) -> None:
    texts = published(folder)
    folder.checkpoint.write_text(texts[-2])
    assert heads(box, folder).notices == [
        "`checkpoint` is one publication behind: a crash between both"
    ]
    assert [f.fault for f in heads(box, folder, frozenset(texts[-1:])).findings] == ["checkpoint"]
    folder.checkpoint.write_text(texts[0])
    assert [f.fault for f in heads(box, folder).findings] == ["checkpoint"]
    folder.checkpoint.unlink()
    assert [f.fault for f in heads(box, folder).findings] == ["checkpoint"]


@pytest.mark.parametrize(
    "line", [b"garbage", b"[]", b"{}", b'{"checkpoint":5}', b'{"checkpoint":""}']
)
def test_an_unreadable_publication_is_named(box: LogBox, folder: LogFolder, line: bytes) -> None:
    lines = folder.checkpoints.read_bytes().splitlines()
    folder.checkpoints.write_bytes(b"\n".join([lines[0], line, *lines[2:]]) + b"\n")
    (finding,) = heads(box, folder).findings
    assert (finding.place.log, finding.place.line) == ("eu-1/checkpoints.jsonl", 2)


def test_a_torn_publication_is_a_notice(box: LogBox, folder: LogFolder) -> None:
    folder.checkpoints.write_bytes(folder.checkpoints.read_bytes() + b'{"check')
    assert heads(box, folder).notices == ["`checkpoints.jsonl` has a torn tail"]


def test_anchors_must_be_signed_for_this_log(box: LogBox) -> None:
    ours = load_signer(box.key_file, "eu-1").checkpoint(5, bytes(32))
    other = load_signer(box.key_file, "us-1").checkpoint(5, bytes(32))
    found = Heads("eu-1", [box.key])
    found.given(1, ours)
    found.given(2, Receipt("eu-1", 4, "ab" * 32, ours.text))
    assert not found.findings
    found.given(3, other)
    found.given(4, Receipt("eu-1", 4, "ab" * 32, "no note"))
    found.given(5, Receipt("eu-1", 5, "ab" * 32, ours.text))
    assert [finding.place.log for finding in found.findings] == ["anchor 3", "anchor 4", "anchor 5"]


def test_two_roots_of_one_size_are_a_split_view(box: LogBox) -> None:
    found, signer = Heads("eu-1", [box.key]), load_signer(box.key_file, "eu-1")
    for root in (bytes(32), bytes(32), b"\x01" * 32):
        found.given(1, signer.checkpoint(5, root))
    assert [finding.fault for finding in found.split_views()] == ["split_view"]
