from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.witness import AnchorRefused, Answer, Witness, WitnessAnchor
from router.audit.certificate import Signing
from router.audit.layout import Folder
from router.audit.note import LIFETIME, Checkpoint, Signer, load_signer, parse_checkpoint
from router.audit.reading import LogReader
from router.audit.verify import verify
from tests.router.audit.faultydisk import FaultyDisk, QuickDisk, fails
from tests.router.audit.logbox import LogBox
from tests.router.audit.services import Service

HOUR = 3600.0
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"w" * 32)


@dataclass(slots=True)
class Table:
    """A log, a witness of it, and the line between them."""

    box: LogBox
    witness: Witness
    heads: list[Checkpoint]
    reader: LogReader
    said: list[int] = field(default_factory=list)

    async def send(self, body: bytes) -> Answer:
        answer = self.witness.add_checkpoint(body)
        self.said.append(answer.status)
        return answer

    def anchor(self, reader: LogReader | None = None) -> WitnessAnchor:
        return WitnessAnchor(self.witness.key, reader or self.reader, self.send)

    def body(self, old: int, head: Checkpoint) -> bytes:
        proof = self.reader.tree(head.size).consistency(old, head.size) if old <= head.size else ()
        steps = [b64encode(step).decode() for step in proof]
        return "\n".join([f"old {old}", *steps, "", head.text]).encode()


@pytest.fixture
async def table(box: LogBox) -> Table:
    await box.refill(20)
    folder = Folder(box.folder).log("eu-1")
    lines = folder.checkpoints.read_bytes().splitlines()
    heads = [parse_checkpoint(orjson.loads(line)["checkpoint"]) for line in lines]
    witness = Witness(
        "witness.example", PRIVATE, {"eu-1": [box.key]}, box.root / "seen", QuickDisk(), box.clock
    )
    return Table(box, witness, heads, LogReader(folder))


async def test_each_checkpoint_is_cosigned_in_turn(table: Table) -> None:
    anchor = table.anchor()
    cosigned = table.heads[0]
    for head in [*table.heads, table.heads[-1]]:
        cosigned = await anchor.publish(head)
        assert table.witness.key.cosigned_at(cosigned) == int(table.box.clock.now)
        assert table.witness.seen("eu-1") == head
    assert set(table.said) == {200}
    held = verify(table.box.folder, against=[cosigned], public_keys=[table.box.key])
    assert held.logs[0].statuses == ["intact"]


async def test_a_restarted_log_learns_what_the_witness_has_seen(table: Table) -> None:
    await table.anchor().publish(table.heads[1])
    await table.anchor().publish(table.heads[-1])
    assert table.said == [200, 409, 200]


async def test_a_fork_gets_no_cosignature(table: Table, tmp_path: Path) -> None:
    await table.anchor().publish(table.heads[-2])
    (tmp_path / "fork").mkdir()
    fork = LogBox(tmp_path / "fork", seed=9)
    await fork.refill(20)
    reader = LogReader(Folder(fork.folder).log("eu-1"))
    size = parse_checkpoint((fork.folder / "eu-1" / "checkpoint").read_text()).size
    signer = load_signer(table.box.key_file, "eu-1")
    forked = signer.checkpoint(size, reader.tree(size).root(size))
    with pytest.raises(AnchorRefused, match="422"):
        await table.anchor(reader).publish(forked)
    assert table.witness.seen("eu-1") == table.heads[-2]


async def test_a_log_set_back_is_told(table: Table) -> None:
    await table.anchor().publish(table.heads[-1])
    with pytest.raises(AnchorRefused, match="does not extend"):
        await table.anchor().publish(table.heads[0])


def test_the_answers_of_the_specification(table: Table) -> None:
    first, last = table.heads[0], table.heads[-1]
    stranger = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
    other = load_signer(table.box.key_file, "us-1")
    ask = table.witness.add_checkpoint
    assert ask(table.body(0, other.checkpoint(5, bytes(32)))).status == 404
    assert ask(table.body(0, stranger.checkpoint(first.size, first.root))).status == 403
    assert ask(table.body(last.size, first)).status == 400
    assert ask(table.body(1, first)) == Answer(409, "0\n")
    assert ask(table.body(0, first)).status == 200
    assert ask(table.body(0, last)) == Answer(409, f"{first.size}\n")
    assert ask(table.body(first.size, last).replace(b"\n", b"\nAAAA\n", 1)).status == 400
    wrong = b64encode(bytes(32))
    assert ask(table.body(first.size, last).replace(b"\n", b"\n%b\n" % wrong, 1)).status == 422
    signer = load_signer(table.box.key_file, "eu-1")
    split = signer.checkpoint(first.size, bytes(32))
    assert ask(table.body(first.size, split)).status == 409
    assert table.witness.seen("eu-1") == first


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"old 0", b"old 01\n\n", b"old x\n\n", b"new 0\n\n", "old ٣\n\n".encode()],
)
def test_other_requests_are_refused(table: Table, body: bytes) -> None:
    assert table.witness.add_checkpoint(body).status == 400


def test_nothing_is_cosigned_before_it_is_stored(table: Table) -> None:
    full = Witness(
        "w", PRIVATE, {"eu-1": [table.box.key]}, table.box.root / "full",
        FaultyDisk(fault=fails("replace", 28)), table.box.clock,
    )  # fmt: skip
    with pytest.raises(OSError, match="space"):
        full.add_checkpoint(table.body(0, table.heads[0]))
    assert full.seen("eu-1") is None


@pytest.mark.parametrize("body", ["", "nonsense\n", "— witness.example AAAAAAAA\n"])
async def test_an_answer_without_a_signature_is_no_anchor(table: Table, body: str) -> None:
    async def send(_: bytes) -> Answer:
        return Answer(200, body)

    with pytest.raises(AnchorRefused):
        await WitnessAnchor(table.witness.key, table.reader, send).publish(table.heads[0])


@pytest.mark.parametrize(
    ("early", "status"),
    [(-2 * HOUR, 403), (-HOUR / 2, 200), (0, 200), (LIFETIME, 200), (LIFETIME + 2 * HOUR, 403)],
)
async def test_a_key_whose_day_is_over_or_to_come_moves_no_log_on(
    table: Table, early: float, status: int
) -> None:
    """A stolen key of yesterday would lock the log itself out, or fork it with a witness's word."""
    service, now = Service(), table.box.clock.now
    logs = {"eu-1": [service.public()]}
    witness = Witness("w", PRIVATE, logs, table.box.root / "other", QuickDisk(), table.box.clock)
    signer = Signing("eu-1", service, table.box.entropy.randbytes, now - early).signer
    head = signer.checkpoint(table.heads[0].size, table.heads[0].root)
    assert witness.add_checkpoint(table.body(0, head)).status == status
    assert (witness.seen("eu-1") == head) == (status == 200)
