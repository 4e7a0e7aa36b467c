"""Proofs to hand out: chosen entries, or growth between two checkpoints, checkable alone.

A bundle is JSON:

    {"format":"domicile-bundle/1","log":id,"checkpoint":note,
     "lines":[{"index":n,"line":text,"path":[hex,…]},…]}

It holds the chosen entries and the interned values they name, each with its path to the root of one
signed checkpoint, and nothing of anybody else: the path is hashes of lines with secret nonces.
`docs/verify_bundle.py` checks the same without this package.

To accept a bundle:
 1. The checkpoint is of the log the bundle names and signed by a known key.
 2. Every line hashes, along its path, to the root of the checkpoint.
 3. Every line is one that a log writes, and an interned value says the index it is at.
 4. Every interned value that an entry names is there.
 5. There is at least one entry.
 6. Where the key of the checkpoint was only certified by a known one, no entry is newer than that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Final

import orjson

from router.audit.errors import AuditError, NoteInvalid
from router.audit.layout import LogFolder, segment_lines
from router.audit.lines import (
    EntryLine,
    InternLine,
    Interns,
    Line,
    Value,
    parse_line,
    references,
)
from router.audit.note import Checkpoint, PublicKey, parse_checkpoint
from router.audit.reading import LogReader, NotInLog, Place, Shown
from router.audit.tree import leaf_hash, verify_consistency, verify_inclusion

FORMAT: Final = "domicile-bundle/1"
GROWTH: Final = "domicile-growth/1"


class ProofRefused(AuditError):
    """A bundle or growth proof does not prove what it says."""


@dataclass(frozen=True, slots=True)
class ProvedLine:
    """One line with its audit path, leaf side first."""

    index: int
    line: bytes
    path: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Bundle:
    """Lines of one log, all proved against one checkpoint. One that is made of a log is written
    as its lines are read, once: a tenant's may be larger than memory."""

    checkpoint: Checkpoint
    lines: Iterable[ProvedLine]

    def to_json(self) -> bytes:
        """The bundle as a file."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """The file piece by piece, of which the first and the last hold no line."""
        head = self.checkpoint
        around = {"format": FORMAT, "log": head.origin, "checkpoint": head.text, "lines": []}
        before, after = _indented(around).rsplit(b"]", 1)
        yield before
        for number, one in enumerate(self.lines):
            steps = [step.hex() for step in one.path]
            item = _indented({"index": one.index, "line": one.line.decode(), "path": steps})
            yield (b",\n" if number else b"\n") + b"    " + item.replace(b"\n", b"\n    ")
        yield b"\n  ]" + after + b"\n"


def _indented(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)


def prove(folder: LogFolder, chosen: Callable[[Shown], bool], head: Checkpoint) -> Bundle:
    """A bundle of every chosen entry below `head`. Raises NotInLog when there is none."""
    found = _proved(folder, chosen, head)
    first = next(found, None)
    if first is None:
        there = any(chosen(shown) for shown in LogReader(folder).entries())
        detail = "it is not below the checkpoint yet" if there else "the log has no such entry"
        raise NotInLog(f"nothing to prove in `{folder.path.name}`: {detail}")
    return Bundle(head, chain([first], found))


def _proved(
    folder: LogFolder, chosen: Callable[[Shown], bool], head: Checkpoint
) -> Iterator[ProvedLine]:
    """Segment by segment: what an entry names is in its own."""
    reader = LogReader(folder)
    for segment in folder.segments():
        places = (shown.place.index for shown in reader.of(segment) if chosen(shown))
        covered = [index for index in places if index < head.size]
        if not covered:
            continue
        lines = list(segment_lines(segment))
        named = {at for index in covered for at in _named(lines[index - segment.first])}
        wanted = sorted(named.union(covered))
        for index, path in zip(wanted, reader.inclusions(wanted, head.size), strict=True):
            yield ProvedLine(index, lines[index - segment.first], path)


def _named(raw: bytes) -> Iterator[int]:
    line = parse_line(raw)
    if isinstance(line, EntryLine):
        yield from references(dict(line.body))


def prove_request(folder: LogFolder, request_id: str, head: Checkpoint) -> Bundle:
    """A bundle of everything recorded about one request."""
    return prove(folder, lambda shown: shown.id == request_id, head)


def export_tenant(folder: LogFolder, tenant: str, head: Checkpoint) -> Bundle:
    """A bundle of every request whose decision, refusal or other entry names `tenant`, as
    `tenant` of its body or of `who` in it."""
    entries = LogReader(folder).entries()
    own = {shown.id for shown in entries if shown.id and _tenant(shown) == tenant}
    return prove(folder, lambda shown: shown.id in own, head)


def _tenant(shown: Shown) -> Value:
    who = shown.body.get("who")
    return who.get("tenant") if isinstance(who, dict) else shown.body.get("tenant")


def read_bundle(data: bytes) -> Bundle:
    """Read a bundle without checking it. Raises ProofRefused."""
    with reading("bundle"):
        value = orjson.loads(data)
        if value["format"] != FORMAT:
            raise ProofRefused(f"`{value['format']}` is not {FORMAT}")
        head = parse_checkpoint(value["checkpoint"])
        if value["log"] != head.origin:
            raise ProofRefused("the checkpoint is of another log")
        lines = [_read_line(item) for item in value["lines"]]
    return Bundle(head, lines)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Tell in words what is wrong with the form of a file. Raises ProofRefused."""
    try:
        yield
    except KeyError as error:
        raise ProofRefused(f"the {what} can't be read: it has no `{error.args[0]}`") from error
    except (TypeError, AttributeError) as error:
        form = "it is JSON, but not of the form that `domicile audit` writes"
        raise ProofRefused(f"the {what} can't be read: {form}") from error
    except (ValueError, NoteInvalid) as error:
        raise ProofRefused(f"the {what} can't be read: {error}") from error


