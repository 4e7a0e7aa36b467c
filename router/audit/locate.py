"""Naming the place of a fault that a signed head has proved.

A head proves only *that* the lines below it changed. Where is found with the stored leaf hashes:
if they reproduce the head's root they are the originals, and comparing the lines with them names
every line. Someone who can alter lines can alter stored hashes too; then they don't
reproduce the root, and the place is the range after the largest head that still fits.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

from router.audit.layout import LogFolder
from router.audit.reading import Place
from router.audit.scan import Part, Scan
from router.audit.tree import HASH_BYTES, Frontier
from router.audit.verdict import Fault, Finding

SHOWN = 50
GONE: Final = "the line signed for is not there"

_Told: TypeAlias = tuple[int, Place, str]
"""The index of a line, where it is told, and what is wrong with it."""


def stored_leaves(folder: LogFolder, found: Scan) -> bytes:
    """Leaf hashes as stored, with those of the lines where a sidecar is missing."""
    counts = {part.segment.first: part for part in found.parts}
    hashed = {segment.first for segment in folder.hashed() if segment.leaves.exists()}
    firsts = sorted(hashed | counts.keys())
    parts: list[bytes] = []
    for first, following in zip_longest(firsts, firsts[1:]):
        sidecar = folder.segment(first).leaves
        if sidecar.exists():
            part = sidecar.read_bytes()
        else:
            here = counts[first]
            start = here.start * HASH_BYTES
            part = bytes(found.leaves[start : start + here.count * HASH_BYTES])
        # A sidecar is only ever short or long at its end; keep the next one at its own index.
        parts.append(part if following is None else part[: (following - first) * HASH_BYTES])
    joined = b"".join(parts)
    return joined[: len(joined) // HASH_BYTES * HASH_BYTES]


def roots_at(leaves: bytes, sizes: Collection[int]) -> dict[int, bytes]:
    """Roots of the first so many leaves, for each size that there are as many for."""
    frontier, roots = Frontier(), dict[int, bytes]()
    for size in sorted(size for size in sizes if len(leaves) >= size * HASH_BYTES):
        for at in range(frontier.size * HASH_BYTES, size * HASH_BYTES, HASH_BYTES):
            frontier.append(leaves[at : at + HASH_BYTES])
        roots[size] = frontier.root()
    return roots


def differences(found: Scan, stored: bytes, size: int) -> list[Finding]:
    """Every line below `size` that is not as the (proven) stored hashes say.

    Lines that keep their order are paired with the signed ones first, as many as can be. Each
    stretch between two of those is one place of difference. A long log may differ in many.
    """
    expected, actual = _split(stored[: size * HASH_BYTES]), _split(bytes(found.leaves))
    start = _common(expected, actual)
    kept = _in_order(expected, actual, start)
    same = {*range(start), *(position for _, position in kept)}
    compared = _Compared(found, expected, actual, same)
    before = (start - 1, start - 1)
    findings: list[Finding] = []
    for index, position in (*kept, (len(expected), len(actual))):
        gone, new = range(before[0] + 1, index), range(before[1] + 1, position)
        if gone or new:
            findings += compared.between(gone, new, tail=index == size)
        before = index, position
    return sorted(findings, key=lambda one: one.place.index)


class _Compared:
    """The signed lines and those found, and which of the latter stand in the signed order."""

    def __init__(
        self, found: Scan, expected: Sequence[bytes], actual: Sequence[bytes], kept: set[int]
    ) -> None:
        self._found = found
        self._expected, self._actual = expected, actual
        self._signed = set(expected)
        self._stands = {actual[at]: at for at in reversed(range(len(actual))) if at not in kept}
        self._kept = {actual[at] for at in kept}

    def between(self, gone: range, new: range, *, tail: bool) -> Iterator[Finding]:
        """One stretch: signed lines that are not there, and lines that no signed one accounts for.

        Paired ones were altered, the rest removed or added. A line that only stands elsewhere is
        told where it comes first. In the `tail`, which nothing covers, nothing is added.
        """
        lost = [at for at in gone if self._expected[at] not in self._stands]
        strange = [at for at in new if self._actual[at] not in self._signed]
        copies = [at for at in new if self._actual[at] in self._kept]
        paired = min(len(lost), len(strange))
        there = (at for at in gone if self._expected[at] in self._stands)
        yield from _runs("moved", map(self._moved, there))
        altered = zip(lost, strange, strict=False)
        yield from _runs("altered", (self._at(one, other) for one, other in altered))
        yield from _runs("removed", ((at, self._found.place(at), GONE) for at in lost[paired:]))
        if not tail:
            yield from _runs("added", (self._extra(at) for at in strange[paired:]))
            yield from _runs("duplicated", (self._extra(at) for at in copies))

    def _at(self, index: int, position: int) -> _Told:
        return index, self._found.found_at(position, index), "not as it was signed"

    def _extra(self, position: int) -> _Told:
        return position, self._found.found_at(position, position), "no signed line stands here"

    def _moved(self, index: int) -> _Told:
        position = self._stands[self._expected[index]]
        if position < index:
            place = self._found.found_at(position, position)
            return index, place, f"it now stands {index - position} lines earlier"
        return index, self._found.place(index), f"it now stands {position - index} lines later"


def _runs(fault: Fault, told: Iterable[_Told]) -> Iterator[Finding]:
    """One finding for all lines that follow each other in one segment."""
    run: list[_Told] = []
    for one in told:
        if run and not _follows(run[-1], one):
            yield _run(fault, run)
            run = []
        run.append(one)
    if run:
        yield _run(fault, run)


def _follows(one: _Told, other: _Told) -> bool:
    step = other[0] - one[0], other[1].index - one[1].index
    return step == (1, 1) and (one[1].segment, one[2]) == (other[1].segment, other[2])


def _run(fault: Fault, run: Sequence[_Told]) -> Finding:
    (first, place, detail), (last, *_) = run[0], run[-1]
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    return Finding(fault, place, f"{lines}: {detail}")


def _in_order(
    expected: Sequence[bytes], actual: Sequence[bytes], start: int
) -> list[tuple[int, int]]:
    """The longest list of lines that stand in the signed order: (index signed, position found).

    No two lines of a log are equal, so it is the longest ascending run of indices (patience).
    """
    signed = {leaf: index for index, leaf in enumerate(expected[start:], start)}
    lengths: list[int] = []
    ends: list[tuple[int, int, int]] = []  # index, position, and which one of these is before it
    last: list[int] = []
    for position, leaf in enumerate(actual[start:], start):
        index = signed.get(leaf)
        if index is None:
            continue
        at = bisect_left(lengths, index)
        if lengths[at : at + 1] == [index]:
            continue  # the copy of a line that is there already
        ends.append((index, position, last[at - 1] if at else -1))
        lengths[at : at + 1], last[at : at + 1] = [index], [len(ends) - 1]
    kept: list[tuple[int, int]] = []
    at = last[-1] if last else -1
    while at >= 0:
        index, position, at = ends[at]
        kept.append((index, position))
    return kept[::-1]


def _split(leaves: bytes) -> list[bytes]:
    return [leaves[at : at + HASH_BYTES] for at in range(0, len(leaves), HASH_BYTES)]


def _common(left: Sequence[bytes], right: Sequence[bytes]) -> int:
    """Length of the common prefix."""
    for at, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return at
    return min(len(left), len(right))


def altered_sidecar(found: Scan, covered: int) -> Iterator[Finding]:
    """Stored hashes below `covered` that are not those of the lines (the lines being proven)."""
    lines = memoryview(found.leaves)
    for part in found.parts:
        count = min(part.count, covered - part.start)
        if count <= 0:
            continue
        sidecar = part.segment.leaves
        stored = sidecar.read_bytes() if sidecar.exists() else b""
        expected = lines[part.start * HASH_BYTES : (part.start + count) * HASH_BYTES]
        if stored[: count * HASH_BYTES] != expected:
            yield from _altered(found, part, stored, _split(bytes(expected)))


def _altered(
    found: Scan, part: Part, stored: bytes, expected: Sequence[bytes]
) -> Iterator[Finding]:
    for at, leaf in enumerate(expected):
        if stored[at * HASH_BYTES : (at + 1) * HASH_BYTES] != leaf:
            place = Place(found.log, part.segment.leaves.name, at + 1, part.start + at)
            yield Finding("sidecar", place, "not the hash of the line")
