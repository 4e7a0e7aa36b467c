from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.simulator.blocks import block_hashes
from router.simulator.timing import Engine, EngineSpec, Job, Progress

SPEC = EngineSpec(
    max_num_seqs=4, prefill_rate=1000.0, step_floor=0.01, per_sequence=0.001, batch_tokens=100,
    kv_blocks=100, block_size=4, context=400,
)  # fmt: skip


def drain(engine: Engine) -> list[Progress]:
    out: list[Progress] = []
    while engine.next_at is not None:
        out.extend(engine.advance(engine.next_at))
    return out


def test_one_job_takes_its_prefill_then_one_step_a_token() -> None:
    engine = Engine(SPEC)
    engine.submit(Job("a", prompt_tokens=50, output_tokens=3), now=1.0)
    out = drain(engine)
    assert [(p.token, round(p.at, 6)) for p in out] == [(1, 1.06), (2, 1.071), (3, 1.082)]
    times = out[-1].times
    assert times is not None
    assert (times.submitted, times.started, times.output_tokens) == (1.0, 1.0, 3)
    assert times.first_token == pytest.approx(1.06)
    assert times.finished == pytest.approx(1.082)
    assert engine.next_at is None
    assert engine.load.kv_usage == 0.0


def test_what_a_step_computes_is_shared_by_who_is_seated_in_it() -> None:
    """As in vLLM: full blocks can be found as soon as they are scheduled."""
    engine = Engine(SPEC)
    blocks = tuple(range(20))
    engine.submit(Job("a", 81, 2, blocks), now=0.0)
    engine.submit(Job("b", 82, 2, blocks), now=0.0)
    drain(engine)
    assert (engine.totals.hits, engine.totals.queried) == (80, 163)


def test_a_long_prompt_is_prefilled_in_slices_of_the_token_budget() -> None:
    engine = Engine(SPEC)
    engine.submit(Job("a", prompt_tokens=250, output_tokens=1), now=0.0)
    assert drain(engine)[0].at == pytest.approx(3 * 0.01 + 0.250)
    assert engine.totals.steps == 3


def test_decoding_goes_on_while_another_prompt_is_prefilled_but_slower() -> None:
    engine = Engine(SPEC)
    engine.submit(Job("a", 4, 20), 0.0)
    first = engine.advance(0.014)
    assert [p.job for p in first] == ["a"]
    engine.submit(Job("b", 90, 1), 0.015)
    out = drain(engine)
    gaps = [
        later.at - earlier.at
        for earlier, later in zip(
            [p for p in out if p.job == "a"], [p for p in out if p.job == "a"][1:], strict=False
        )
    ]
    assert max(gaps) == pytest.approx(0.011 + 0.090)
    assert min(gaps) == pytest.approx(0.011)


def test_more_sequences_make_every_step_longer() -> None:
    def last(count: int) -> float:
        engine = Engine(SPEC)
        for number in range(count):
            engine.submit(Job(str(number), 4, 10), 0.0)
        return drain(engine)[-1].at

    assert last(1) < last(2) < last(4)
    assert last(4) < 2 * last(1)  # batching pays


def test_jobs_beyond_the_seats_wait_first_come_first_served() -> None:
    engine = Engine(SPEC)
    for number in range(6):
        engine.submit(Job(str(number), 4, 5), 0.0)
    engine.advance(engine.next_at or 0.0)
    assert (engine.load.running, engine.load.waiting) == (4, 2)
    ends = [p.job for p in drain(engine) if p.times is not None]
    assert ends == ["0", "1", "2", "3", "4", "5"]


def test_a_known_prefix_is_not_computed_again() -> None:
    tokens = list(range(80))
    blocks = block_hashes(tokens, SPEC.block_size)
    engine = Engine(SPEC)
    engine.submit(Job("a", 80, 1, blocks), 0.0)
    cold = drain(engine)[0].at
    engine.submit(Job("b", 80, 1, blocks), 10.0)
    warm = drain(engine)[0]
    assert warm.times is not None
    assert warm.times.cached_tokens == 76  # all but the block that holds the last token
    assert warm.at - 10.0 < cold / 4
    assert (engine.totals.queried, engine.totals.hits) == (160, 76)


