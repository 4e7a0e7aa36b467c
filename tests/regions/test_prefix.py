"""Prompts that begin alike go to one replica, the same in every router, within bounds of load."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from regions.prefix import BLOCK, BLOCKS, Affinity, rendezvous, trail

KEYS = [f"fra/{n}" for n in range(8)]
IDLE = dict.fromkeys(KEYS, 0.0)
Parts = list[tuple[str, str]]


def talk(name: str, turns: int) -> Parts:
    parts: Parts = [("system", "be brief " * 20), ("user", f"{name} " * 30)]
    for turn in range(turns):
        parts += [("assistant", f"answer {turn} " * 40), ("user", f"more {turn} " * 20)]
    return parts


@given(st.text(max_size=3000), st.text(max_size=3000))
def test_equal_beginnings_have_equal_blocks(common: str, rest: str) -> None:
    one, other = trail([("user", common)]), trail([("user", common + rest)])
    assert other.blocks[: len(one.blocks)] == one.blocks
    assert len(other.blocks) <= BLOCKS


def test_blocks_cover_everything_before_them() -> None:
    same = "y" * BLOCK * 3
    one = trail([("user", "a" * BLOCK + same)]).blocks
    other = trail([("user", "b" * BLOCK + same)]).blocks
    assert not set(one) & set(other)


def test_a_conversation_stays_at_its_replica_in_every_router() -> None:
    for name in ("ann", "bob", "cleo"):
        chosen = {
            Affinity().choose(trail(talk(name, turns)), IDLE, 10)
            for turns in range(6)  # a fresh router for each turn: nothing is shared
        }
        assert len(chosen) == 1


def test_conversations_spread() -> None:
    chosen = Counter(Affinity().choose(trail(talk(f"user {n}", 0)), IDLE, 10) for n in range(400))
    assert set(chosen) == set(KEYS)
    assert max(chosen.values()) < 2 * 400 / len(KEYS)


def test_a_session_outweighs_the_text() -> None:
    chosen = {
        Affinity().choose(trail([("user", text)], session=b"s1"), IDLE, 10) for text in "abcdef"
    }
    assert len(chosen) == 1


def test_a_replica_that_goes_moves_only_its_own() -> None:
    for n in range(100):
        anchor = trail(talk(str(n), 0)).anchor
        before = rendezvous(anchor, KEYS)
        assert rendezvous(anchor, [k for k in KEYS if k != before[0]]) == before[1:]


def test_a_shared_document_is_read_where_it_was_read_before() -> None:
    book = Affinity()
    document = ("system", "x" * BLOCK * 20)
    first = book.choose(trail([document, ("user", "who?")]), IDLE, 10)
    for question in ("what?", "when?", "why?"):
        assert book.choose(trail([document, ("user", question)]), IDLE, 10) == first


def test_load_bounds_affinity() -> None:
    book = Affinity()
    prompt = trail(talk("ann", 3))
    first = book.choose(prompt, IDLE, 100)
    assert first is not None
    loads = dict.fromkeys(KEYS, 100.0)
    assert book.choose(prompt, {**loads, first: 1000.0}, 100) not in (first, None)
    # Everyone busy alike: none is within the bound, so load alone decides.
    assert book.choose(prompt, dict.fromkeys(KEYS, 100.0), 100) is None
    assert book.choose(prompt, dict.fromkeys(KEYS, 1000.0), 100) is not None


@given(st.lists(st.integers(0, 30), min_size=50, max_size=200))
def test_no_replica_gets_far_more_than_its_share(names: list[int]) -> None:
    """Whatever prompts come, the fullest stays within the bound of the mean, or takes one."""
    book, loads = Affinity(), dict.fromkeys(KEYS, 0.0)
    for name in names:
        prompt = trail(talk(str(name), 1))
        chosen = book.choose(prompt, loads, 10) or min(loads, key=lambda key: loads[key])
        loads[chosen] += 10
        mean = sum(loads.values()) / len(loads)
        assert max(loads.values()) <= max(1.25 * mean, mean + 10)


def test_memory_is_bounded_and_forgets_what_is_gone() -> None:
    book = Affinity(bound=10)
    for n in range(50):
        book.remember([bytes([n])], "a")
    book.forget(frozenset())
    first = trail([("system", "x" * BLOCK * 4)])
    book.remember(first.blocks, "gone")
    assert book.choose(first, IDLE, 1) in KEYS
