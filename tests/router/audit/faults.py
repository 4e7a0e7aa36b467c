"""Random single faults on a folder of logs, each with the first index it touches."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.layout import LogFolder, Segment
from router.audit.note import Signer, parse_checkpoint


@dataclass(frozen=True, slots=True)
class Fault:
    """What was done. `first` is the lowest index touched; None for the checkpoint file."""

    name: str
    first: int | None
    covered_needs: int = 1  # how many lines from `first` on an anchor must cover to prove it


class Vandal:
    """Does one random fault at a time to the log `eu-1` below a folder."""

    def __init__(self, random: Random, folder: Path, other: Path) -> None:
        self._random = random
        self._log = LogFolder(folder / "eu-1")
        self._other = LogFolder(other / "us-1")
        self.faults: list[Callable[[], Fault]] = [
            self.flip, self.drop, self.swap, self.duplicate, self.truncate, self.cut,
            self.splice, self.splice_segment, self.drop_segment, self.replay, self.resign,
            self.sidecar,
        ]  # fmt: skip

    def one(self) -> Fault:
        return self._random.choice(self.faults)()

    def _segment(self) -> Segment:
        return self._random.choice(self._log.segments())

    def _lines(self) -> tuple[Segment, list[bytes]]:
        segment = self._segment()
        return segment, segment.path.read_bytes().splitlines(keepends=True)

    def flip(self) -> Fault:
        segment = self._segment()
        data = bytearray(segment.path.read_bytes())
        at = self._random.randrange(len(data))
        data[at] ^= 1 << self._random.randrange(8)
        line = bytes(segment.path.read_bytes()[:at]).count(b"\n")
        segment.path.write_bytes(data)
        return Fault("flip", segment.first + line)

    def drop(self) -> Fault:
        segment, lines = self._lines()
        at = self._random.randrange(len(lines))
        segment.path.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
        return Fault("drop", segment.first + at)

    def swap(self) -> Fault:
        segment, lines = self._lines()
        one, other = sorted(self._random.sample(range(len(lines)), 2))
        lines[one], lines[other] = lines[other], lines[one]
        segment.path.write_bytes(b"".join(lines))
        return Fault("swap", segment.first + one)

    def duplicate(self) -> Fault:
        segment, lines = self._lines()
        source, at = self._random.randrange(len(lines)), self._random.randrange(len(lines) + 1)
        lines.insert(at, lines[source])
        segment.path.write_bytes(b"".join(lines))
        # A copy right after its original reads as the copy either way.
        first = at + next(n for n, line in enumerate([*lines[at + 1 :], b""]) if line != lines[at])
        return Fault("duplicate", segment.first + first)

    def truncate(self) -> Fault:
        segment = self._log.segments()[-1]
        data = segment.path.read_bytes()
        size = self._random.randrange(len(data))
        segment.path.write_bytes(data[:size])
        return Fault("truncate", segment.first + data[:size].count(b"\n"))

    def cut(self) -> Fault:
        segment, lines = self._lines()
        at = self._random.randrange(len(lines))
        segment.path.write_bytes(b"".join(lines[:at]))
        return Fault("cut", segment.first + at)

    def splice(self) -> Fault:
        segment, lines = self._lines()
        other = self._random.choice(self._other.segments()).path.read_bytes()
        at = self._random.randrange(len(lines))
        lines[at] = self._random.choice(other.splitlines(keepends=True))
        segment.path.write_bytes(b"".join(lines))
        return Fault("splice", segment.first + at)

    def splice_segment(self) -> Fault:
        segment = self._segment()
        other = self._random.choice(self._other.segments())
        segment.path.write_bytes(other.path.read_bytes())
        return Fault("splice segment", segment.first)

    def drop_segment(self) -> Fault:
        segment = self._segment()
        segment.path.unlink()
        if self._random.random() < 0.5:
            segment.leaves.unlink()
        return Fault("drop segment", segment.first)

    def replay(self) -> Fault:
        import orjson

        published = self._log.checkpoints.read_bytes().splitlines()
        old = orjson.loads(self._random.choice(published[:-1]))["checkpoint"]
        self._log.checkpoint.write_text(old)
        return Fault("replay", None)

    def resign(self) -> Fault:
        head = parse_checkpoint(self._log.checkpoint.read_text())
        signer = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(self._random.randbytes(32)))
        self._log.checkpoint.write_text(signer.checkpoint(head.size, head.root).text)
        return Fault("re-sign", None)

    def sidecar(self) -> Fault:
        leaves = self._segment().leaves
        data = bytearray(leaves.read_bytes())
        at = self._random.randrange(len(data))
        data[at] ^= 1 << self._random.randrange(8)
        leaves.write_bytes(data)
        return Fault("sidecar", int(leaves.stem) + at // 32)
