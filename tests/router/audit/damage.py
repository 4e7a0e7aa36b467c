"""Logs that are damaged, forged, or only unlucky, and what verification must say of each."""

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson

from router.audit.layout import Folder
from router.audit.note import Checkpoint, parse_checkpoint
from router.audit.receipt import Receipt
from router.audit.roster import read_roster
from router.audit.verdict import Anchor, Verdict
from router.audit.verify import verify
from tests.router.audit.faults import Fault, Vandal
from tests.router.audit.logbox import LogBox


@dataclass(frozen=True, slots=True)
class Gallery:
    """Two logs of one key, several segments each, and everything a client could hold."""

    box: LogBox
    receipts: list[Receipt]
    heads: list[str]
    size: int

    @classmethod
    async def of(cls, root: Path, seed: int = 1, segment_bytes: int = 3000) -> "Gallery":
        """Two processes of `eu-1`, one of `us-1`."""
        box = LogBox(root, seed=seed, segment_bytes=segment_bytes)
        receipts = await box.refill(12) + await box.refill(12)
        await box.refill(10, "us-1")
        heads = [head.text for head in published(box.folder)]
        size = parse_checkpoint(heads[-1]).size
        assert len(Folder(box.folder).log("eu-1").segments()) >= 3
        return cls(box, receipts, heads, size)


def published(folder: Path, log: str = "eu-1") -> list[Checkpoint]:
    """Every checkpoint that was published of a log."""
    lines = (folder / log / "checkpoints.jsonl").read_bytes().splitlines()
    return [parse_checkpoint(orjson.loads(line)["checkpoint"]) for line in lines]


def damaged(gallery: Gallery, random: Random, count: int) -> Counter[tuple[str, bool]]:
    """Do random single faults, one at a time, each judged against something a client holds.

    Gives how many of each kind there were, below what is held and above it.
    """
    pristine, work = gallery.box.folder, gallery.box.root / "work"
    held: list[Anchor] = [*gallery.receipts]
    held += [parse_checkpoint(text) for text in gallery.heads]
    proved = {sized(parse_checkpoint(text)) for text in gallery.heads}
    proved.update(line.size for line in read_roster(Folder(pristine))[0] if line.log == "eu-1")
    seen: Counter[tuple[str, bool]] = Counter()
    while seen.total() < count:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(pristine, work)
        anchor = random.choice(held)
        fault = Vandal(random, work, pristine).one()
        if unchanged(pristine, work):
            continue  # a line swapped or spliced with its equal is no fault
        verdict = verify(work, against=[anchor], public_keys=[gallery.box.key])
        size = sized(anchor)
        covered = fault.first is None or fault.first < size
        seen[fault.name, covered] += 1
        judge(seen.total(), fault, covered, size, verdict, {*proved, size})
    return seen


def judge(
    number: int, fault: Fault, covered: bool, size: int, verdict: Verdict, proved: set[int]
) -> None:
    """`proved` are the sizes of all heads there are."""
    said = (number, fault, size, [str(finding) for finding in verdict.all_findings])
    if covered:
        assert not verdict.ok, said
    elif fault.name != "sidecar":
        assert all(finding.place.index >= size for finding in verdict.all_findings), said
        log = next(log for log in verdict.logs if log.log == "eu-1")
        assert log.tail or log.torn or fault.first == size, said
    if covered and fault.first is not None:
        places = [f.place for f in verdict.all_findings if f.place.index >= 0]
        first = min(place.index for place in places)
        if fault.name == "drop segment" and first < fault.first:
            # The end is gone with its hashes: it is told from where nothing proves the lines.
            assert verdict.all_findings[0].fault == "truncated", said
            assert first == max(head for head in (0, *proved) if head <= fault.first), said
        else:
            assert first == fault.first, said
        assert all(place.log == "eu-1" for place in places), said


def sized(anchor: Anchor) -> int:
    """How many lines an anchor covers."""
    text = anchor.checkpoint if isinstance(anchor, Receipt) else anchor.text
    return parse_checkpoint(text).size


