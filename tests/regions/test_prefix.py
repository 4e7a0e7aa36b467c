"""Prompts that begin alike go to one replica, the same in every router, within bounds of load."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from time import process_time
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.prefix import (
    BLOCK,
    BLOCKS,
    GUESS,
    PATIENCE,
    SIZES,
    SIZES_UPTO,
    TIE,
    TURNS,
    Affinity,
    Trail,
    rendezvous,
    trail,
)

KEYS = [f"fra/{n}" for n in range(8)]
IDLE = dict.fromkeys(KEYS, 0.0)
Parts = list[tuple[str, str]]


def pick(book: Affinity, prompt: Trail, loads: dict[str, float], tokens: int) -> str:
    """The choice where the first of the least busy is the least busy."""
    return book.choose(prompt, loads, tokens, min(loads, key=lambda key: loads[key]))[0]


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
            pick(Affinity(), trail(talk(name, turns)), IDLE, 10)
            for turns in range(6)  # a fresh router for each turn: nothing is shared
        }
        assert len(chosen) == 1


def test_conversations_spread() -> None:
    chosen = Counter(pick(Affinity(), trail(talk(f"user {n}", 0)), IDLE, 10) for n in range(400))
    assert set(chosen) == set(KEYS)
    assert max(chosen.values()) < 2 * 400 / len(KEYS)


def test_a_session_outweighs_the_text() -> None:
    chosen = {
        pick(Affinity(), trail([("user", text)], session=b"s1"), IDLE, 10) for text in "abcdef"
    }
    assert len(chosen) == 1


def test_a_replica_that_goes_moves_only_its_own() -> None:
    for n in range(100):
        anchor = trail(talk(str(n), 0)).anchor
        home = rendezvous(anchor, KEYS)
        for gone in set(KEYS) - {home}:
            assert rendezvous(anchor, [key for key in reversed(KEYS) if key != gone]) == home
        assert rendezvous(anchor, [key for key in KEYS if key != home]) != home


def test_a_shared_document_is_read_where_it_was_read_before() -> None:
    book = Affinity()
    document = ("system", "x" * BLOCK * 20)
    first = pick(book, trail([document, ("user", "who?")]), IDLE, 10)
    for question in ("what?", "when?", "why?"):
        assert pick(book, trail([document, ("user", question)]), IDLE, 10) == first


def whole(name: str) -> Trail:
    """A prompt whose blocks are all of it."""
    return replace(trail([("user", name * BLOCK * 8)]), length=BLOCK * 8)


def test_a_cache_is_worth_the_tokens_it_saves() -> None:
    book, prompt = Affinity(), whole("a")
    first = pick(book, prompt, IDLE, 1000)
    loads = {**IDLE, first: 900.0}
    other = next(key for key in KEYS if key != first)
    assert book.choose(prompt, loads, 1000, other) == (first, 1)  # the last token always is
    # A longer wait than computing it takes elsewhere is never chosen while somebody idles.
    assert book.choose(prompt, {**loads, first: 1100.0}, 1000, other) == (other, 1000)
    # Now both hold it, and the less busy one is taken.
    assert book.choose(prompt, loads, 1000, other) == (other, 1)
    assert book.choose(prompt, {**IDLE, other: 50.0}, 1000, first) == (first, 1)


def patience(usual: int, tokens: int) -> float:
    """How much longer than everybody's queue of 500 a prompt waits where it is held, after many
    requests with `usual` tokens to compute."""
    low, high = 0.0, 1e6
    while high - low > 1:
        book, prompt, more = Affinity(spared=4.0), whole("a"), (low + high) / 2
        first = pick(book, prompt, IDLE, usual)
        for n in range(4):
            pick(book, whole(f"{n} "), {first: 0.0}, usual)
        busy = {**dict.fromkeys(KEYS, 500.0), first: 500.0 + more}
        low, high = (more, high) if pick(book, prompt, busy, tokens) == first else (low, more)
    return low


def test_what_is_spared_counts_when_everybody_has_to_wait() -> None:
    """Then each token that isn't computed twice shortens the wait of all who come: of five where
    the queue is five usual requests, of half a one where it is half of one. Not without end."""
    assert patience(1000, 1000) == pytest.approx(1000 + 4 * 500, rel=0.01)
    assert patience(1000, 500) == pytest.approx(500 + 4 * 250, rel=0.01)
    assert patience(500, 1000) == pytest.approx(1000 + 4 * 1000, rel=0.01)
    assert patience(1, 1000) == pytest.approx(1000 + 4 * 500 * PATIENCE, rel=0.01)


def test_where_all_have_prompts_to_compute_they_are_one_queue() -> None:
    """The shortest says little of how many wait then: what is spared spares as many as the mean."""
    for queues, bearable in ((False, 1100 + 4 * 100), (True, 1100 + 4 * 900)):
        for off in (-50, 50):
            book, prompt = Affinity(spared=4.0), whole("a")
            first = pick(book, prompt, IDLE, 1000)
            book.choose(whole("b"), {first: 0.0}, 1000, first)
            least = next(key for key in KEYS if key != first)
            loads = {**dict.fromkeys(KEYS, 400.0), least: 100.0, first: float(bearable + off)}
            chosen, _ = book.choose(prompt, loads, 1000, least, queues=queues)
            assert chosen == (first if off < 0 else least)


def test_who_shares_with_nobody_waits_for_no_guess() -> None:
    """Only others can have sent the beginning of a conversation that isn't known here."""
    prompt = trail(talk("ann", 3))
    home = pick(Affinity(), prompt, IDLE, 10_000)
    least = next(key for key in KEYS if key != home)
    for share, bearable in ((0.0, TIE), (0.5, GUESS * 5000), (1.0, GUESS * 10_000)):
        for more, chosen in ((-1, home), (1, least)):
            loads = {**dict.fromkeys(KEYS, 1e9), least: 0.0, home: bearable + more}
            found = Affinity().choose(prompt, loads, 10_000, least, others=lambda key: share)  # noqa: B023
            assert found == (chosen, 10_000)


