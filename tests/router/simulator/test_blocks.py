from __future__ import annotations

import pytest

from router.simulator.blocks import BlockPool, block_hashes


def test_hashes_are_of_whole_blocks_and_cover_everything_before() -> None:
    first = block_hashes(range(40), 16)
    assert len(first) == 2
    assert block_hashes(range(32), 16) == first
    changed = block_hashes([99, *range(1, 40)], 16)
    assert changed[0] != first[0]
    assert changed[1] != first[1]  # same tokens, other prefix
    assert block_hashes(range(40), 16, salt=b"tenant") != first


def test_a_pool_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="`0`"):
        BlockPool(0)


def test_published_blocks_are_found_shared_and_kept_when_idle() -> None:
    pool = BlockPool(8)
    one = pool.open((), 3)
    assert one is not None
    pool.publish(one, (1, 2))
    assert (one.published, one.private, pool.available) == ([1, 2], 1, 5)
    assert pool.cached((1, 2, 3)) == 2
    assert pool.cached((2,)) == 1

    two = pool.open((1, 2), 1)
    assert two is not None
    assert pool.available == 4  # the two shared ones are counted once
    pool.release(one)
    pool.release(two)
    assert pool.available == 8
    assert pool.usage == 0.0
    assert pool.cached((1, 2)) == 2


def test_the_deepest_idle_block_is_evicted_first() -> None:
    pool = BlockPool(4)
    holding = pool.open((), 3)
    assert holding is not None
    pool.publish(holding, (1, 2, 3))
    pool.release(holding)
    assert pool.open((), 2) is not None  # one block was free, one idle block goes
    assert pool.cached((1, 2, 3)) == 2


def test_no_room_is_said_without_taking_anything() -> None:
    pool = BlockPool(4)
    holding = pool.open((), 2)
    assert holding is not None
    pool.publish(holding, (1, 2))
    pool.release(holding)
    assert pool.open((1, 2), 3) is None  # reviving two leaves room for two
    assert pool.available == 4
    assert not pool.grow(holding, 5)
    assert pool.available == 4


def test_a_block_computed_twice_stays_private_the_second_time() -> None:
    pool = BlockPool(4)
    one, two = pool.open((), 1), pool.open((), 1)
    assert one is not None
    assert two is not None
    pool.publish(one, (7,))
    pool.publish(two, (7,))
    assert (two.published, two.private) == ([], 1)
    pool.release(two)
    pool.release(one)
    assert pool.available == 4