def unchanged(one: Path, other: Path) -> bool:
    def content(folder: Path) -> dict[str, bytes]:
        files = [path for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return content(one) == content(other)


async def lived(root: Path, seed: int) -> Verdict:
    """A random life of a log: sizes, rotations, restarts, crashes, open requests, heartbeats; and
    what is said of it by all that anybody got hold of."""
    random = Random(seed)
    box = LogBox(root, seed=seed, segment_bytes=random.choice([600, 2000, 1 << 20]))
    held: list[Anchor] = []
    for _ in range(random.randrange(1, 4)):
        log = await box.open()
        for _ in range(random.randrange(8)):
            held.append(random.choice(await box.request(log)))
            box.clock.now += random.choice([0, 1, 70, 200, -30])
            head = await log.tick()
            held += [head] if head else []
        if random.random() < 0.5:
            await log.commit(box.decision(), None)
        crash = box.copy(root / "crashed") if random.random() < 0.5 else None
        await log.close()
        if crash:
            shutil.rmtree(box.folder)
            crash.rename(box.folder)
    return verify(box.folder, against=held, public_keys=[box.key])


def common(one: Path, other: Path) -> int:
    """How many lines two logs `eu-1` have in common from the start."""
    sides = [
        b"".join(part.path.read_bytes() for part in Folder(folder).log("eu-1").segments())
        for folder in (one, other)
    ]
    pairs = zip(*(side.splitlines() for side in sides), strict=False)
    return next((at for at, (left, right) in enumerate(pairs) if left != right),
                min(side.count(b"\n") for side in sides))  # fmt: skip


async def caught(root: Path, seed: int) -> Counter[str]:
    """Whoever holds the keys writes another history: cuts it, forks it, writes it anew, or leaves
    out a process. Each is consistent in itself, and contradicts all that was held of what it lost.

    Gives how often each was found.
    """
    random = Random(seed)
    box = LogBox(root / "true", seed=seed, segment_bytes=random.choice([900, 3000, 1 << 20]))
    early = await box.refill(random.randrange(1, 8))
    before = box.copy(root / "cut")
    late = await box.refill(random.randrange(1, 8))
    late += await box.refill(random.randrange(1, 4), "us-1")
    late += await box.refill(random.randrange(1, 4))
    held: list[Anchor] = [*early, *late, *published(box.folder), *published(box.folder, "us-1")]
    forgeries = {
        "truncated": before,
        "forked": await other_history(box, root / "fork", before, seed),
        "rewritten": await other_history(box, root / "anew", None, seed),
    }
    found: Counter[str] = Counter()
    for name, folder in forgeries.items():
        assert verify(folder, public_keys=[box.key]).statuses == ["consistent, unanchored"], name
        kept = common(box.folder, folder)
        for anchor in held:
            verdict = verify(folder, against=[anchor], public_keys=[box.key])
            log = anchor.log if isinstance(anchor, Receipt) else anchor.origin
            lost = log == "us-1" or sized(anchor) > kept
            assert verdict.ok != lost, (name, seed, kept, anchor, verdict.all_findings)
            found["dropped" if log == "us-1" else name] += lost
    return found


async def other_history(box: LogBox, root: Path, start: Path | None, seed: int) -> Path:
    """What the same keys sign of other requests, from a copy on or from the beginning."""
    root.mkdir()
    shutil.copy(box.key_file, root / "log.key")
    other = LogBox(root, seed=seed + 1_000_000, segment_bytes=box.segment_bytes)
    if start is not None:
        shutil.copytree(start, other.folder)
        other.clock.now = box.clock.now
    await other.refill(6)
    await other.refill(2)
    return other.folder


def shown(seen: Counter[tuple[str, bool]]) -> Sequence[str]:
    """A line per kind of fault: how many below what was held, how many above."""
    kinds = sorted({name for name, _ in seen})
    return [f"{name}: {seen[name, True]} below, {seen[name, False]} above" for name in kinds]