def _read_line(item: Mapping[str, object]) -> ProvedLine:
    index, line, path = item["index"], item["line"], item["path"]
    if type(index) is not int or not isinstance(line, str) or not isinstance(path, list):
        raise ProofRefused("a line has an index, a text and a path")
    return ProvedLine(index, line.encode(), _steps(path))


def _steps(path: list[str]) -> list[bytes]:
    steps = [bytes.fromhex(step) for step in path]
    if [step.hex() for step in steps] != path:
        raise ValueError("a path is a list of hashes, in lower case")
    return steps


def verify_bundle(data: bytes, keys: Iterable[PublicKey]) -> list[Shown]:
    """The entries a bundle proves, interned values in place. Raises ProofRefused."""
    bundle = read_bundle(data)
    head = bundle.checkpoint
    signed = head.signed(keys)
    if signed is None:  # 1
        raise ProofRefused(f"the checkpoint is signed by no known key of `{head.origin}`")
    lines: dict[int, Line] = {}
    for one in bundle.lines:
        if not verify_inclusion(leaf_hash(one.line), one.index, head.size, one.path, head.root):
            raise ProofRefused(f"line {one.index} is not in the tree of the checkpoint")  # 2
        lines[one.index] = _parsed(one)  # 3
    interns = Interns({at: one.value for at, one in lines.items() if isinstance(one, InternLine)})
    shown = [
        _shown(head.origin, at, one, interns)
        for at, one in lines.items()
        if isinstance(one, EntryLine)
    ]
    if not shown:  # 5
        raise ProofRefused("the bundle proves no entry")
    held = signed.certificate
    if held is not None and max(one.time for one in shown) >= held.ends * 1_000_000:  # 6
        raise ProofRefused("the key of the checkpoint had ended before an entry was written")
    return shown


def _parsed(one: ProvedLine) -> Line:
    try:
        line = parse_line(one.line)
    except AuditError as error:
        raise ProofRefused(f"line {one.index}: {error}") from error
    if isinstance(line, InternLine) and line.index != one.index:
        raise ProofRefused(f"line {one.index} says it is at {line.index}")
    return line


def _shown(log: str, index: int, line: EntryLine, interns: Interns) -> Shown:
    try:
        body = interns.resolve(line.body)  # 4
    except AuditError as error:
        raise ProofRefused(f"line {index}: {error}") from error
    return Shown(Place(log, "", 0, index), line.kind, line.id, line.time, body)


def prove_growth(folder: LogFolder, old: Checkpoint, new: Checkpoint) -> bytes:
    """Proof, as JSON, that the log of `new` begins with all of `old`. Raises NotInLog."""
    if old.size > new.size or old.origin != new.origin:
        raise NotInLog("give two checkpoints of one log, the older one first")
    proof = LogReader(folder).tree(new.size).consistency(old.size, new.size)
    steps = [step.hex() for step in proof]
    return orjson.dumps({"format": GROWTH, "old": old.text, "new": new.text, "proof": steps})


def is_growth(data: bytes) -> bool:
    """Whether a file says that it is a growth proof."""
    try:
        value = orjson.loads(data)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("format") == GROWTH


def verify_growth(data: bytes, keys: Sequence[PublicKey]) -> tuple[Checkpoint, Checkpoint]:
    """The two checkpoints that a growth proof connects. Raises ProofRefused."""
    with reading("growth proof"):
        value = orjson.loads(data)
        old, new = parse_checkpoint(value["old"]), parse_checkpoint(value["new"])
        proof = _steps(value["proof"])
        stated = value["format"]
    if stated != GROWTH or old.origin != new.origin:
        raise ProofRefused("not a growth proof of one log")
    if old.signed_by(keys) is None or new.signed_by(keys) is None:
        raise ProofRefused(f"a checkpoint is signed by no known key of `{new.origin}`")
    if not verify_consistency(old.size, old.root, new.size, new.root, proof):
        raise ProofRefused(f"the log of {new.size} does not begin with the log of {old.size}")
    return old, new
