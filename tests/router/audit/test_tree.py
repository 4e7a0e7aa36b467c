from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.audit.tree import (
    EMPTY_ROOT,
    Frontier,
    LeafTree,
    leaf_hash,
    node_hash,
    verify_consistency,
    verify_inclusion,
)

# The eight leaves and their roots that Certificate Transparency implementations share.
INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657",
          "606162636465666768696a6b6c6d6e6f"]  # fmt: skip
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [leaf_hash(bytes.fromhex(text)) for text in INPUTS]

sizes = st.integers(1, 80)


def some_leaves(count: int) -> list[bytes]:
    return [leaf_hash(b"%d" % number) for number in range(count)]


def tree_of(leaves: Sequence[bytes]) -> LeafTree:
    return LeafTree.of(b"".join(leaves))


def reference(leaves: Sequence[bytes]) -> bytes:
    """RFC 6962, 2.1, word for word."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(reference(leaves[:split]), reference(leaves[split:]))


@pytest.mark.parametrize("size", range(9))
def test_known_roots(size: int) -> None:
    frontier = Frontier()
    for leaf in LEAVES[:size]:
        frontier.append(leaf)
    assert frontier.root().hex() == ROOTS[size]
    assert tree_of(LEAVES).root(size).hex() == ROOTS[size]


def test_known_inclusion_path() -> None:
    path = tree_of(LEAVES).inclusion(5, 8)
    assert [step.hex() for step in path] == [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


@given(st.integers(0, 80))
def test_frontier_is_the_tree_of_the_rfc(size: int) -> None:
    leaves = some_leaves(size)
    frontier = Frontier()
    for leaf in leaves:
        frontier.append(leaf)
    assert frontier.root() == reference(leaves) == tree_of(leaves).root()


@given(sizes, st.data())
def test_every_leaf_is_proved_and_no_other(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    other = data.draw(st.integers(0, size - 1))
    leaves = some_leaves(size)
    path, root = tree_of(leaves).inclusion(index, size), reference(leaves)
    assert verify_inclusion(leaves[index], index, size, path, root)
    assert verify_inclusion(leaves[other], other, size, path, root) == (other == index)
    assert not verify_inclusion(leaves[index], index, size, (*path, root), root)
    assert not verify_inclusion(leaves[index], index, size + 64, path, root)
    assert not path or not verify_inclusion(leaves[index], index, size, path[:-1], root)


@pytest.mark.parametrize("size", [1, 256, 257, 3000])
@pytest.mark.parametrize("step", [1, 7, 2999])
def test_paths_of_many_leaves_are_those_of_each_and_read_no_leaf_for_each_of_them(
    size: int, step: int
) -> None:
    leaves = b"".join(some_leaves(size))
    read = list[int]()

    def counting(start: int, end: int) -> bytes:
        read.append(end - start)
        return leaves[32 * start : 32 * end]

    wanted = range(0, size, step)
    paths = list(LeafTree(size, counting).inclusions(wanted, size))
    assert sum(read) <= 4 * size + 9 * 256  # a small tree is read at each of its levels
    whole = tree_of(some_leaves(size))
    assert paths == [whole.inclusion(index, size) for index in wanted]


@given(sizes, st.data())
def test_every_prefix_is_proved_and_no_fork(size: int, data: st.DataObject) -> None:
    old = data.draw(st.integers(0, size))
    leaves = some_leaves(size)
    proof = tree_of(leaves).consistency(old, size)
    old_root, root = reference(leaves[:old]), reference(leaves)
    assert verify_consistency(old, old_root, size, root, proof)
    assert not verify_consistency(old, leaf_hash(b"fork"), size, root, proof)
    assert not verify_consistency(old, old_root, size, leaf_hash(b"fork"), proof) or old == 0
    assert not verify_consistency(old, old_root, size, root, (*proof, root))
    if proof:
        assert not verify_consistency(old, old_root, size, root, proof[:-1])


def test_large_trees_use_cached_subtrees_and_agree() -> None:
    leaves = some_leaves(3000)
    tree = tree_of(leaves)
    for size in (1024, 2047, 3000):
        root = reference(leaves[:size])
        assert tree.root(size) == root
        assert verify_inclusion(leaves[700], 700, size, tree.inclusion(700, size), root)
    proof = tree.consistency(1500, 3000)
    assert verify_consistency(1500, tree.root(1500), 3000, tree.root(3000), proof)


@pytest.mark.parametrize(("index", "size"), [(-1, 8), (8, 8), (0, 0), (0, 9)])
def test_no_proof_outside_the_tree(index: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"no (leaf|tree)"):
        tree_of(LEAVES).inclusion(index, size)


def test_a_frontier_has_one_peak_per_bit() -> None:
    with pytest.raises(ValueError, match="peaks"):
        Frontier(3, [EMPTY_ROOT])
    with pytest.raises(ValueError, match="32 bytes"):
        LeafTree.of(b"short")
