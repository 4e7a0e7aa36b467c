import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from router.audit.layout import LogFolder
from router.audit.locate import altered_sidecar, differences, roots_at, stored_leaves
from router.audit.scan import Part, Scan
from router.audit.tree import Frontier, leaf_hash

A, B, C, D, X = (leaf_hash(name) for name in (b"a", b"b", b"c", b"d", b"x"))


def found(tmp_path: Path, leaves: Sequence[bytes]) -> Scan:
    part = Part(LogFolder(tmp_path).segment(0), 0, len(leaves))
    return Scan("eu-1", bytearray(b"".join(leaves)), {}, [part])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([A, B, C, D], []),
        ([A, B, C, D, X, X], []),  # all of it tail
        ([A, X, C, D], [("altered", 1)]),
        ([A, C, D], [("removed", 1)]),
        ([A, C, D, X], [("removed", 1)]),
        ([X, A, B, C, D], [("added", 0)]),
        ([A, A, B, C, D], [("duplicated", 1)]),
        ([A, B, C, C, D], [("duplicated", 3)]),
        ([A, B], [("removed", 2)]),
        ([], [("removed", 0)]),
        ([X, X, X, X], [("altered", 0)]),
        ([A, C, B, D], [("moved", 1)]),
        ([D, B, C, A], [("moved", 0), ("moved", 0)]),
        ([C, D, A, B], [("moved", 0)]),
    ],
)
def test_every_change_has_its_word_and_index(
    tmp_path: Path, lines: list[bytes], said: list[tuple[str, int]]
) -> None:
    findings = differences(found(tmp_path, lines), b"".join([A, B, C, D]), 4)
    assert [(finding.fault, finding.place.index) for finding in findings] == said


def test_lines_that_follow_each_other_are_told_once(tmp_path: Path) -> None:
    lines = [leaf_hash(str(number).encode()) for number in range(12)]
    (one,) = differences(found(tmp_path, [*lines[:3], *lines[9:]]), b"".join(lines), 12)
    assert str(one).endswith("(index 3): lines 3 to 8: the line signed for is not there")


def test_lines_that_were_moved_are_told_with_both_places(tmp_path: Path) -> None:
    findings = [str(one) for one in differences(found(tmp_path, [D, B, C, A]), A + B + C + D, 4)]
    assert [one.rpartition("): ")[2] for one in findings] == [
        "line 0: it now stands 3 lines later", "line 3: it now stands 3 lines earlier",
    ]  # fmt: skip


def every_tenth(lines: list[bytes]) -> list[bytes]:
    return [line for at, line in enumerate(lines) if at % 10 != 5]


@pytest.mark.parametrize(
    ("done", "first"),
    [
        (every_tenth, 5),
        (sorted, 0),
        (lambda lines: lines[::-1], 0),
        (lambda lines: lines[:7], 7),
        (lambda lines: [], 0),
    ],
)
def test_a_long_log_that_differs_in_many_places_is_compared_in_seconds(
    tmp_path: Path, done: Callable[[list[bytes]], list[bytes]], first: int
) -> None:
    """As where all requests of one tenant are taken out."""
    lines = [leaf_hash(str(number).encode()) for number in range(60_000)]
    made = found(tmp_path, done(lines))
    began = time.process_time()
    findings = list(differences(made, b"".join(lines), len(lines)))
    assert time.process_time() - began < 10
    assert findings[0].place.index == first


def test_only_what_the_head_covers_is_compared(tmp_path: Path) -> None:
    assert not list(differences(found(tmp_path, [A, B, X]), b"".join([A, B, C, D]), 2))


def test_roots_at_many_sizes() -> None:
    leaves = [leaf_hash(str(number).encode()) for number in range(9)]
    roots = roots_at(b"".join(leaves), {0, 1, 5, 9, 10})
    assert roots == {size: root_of(leaves[:size]) for size in (0, 1, 5, 9)}


def root_of(leaves: list[bytes]) -> bytes:
    tree = Frontier()
    tree.extend(leaves)
    return tree.root()


def test_a_missing_sidecar_is_filled_from_the_lines(tmp_path: Path) -> None:
    scan = found(tmp_path, [A, B])
    assert stored_leaves(LogFolder(tmp_path), scan) == A + B
    later = LogFolder(tmp_path).segment(2)
    later.leaves.parent.mkdir()
    later.leaves.write_bytes(C + D[:5])
    (later.leaves.parent / "copy of 2.leaves").write_bytes(X)  # whoever can damage can add files
    assert stored_leaves(LogFolder(tmp_path), scan) == A + B + C


def test_an_altered_sidecar_is_named_where_lines_are_proved(tmp_path: Path) -> None:
    scan = found(tmp_path, [A, B, C])
    sidecar = scan.parts[0].segment.leaves
    sidecar.parent.mkdir()
    for stored, indices in ((A + B + C, []), (A + X + X, [1]), (A, [1]), (A + B + X, [])):
        sidecar.write_bytes(stored)
        assert [f.place.index for f in altered_sidecar(scan, 2)] == indices
    sidecar.unlink()
    assert [f.place.index for f in altered_sidecar(scan, 2)] == [0, 1]
    assert not list(altered_sidecar(scan, 0))
