"""The Merkle tree of RFC 6962, section 2.1: hashes, an incremental frontier, and proofs.

leaf hash  SHA-256(0x00 || line)
node hash  SHA-256(0x01 || left || right), split at the largest power of two below n
empty tree SHA-256("")

Proof verification follows RFC 9162, sections 2.1.3.2 and 2.1.4.2. All hashes are 32 raw bytes.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()
_CACHED_FROM = 256  # perfect subtrees of at least this many leaves are kept


def leaf_hash(line: bytes) -> bytes:
    """Hash of one log line, given without its newline."""
    return sha256(b"\x00" + line).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


class Frontier:
    """The roots of the perfect subtrees of a growing tree, largest first: enough to extend it."""

    __slots__ = ("peaks", "size")

    def __init__(self, size: int = 0, peaks: Iterable[bytes] = ()) -> None:
        self.size = size
        self.peaks = list(peaks)
        if len(self.peaks) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves has {size.bit_count()} peaks")

    def append(self, leaf: bytes) -> None:
        """Add one leaf hash."""
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Add leaf hashes in their order."""
        peaks, count = self.peaks, self.size
        for carry in leaves:
            size, node = count, carry
            while size & 1:
                node = sha256(b"\x01" + peaks.pop() + node).digest()
                size >>= 1
            peaks.append(node)
            count += 1
        self.size = count

    def root(self) -> bytes:
        """Root hash of everything appended so far."""
        if not self.peaks:
            return EMPTY_ROOT
        root = self.peaks[-1]
        for peak in reversed(self.peaks[:-1]):
            root = node_hash(peak, root)
        return root

    def copy(self) -> "Frontier":
        """An independent frontier of the same tree."""
        return Frontier(self.size, self.peaks)


class LeafTree:
    """Roots and proofs over stored leaf hashes, read in ranges as they are needed.

    `read(start, end)` returns the leaf hashes [start, end) joined. `size` may grow; what is cached
    are roots of perfect subtrees, which never change.
    """

    def __init__(self, size: int, read: Callable[[int, int], bytes]) -> None:
        self.size = size
        self._read = read
        self._cache: dict[tuple[int, int], bytes] = {}

    @classmethod
    def of(cls, leaves: bytes | bytearray) -> "LeafTree":
        """A tree over leaf hashes held in memory, 32 bytes each."""
        if len(leaves) % HASH_BYTES:
            raise ValueError("leaf hashes are 32 bytes each")

        def read(start: int, end: int) -> bytes:
            return bytes(leaves[start * HASH_BYTES : end * HASH_BYTES])

        return cls(len(leaves) // HASH_BYTES, read)

    def leaf(self, index: int) -> bytes:
        """Leaf hash at an index."""
        return self._read(index, index + 1)

    def root(self, size: int | None = None) -> bytes:
        """Root of the first `size` leaves (default: all)."""
        return self._range(0, self._bounded(self.size if size is None else size))

    def inclusion(self, index: int, size: int) -> tuple[bytes, ...]:
        """Audit path of a leaf in the tree of the first `size` leaves, leaf side first."""
        return next(self.inclusions([index], size))

    def inclusions(self, wanted: Sequence[int], size: int) -> Iterator[tuple[bytes, ...]]:
        """Audit paths of several leaves, `wanted` in ascending order. Their common way down is gone
        once, so that of the many leaves of a tenant each costs a few hashes."""
        if wanted and not 0 <= wanted[0] <= wanted[-1] < self._bounded(size):
            raise ValueError(f"no leaf {wanted[0]} to {wanted[-1]} in a tree of {size}")
        return self._paths(wanted, 0, size, ())

    def consistency(self, old: int, new: int) -> tuple[bytes, ...]:
        """Proof that the tree of `old` leaves is a prefix of the tree of `new` leaves."""
        if not 0 <= old <= self._bounded(new):
            raise ValueError(f"no tree of {old} inside a tree of {new}")
        if old in (0, new):
            return ()
        return tuple(self._subproof(old, 0, new, whole=True))

    def _bounded(self, size: int) -> int:
        if not 0 <= size <= self.size:
            raise ValueError(f"no tree of {size} in a log of {self.size}")
        return size

    def _range(self, start: int, end: int) -> bytes:
        width = end - start
        keep = width >= _CACHED_FROM and width.bit_count() == 1
        if keep and (start, end) in self._cache:
            return self._cache[start, end]
        if width > 2 * _CACHED_FROM:
            middle = start + _split(width)
            root = node_hash(self._range(start, middle), self._range(middle, end))
        else:
            root = self._folded(start, end)
        if keep:
            self._cache[start, end] = root
        return root

    def _folded(self, start: int, end: int) -> bytes:
        frontier, leaves = Frontier(), self._read(start, end)
        for at in range(0, len(leaves), HASH_BYTES):
            frontier.append(leaves[at : at + HASH_BYTES])
        return frontier.root()

    def _paths(
        self, wanted: Sequence[int], start: int, end: int, above: tuple[bytes, ...]
    ) -> Iterator[tuple[bytes, ...]]:
        """Paths of the `wanted` leaves in [start, end), whose range's own path is `above`."""
        if not wanted:
            return
        if end - start == 1:
            yield above
            return
        if end - start <= _CACHED_FROM < self.size:
            below = LeafTree.of(self._read(start, end))  # read once, for all that is below
            inside = [index - start for index in wanted]
            yield from ((*path, *above) for path in below.inclusions(inside, end - start))
            return
        middle = start + _split(end - start)
        cut = bisect_left(wanted, middle)
        right = (self._range(middle, end), *above) if cut else above
        yield from self._paths(wanted[:cut], start, middle, right)
        left = (self._range(start, middle), *above) if cut < len(wanted) else above
        yield from self._paths(wanted[cut:], middle, end, left)

    def _subproof(self, old: int, start: int, end: int, *, whole: bool) -> Iterator[bytes]:
        if start + old == end:
            if not whole:
                yield self._range(start, end)
            return
        half = _split(end - start)
        middle = start + half
        if old <= half:
            yield from self._subproof(old, start, middle, whole=whole)
            yield self._range(middle, end)
        else:
            yield from self._subproof(old - half, middle, end, whole=False)
            yield self._range(start, middle)


def _split(width: int) -> int:
    """Largest power of two strictly below a width of at least 2."""
    return 1 << ((width - 1).bit_length() - 1)


def verify_inclusion(
    leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes
) -> bool:
    """Whether `leaf` is at `index` in the tree of `size` leaves with this root."""
    if not 0 <= index < size:
        return False
    node, last, current = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if node & 1 or node == last:
            current = node_hash(sibling, current)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            current = node_hash(current, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and current == root


def verify_consistency(
    old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the tree (`old`, `old_root`) is a prefix of the tree (`new`, `new_root`)."""
    if not 0 <= old <= new:
        return False
    if old == new:
        return not proof and old_root == new_root
    if old == 0:
        return not proof and old_root == EMPTY_ROOT
    steps = [old_root, *proof] if old.bit_count() == 1 else list(proof)
    return bool(steps) and _climb(old - 1, new - 1, steps) == (old_root, new_root)


def _climb(node: int, last: int, steps: Sequence[bytes]) -> tuple[bytes, bytes] | None:
    """Both roots as the proof implies them; None when it is too short or too long."""
    while node & 1:
        node, last = node >> 1, last >> 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return None
        if node & 1 or node == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, step)
        node, last = node >> 1, last >> 1
    return (old, new) if last == 0 else None
