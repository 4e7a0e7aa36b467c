r"""A small witness, and the log's side of talking to one (C2SP tlog-witness), without HTTP.

The request is the body of `POST /add-checkpoint`:

    old <size>\n
    <base64 hash>\n …        consistency proof from that size
    \n
    <checkpoint note>

A witness, for each request:
 1. knows the origin (404) and one of its signatures (403), and the certificate of its key, where
    it has one, is of now, give or take an hour (403): a key whose day is over moves no log on;
 2. is told the size it saw last (409 with that size) and one not above the checkpoint's (400);
 3. checks the proof (422; a second root of one size is 409);
 4. stores the checkpoint durably, and only then
 5. answers 200 with its cosignature.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.cosign import WitnessKey, cosign
from router.audit.disk import Disk
from router.audit.errors import AuditError, NoteInvalid
from router.audit.note import Checkpoint, PublicKey, note_parts, parse_checkpoint
from router.audit.reading import LogReader
from router.audit.tree import EMPTY_ROOT, verify_consistency

SKEW: Final = 3600.0
"""Seconds by which a witness's clock and a log's may differ."""


class AnchorRefused(AuditError):
    """An anchor did not take a checkpoint; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP status and body of an answer; 409 bodies are `text/x.tlog.size`."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class _Request:
    old: int
    proof: Sequence[bytes]
    checkpoint: Checkpoint


class Witness:
    """Remembers the largest tree of each log in `folder` and cosigns what extends it.

    One process owns the folder; calls are made one after the other.
    """

    def __init__(
        self,
        name: str,
        key: Ed25519PrivateKey,
        logs: Mapping[str, Sequence[PublicKey]],
        folder: Path,
        disk: Disk,
        clock: Callable[[], float],
    ) -> None:
        self.key = WitnessKey(name, PublicKey(key.public_key().public_bytes_raw()))
        self._private = key
        self._logs = logs
        self._folder = folder
        self._disk = disk
        self._clock = clock

    def add_checkpoint(self, body: bytes) -> Answer:
        """Judge one request. Raises OSError when the checkpoint can't be stored."""
        try:
            request = _read(body)
        except NoteInvalid as error:
            return Answer(400, f"{error}\n")
        head = request.checkpoint
        if head.origin not in self._logs:  # 1
            return Answer(404, "unknown log\n")
        signed = head.signed(self._logs[head.origin])
        if signed is None:
            return Answer(403, "signed by no known key\n")
        held, now = signed.certificate, self._clock()
        if held is not None and not held.begins - SKEW <= now < held.ends + SKEW:
            return Answer(403, "the certificate of its key is of another time\n")
        if request.old > head.size:
            return Answer(400, "the old size is above the new one\n")
        refusal = self._judge(request)
        if refusal is not None:
            return refusal
        self._disk.replace(self._path(head.origin), head.text.encode())  # 4
        return Answer(200, cosign(self.key.name, self._private, head, int(self._clock())))  # 5

    def seen(self, origin: str) -> Checkpoint | None:
        """The largest checkpoint of a log that was cosigned."""
        path = self._path(origin)
        return parse_checkpoint(path.read_text("utf-8")) if path.exists() else None

    def _judge(self, request: _Request) -> Answer | None:
        known, head = self.seen(request.checkpoint.origin), request.checkpoint
        size, root = (known.size, known.root) if known else (0, EMPTY_ROOT)
        if request.old != size:  # 2
            return Answer(409, f"{size}\n")
        if size == head.size and root != head.root:  # 3
            return Answer(409, f"{size}\n")
        if not verify_consistency(size, root, head.size, head.root, request.proof):
            return Answer(422, "the proof does not connect the two trees\n")
        return None

    def _path(self, origin: str) -> Path:
        return self._folder / f"{sha256(origin.encode()).hexdigest()}.checkpoint"


def _read(body: bytes) -> _Request:
    try:
        head, _, note = body.decode().partition("\n\n")
        first, *steps = head.split("\n")
        word, _, size = first.partition(" ")
        if word != "old" or not size.isascii() or not size.isdigit() or str(int(size)) != size:
            raise NoteInvalid("the first line is `old` and a size")
        proof = [b64decode(step, validate=True) for step in steps]
    except (ValueError, Base64Error) as error:
        raise NoteInvalid(f"the request can't be read: {error}") from error
    if len(proof) > 63 or any(len(step) != 32 for step in proof):
        raise NoteInvalid("a proof is at most 63 hashes of 32 bytes")
    return _Request(int(size), proof, parse_checkpoint(note))


Send = Callable[[bytes], Awaitable[Answer]]


class WitnessAnchor:
    """Gets checkpoints of one log cosigned. `send` posts a body to the witness's add-checkpoint."""

    def __init__(self, witness: WitnessKey, reader: LogReader, send: Send) -> None:
        self._witness = witness
        self._reader = reader
        self._send = send
        self._size = 0

    async def publish(self, head: Checkpoint) -> Checkpoint:
        """The checkpoint with the witness's cosignature added. Raises AnchorRefused."""
        answer = await self._send(self._request(head))
        if answer.status == 409:
            self._size = self._told(answer, head)
            answer = await self._send(self._request(head))
        if answer.status != 200:
            detail = answer.body.strip() or "no reason given"
            raise AnchorRefused(f"witness `{self._witness.name}`: {answer.status}: {detail}")
        return self._accepted(head, answer.body)

    def _request(self, head: Checkpoint) -> bytes:
        tree = self._reader.tree(head.size)
        proof = tree.consistency(self._size, head.size)
        lines = [f"old {self._size}", *(b64encode(step).decode() for step in proof)]
        return "\n".join([*lines, "", head.text]).encode()

    def _told(self, answer: Answer, head: Checkpoint) -> int:
        text = answer.body.strip()
        size = int(text) if text.isascii() and text.isdigit() else -1
        if not 0 <= size <= head.size or size == self._size:
            # It has seen a tree that this log doesn't hold: a split view, or a log set back.
            raise AnchorRefused(
                f"witness `{self._witness.name}` has seen size {text} of `{head.origin}`, which "
                f"the checkpoint of {head.size} does not extend; run `audit verify`"
            )
        return size

    def _accepted(self, head: Checkpoint, lines: str) -> Checkpoint:
        try:
            cosigned = parse_checkpoint(head.text + lines)
        except NoteInvalid as error:
            raise AnchorRefused(f"witness `{self._witness.name}`: {error}") from error
        if self._witness.cosigned_at(cosigned) is None:
            signed = note_parts(cosigned.text)[1][len(note_parts(head.text)[1]) :]
            names = ", ".join(sorted({f"`{name}`" for name, _, _ in signed})) or "nobody"
            raise AnchorRefused(
                f"witness `{self._witness.name}` sent no signature of its own, but of {names}; "
                "`log.anchor.key` is the vkey that `audit witness serve` shows"
            )
        self._size = head.size
        return cosigned
