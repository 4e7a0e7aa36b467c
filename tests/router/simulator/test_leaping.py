"""Leaping over equal steps gives what stepping through them gives."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.simulator.leaping import LeapingEngine
from router.simulator.timing import Engine, EngineSpec, Job, Progress
from router.simulator.traces import shaped

Load = list[tuple[float, Job]]


def spec(seats: int, blocks: int) -> EngineSpec:
    return EngineSpec(
        max_num_seqs=seats, prefill_rate=1000.0, step_floor=0.01, per_sequence=0.001,
        batch_tokens=100, kv_blocks=blocks, block_size=4, context=400,
    )  # fmt: skip


def drive(engine: Engine, load: Load) -> list[Progress]:
    """Submit each job at its time; the first and the last token of every job."""
    out: list[Progress] = []
    left = list(reversed(load))
    while left or engine.next_at is not None:
        if left and (engine.next_at is None or left[-1][0] < engine.next_at):
            at, job = left.pop()
            engine.submit(job, at)
        elif engine.next_at is not None:
            out += engine.advance(engine.next_at)
    return [told for told in out if told.token == 1 or told.times is not None]


@st.composite
def loads(draw: st.DrawFn) -> Load:
    """No job arrives in the moment of another's token, where rounding would tell who is first."""
    at, found = 0.0, []
    for number in range(draw(st.integers(1, 25))):
        at += draw(st.sampled_from([0.00130007, 0.02710011, 0.31370013, 2.05130017]))
        common = draw(st.sampled_from([(1, 2, 3, 4), (5, 6), (number + 100,)]))
        prompt, output = draw(st.integers(1, 150)), draw(st.integers(1, 120))
        found.append((at, Job(str(number), prompt, output, common)))
    return found


@settings(max_examples=60)
@given(loads(), st.sampled_from([3, 16]), st.sampled_from([100, 300]))
def test_it_tells_what_the_stepping_engine_tells(load: Load, seats: int, blocks: int) -> None:
    one, other = Engine(spec(seats, blocks)), LeapingEngine(spec(seats, blocks))
    stepped, leapt = drive(one, load), drive(other, load)
    assert [(t.job, t.token) for t in stepped] == [(t.job, t.token) for t in leapt]
    assert [t.at for t in leapt] == pytest.approx([t.at for t in stepped], abs=1e-6)
    assert other.totals == one.totals


def test_a_long_answer_takes_few_turns() -> None:
    engine, turns = LeapingEngine(spec(4, 200)), 0
    engine.submit(Job("a", 10, 300), 0.0)
    while engine.next_at is not None:
        engine.advance(engine.next_at)
        turns += 1
    assert turns <= 3
    assert engine.totals.steps == 300
    assert engine.done.gaps.count == 299
    assert engine.done.gaps.at(0.5) == pytest.approx(0.011, rel=0.02)
    assert engine.done.busy == pytest.approx(0.01 + 0.01 + 299 * 0.011)


def test_cancelling_ends_a_leap_with_its_step() -> None:
    engine = LeapingEngine(spec(4, 200))
    engine.submit(Job("a", 10, 100), 0.0)
    engine.submit(Job("b", 10, 100), 0.0)
    for _ in range(2):
        assert engine.next_at is not None
        engine.advance(engine.next_at)
    engine.interrupt(0.5)
    assert engine.cancel("a")
    assert engine.next_at == pytest.approx(0.5, abs=0.012)
    ends = drive(engine, [])
    assert [told.job for told in ends] == ["b"]


def test_random_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="jitter"):
        LeapingEngine(EngineSpec(jitter=0.1))


def held_up(pairs: list[tuple[int, int]], rate: float) -> tuple[float, float]:
    """Of random arrivals: the tokens that are there on average, and by how much longer than alone
    an answer lasts from its first token to its end (seconds)."""
    rng, at, load, spec = random.Random(0), 0.0, list[tuple[float, Job]](), EngineSpec()
    while len(load) < 500:
        at += rng.expovariate(rate)
        load.append((at, Job(f"{len(load)}", *rng.choice(pairs))))
    told = [one.times for one in drive(LeapingEngine(spec), load) if one.times is not None]
    there = sum((t.finished - t.submitted) * (t.prompt_tokens + t.output_tokens) for t in told)
    step = spec.step_floor + spec.per_sequence
    later = (t.finished - t.first_token - (t.output_tokens - 1) * step for t in told)
    return there / at, fmean(later)


@pytest.mark.parametrize(
    ("pairs", "rates"),
    [
        ([(300, 40), (600, 60), (150, 20)], (2.0, 4.0, 8.0, 11.0, 13.0)),
        (shaped("chat"), (0.5, 1.0, 2.0, 3.0)),
    ],
)
def test_a_token_under_way_holds_an_answer_up_as_one_of_a_prompt_does_its_beginning(
    pairs: list[tuple[int, int]], rates: tuple[float, ...]
) -> None:
    """From nearly idle to nearly full: so `Balance` has how far a busy endpoint is."""
    for rate in rates:
        tokens, later = held_up(pairs, rate)
        assert 0.75 <= later / (tokens / EngineSpec().prefill_rate) <= 1.25