def test_without_kv_room_the_youngest_is_evicted_and_computed_again() -> None:
    spec = EngineSpec(max_num_seqs=4, kv_blocks=8, block_size=4, context=64)
    engine = Engine(spec)
    engine.submit(Job("old", 12, 12), 0.0)
    engine.submit(Job("young", 12, 12), 0.0)
    out = drain(engine)
    done = {p.job: p.times for p in out if p.times is not None}
    assert [p.job for p in out if p.times is not None] == ["old", "young"]
    old, young = done["old"], done["young"]
    assert old is not None
    assert young is not None
    assert (old.preemptions, young.preemptions >= 1) == (0, True)
    assert [p.token for p in out if p.job == "young"] == list(range(1, 13))
    assert engine.totals.preemptions == young.preemptions


@pytest.mark.parametrize("when", ["waiting", "running"])
def test_a_cancelled_job_leaves_and_frees_its_blocks(when: str) -> None:
    engine = Engine(EngineSpec(max_num_seqs=1, kv_blocks=10, block_size=4))
    engine.submit(Job("a", 8, 9), 0.0)
    engine.submit(Job("b", 8, 2), 0.0)
    victim, other = ("b", "a") if when == "waiting" else ("a", "b")
    assert engine.cancel(victim)
    assert not engine.cancel(victim)
    assert {p.job for p in drain(engine)} == {other}
    assert engine.load.kv_usage == 0.0


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0), (390, 20)])
def test_what_can_never_run_is_refused(prompt: int, output: int) -> None:
    with pytest.raises(ValueError, match="token"):
        Engine(SPEC).submit(Job("a", prompt, output), 0.0)


def test_a_late_advance_does_not_serve_jobs_before_they_came() -> None:
    engine = Engine(SPEC)
    engine.submit(Job("a", 4, 2), 0.0)
    engine.submit(Job("b", 4, 1), 5.0)
    out = engine.advance(100.0)
    b = next(p for p in out if p.job == "b")
    assert b.at == pytest.approx(5.014)


def test_jitter_is_seeded() -> None:
    def run(seed: int) -> list[float]:
        engine = Engine(EngineSpec(jitter=0.2), seed)
        engine.submit(Job("a", 10, 10), 0.0)
        return [p.at for p in drain(engine)]

    assert run(1) == run(1)
    assert run(1) != run(2)


jobs = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 30), st.floats(0, 1), st.booleans()),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(jobs, st.integers(24, 60))
def test_every_job_gets_each_token_once_in_order_and_all_blocks_come_back(
    plan: list[tuple[int, int, float, bool]], kv_blocks: int
) -> None:
    spec = EngineSpec(max_num_seqs=3, kv_blocks=kv_blocks, block_size=4, batch_tokens=32)
    engine = Engine(spec)
    out: list[Progress] = []
    cancelled: set[str] = set()
    for number, (prompt, output, at, cancel) in enumerate(sorted(plan, key=lambda row: row[2])):
        out.extend(engine.advance(at))
        blocks = block_hashes(range(prompt), 4)
        engine.submit(Job(str(number), prompt, output, blocks), at)
        if cancel and engine.cancel(str(number)):
            cancelled.add(str(number))
    out.extend(drain(engine))
    for number, (_, output, _, _) in enumerate(sorted(plan, key=lambda row: row[2])):
        tokens = [p.token for p in out if p.job == str(number)]
        assert tokens == ([] if str(number) in cancelled else list(range(1, output + 1)))
    assert [p.at for p in out] == sorted(p.at for p in out)
    assert engine.load.running == engine.load.waiting == 0
    assert engine.load.kv_usage == 0.0


def test_what_was_computed_elsewhere_takes_no_time_but_room() -> None:
    engine = Engine(SPEC)
    engine.submit(Job("a", prompt_tokens=80, output_tokens=2, received=80), now=0.0)
    out = engine.advance(0.02)
    # The last token is computed here: its logits are what the first one comes from.
    assert [(p.token, round(p.at, 4)) for p in out] == [(1, 0.011)]
    assert engine.load.kv_usage >= 0.2
    times = drain(engine)[-1].times
    assert times is not None
    assert (times.cached_tokens, engine.totals.hits) == (0, 0)
