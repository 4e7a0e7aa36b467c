"""Naming the place of a fault that a signed head has proved.

A head proves only *that* the lines below it changed. Where is found with the stored leaf hashes:
if they reproduce the head's root they are the originals, and comparing the lines with them names
every line. Someone who can alter lines can alter stored hashes too; then they don't
reproduce the root, and the place is the range after the largest head that still fits.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from router.audit.layout import LogFolder
from router.audit.reading import Place
from router.audit.scan import Part, Scan
from router.audit.tree import HASH_BYTES, Frontier
from router.audit.verdict import Fault, Finding

SHOWN = 50


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


def root_at(leaves: bytes, size: int) -> bytes | None:
    """Root of the first `size` leaves, if there are as many."""
    if len(leaves) < size * HASH_BYTES:
        return None
    frontier = Frontier()
    for at in range(0, size * HASH_BYTES, HASH_BYTES):
        frontier.append(leaves[at : at + HASH_BYTES])
    return frontier.root()


def differences(found: Scan, stored: bytes, size: int) -> Iterator[Finding]:
    """Every line below `size` that is not as the (proven) stored hashes say."""
    expected = _split(stored[: size * HASH_BYTES])
    actual = _split(bytes(found.leaves))
    start = _common(expected, actual)
    ending = _common(expected[start:][::-1], actual[start:][::-1])
    if len(actual) != len(expected) and len(actual) > size:
        ending = 0  # a tail follows: the two ends are not the same place
    middle = expected[start : len(expected) - ending], actual[start : len(actual) - ending]
    matcher = SequenceMatcher(None, *middle, autojunk=False)
    here, signed = set(actual), set(expected)
    for tag, left, left_end, right, right_end in matcher.get_opcodes():
        if tag == "equal" or (tag == "insert" and start + left == size):
            continue  # the second: lines after everything the head covers are the tail
        yield from _change(
            found,
            [(start + at, middle[0][at] not in here) for at in range(left, left_end)],
            [(start + at, middle[1][at] not in signed) for at in range(right, right_end)],
            bounded=start + left_end == size,
        )


def _change(
    found: Scan, gone: Sequence[tuple[int, bool]], new: Sequence[tuple[int, bool]], *, bounded: bool
) -> Iterator[Finding]:
    """One stretch of difference. Paired lines are altered ones; the rest were removed or added."""
    paired = min(len(gone), len(new))
    for (index, lost), (position, strange) in zip(gone, new, strict=False):
        fault: Fault = "altered" if lost or strange else "moved"
        place = found.found_at(position, index)
        yield Finding(fault, place, f"line {index} is not the one signed for")
    for index, lost in gone[paired:]:
        detail = "the line signed for is not there" if lost else "the line now stands elsewhere"
        yield Finding("removed" if lost else "moved", found.place(index), f"line {index}: {detail}")
    for position, strange in () if bounded else new[paired:]:
        fault = "added" if strange else "duplicated"
        yield Finding(fault, found.found_at(position, position), "no signed line stands here")


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