def test_a_known_part_is_worth_no_more_than_it_is() -> None:
    """Of a prompt that is longer than what is known of it, only that is held."""
    book, start = Affinity(), "".join(f"{n} " for n in range(2000))[: BLOCK * 8]
    first = pick(book, trail([("user", start)]), IDLE, 1000)
    longer = trail([("user", start + "z" * BLOCK * 24)])
    assert longer.length == BLOCK * 32 + len("user") + 2
    chosen, left = book.choose(longer, IDLE, 4000, first)
    assert chosen == first
    assert 3000 <= left <= 3100


def test_what_was_written_over_is_not_held() -> None:
    book, prompt = Affinity(), whole("a")
    first = pick(book, prompt, IDLE, 1000)
    only = {first: 0.0}
    for name in "bcd":
        book.choose(whole(name), only, 1000, first, lambda key: 3500.0)
    assert book.choose(prompt, only, 1000, first, lambda key: 3500.0) == (first, 1)
    for name in "efgh":
        book.choose(whole(name), only, 1000, first, lambda key: 3500.0)
    assert book.choose(prompt, only, 1000, first, lambda key: 3500.0) == (first, 1000)


def test_what_all_conversations_share_makes_no_crowd() -> None:
    book = Affinity()
    system = ("system", "s" * BLOCK * 8)
    loads = dict.fromkeys(KEYS, 0.0)
    for n in range(400):
        prompt = trail([system, ("user", f"question {n} " * 200)])
        chosen, left = book.choose(prompt, loads, 100, min(loads, key=lambda key: loads[key]))
        loads[chosen] += left
    assert max(loads.values()) - min(loads.values()) <= 200


def test_the_anchor_is_a_conversation_s_own_behind_a_long_system_prompt() -> None:
    system = ("system", "s" * BLOCK * 9)
    one, other = (trail([system, ("user", name * 5000)]) for name in "ab")
    assert one.blocks[:8] == other.blocks[:8]
    assert one.anchor != other.anchor
    assert BLOCK * 9 < sum(SIZES[: one.stem]) < BLOCK * 18


def test_long_prompts_are_told_apart_at_their_end() -> None:
    text = "".join(f"{n} " for n in range(180_000))[:1_000_000]
    one, other = trail([("user", text + "a" * 90_000)]), trail([("user", text + "b" * 90_000)])
    assert len(one.blocks) == BLOCKS
    assert one.length == 1_090_006
    assert one.blocks[:-2] == other.blocks[:-2]
    assert one.blocks[-1] != other.blocks[-1]


@given(st.lists(st.integers(0, 30), min_size=50, max_size=200))
def test_no_replica_gets_far_more_than_the_others(names: list[int]) -> None:
    """Whatever prompts come, work differs by no more than what one prompt's cache is worth."""
    book, loads = Affinity(), dict.fromkeys(KEYS, 0.0)
    for name in names:
        loads[pick(book, trail(talk(str(name), 1)), loads, 10)] += 10
        assert max(loads.values()) - min(loads.values()) <= 10 + (1 + 4) * max(
            10, min(loads.values())
        )


def test_memory_is_bounded_and_forgets_what_is_gone() -> None:
    book = Affinity(bound=10)
    for n in range(50):
        book.remember([bytes([n])], "a")
    book.forget(frozenset())
    first = trail([("system", "x" * BLOCK * 4)])
    book.remember(first.blocks, "gone")
    assert pick(book, first, IDLE, 1) in KEYS


def test_who_sends_what_nobody_sends_again_has_no_others_beginnings_forgotten() -> None:
    """Of a tenant whose conversations made 2 % of the requests a fifth was read anew elsewhere."""
    book, rng = Affinity(bound=256), Random(3)
    mine = [[rng.randbytes(8) for _ in range(8)] for _ in range(8)]
    for blocks in mine:
        book.remember(blocks, "a", 1, "quiet")
    for _ in range(256 * (TURNS - 1)):
        book.remember([rng.randbytes(8)], "b", 1, "busy")
    # Of a long row of them a few go: it is not passed over at once.
    assert book._owned["quiet"] > 56
    for _ in range(256 * 2):
        book.remember([rng.randbytes(8)], "b", 1, "busy")
    assert book._owned == {"busy": 256}, "it came back too late"


def test_among_many_with_little_room_is_shared() -> None:
    book, rng = Affinity(bound=100), Random(4)
    for _ in range(50):
        for owner in ("one", "two", "three"):
            book.remember([rng.randbytes(8) for _ in range(5)], "a", 1, owner)
        book.remember([rng.randbytes(8) for _ in range(50)], "a", 1, "busy")
    assert all(book._owned[owner] >= 15 for owner in ("one", "two", "three"))


@given(st.lists(st.tuples(st.lists(st.integers(0, 40), unique=True), st.sampled_from("abc"))))
def test_what_each_owner_has_is_what_is_remembered(sent: list[tuple[list[int], str]]) -> None:
    book = Affinity(bound=20)
    for numbers, owner in sent:
        book.remember([bytes([n]) for n in numbers], "r", 1, owner)
        assert book._owned == Counter(entry[0] for entry in book._seen.values())
        assert len(book._seen) <= 20


def test_a_full_memory_costs_no_more_than_an_empty_one() -> None:
    one, rng, took = Affinity(bound=1 << 15), Random(1), list[float]()
    for _ in range(40):
        trails = [tuple([rng.randbytes(8) for _ in range(64)]) for _ in range(50)]
        began = process_time()
        for blocks in trails:
            one.remember(blocks, "a", 1)
        took.append(process_time() - began)
    # Of a plain dict it is more than a hundred times as much: see `Affinity`.
    assert min(took[-10:]) < 12 * min(took[:10])


def test_where_no_replica_is_gone_nothing_is_looked_at() -> None:
    one, rng = Affinity(), Random(2)
    for _ in range(300):
        one.remember([rng.randbytes(8) for _ in range(64)], "a", 1)
    known = one._seen
    began = process_time()
    for _ in range(200):
        one.forget(frozenset({"a", "b"}))
    assert one._seen is known
    assert process_time() - began < 0.2, "each look took 5 ms"


@pytest.mark.parametrize("gone", [1, 7])
def test_who_goes_costs_as_much_of_a_full_memory_as_of_an_empty_one(gone: int) -> None:
    few, many = filled(blocks=64), filled(blocks=20_000)
    left = frozenset(KEYS[gone:])
    assert steps(lambda: few.forget(left)) == steps(lambda: many.forget(left)) < 1000
    for book in (few, many):
        assert {pick(book, SENT, dict.fromkeys(KEYS, 0.0), 4000) for _ in range(3)} <= left


def test_who_comes_back_holds_nothing_of_what_it_held() -> None:
    book = Affinity(guess=0)
    book.remember(SENT.blocks, "fra/3", 900)
    book.remember(SENT.blocks, "fra/5", 10)
    assert book.choose(SENT, IDLE, 4000, "fra/0") == ("fra/5", LEFT)
    book.forget(frozenset(KEYS) - {"fra/3", "fra/5"})
    book.remember([b"another"], "fra/3")
    assert book.choose(SENT, IDLE, 4000, "fra/0") == ("fra/0", 4000)
    book.forget(frozenset(KEYS[1:]))
    book.remember(SENT.blocks, "fra/3", 5)
    assert book.choose(SENT, IDLE, 4000, "fra/1") == ("fra/3", LEFT)


SENT = trail([("user", "sent " * 4000)])
LEFT = 4000 - 4000 * SIZES_UPTO[len(SENT.blocks)] // SENT.length
"""Tokens of it that are in no block."""


def filled(blocks: int) -> Affinity:
    """Every replica holds a part of that many blocks, and all hold those of `SENT`."""
    book, rng = Affinity(guess=0), Random(2)
    for at in range(0, blocks, 64):
        book.remember([rng.randbytes(8) for _ in range(64)], KEYS[at // 64 % len(KEYS)], 1)
    for key in KEYS:
        book.remember(SENT.blocks, key)
    return book


def steps(work: Callable[[], object]) -> int:
    """Instructions of Python that something takes: its work, whoever else is on the machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
