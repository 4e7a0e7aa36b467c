"""The timing model of one inference engine: continuous batching, chunked prefill, KV blocks.

Pure and driven by the caller's clock: `submit`, `cancel`, then `advance(now)` whenever `next_at`
is due. The live fleet sleeps until `next_at` (`pacing.py`); a discrete-event simulation jumps to
it. No asyncio, no clock, no randomness but the seed.

The engine works in steps, like vLLM's V1 scheduler. At the start of a step it takes (1) running
sequences in order of arrival, one token for those that decode, a slice of the prompt for those
that prefill, (2) waiting ones, first come first served, while there are seats, KV blocks and
token budget. A step lasts `step_floor + per_sequence × decoding + prefill tokens ÷ prefill_rate`.
A decoding sequence that finds no KV block evicts the youngest one, which computes everything
again later.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from router.simulator.blocks import BlockPool, Holding


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What the engine is: seats, rates (tokens/s, seconds), KV cache. Defaults: a mid-size GPU.

    `transfer_rate`: tokens a second whose cache goes over its link to another one: 100 Gbit/s
    carry 38,000 of 320 KiB, which is what a model of 70 billion parameters has in 16 bits.
    """

    max_num_seqs: int = 64
    prefill_rate: float = 8000.0
    step_floor: float = 0.012
    per_sequence: float = 0.0004
    batch_tokens: int = 2048
    kv_blocks: int = 4096
    block_size: int = 16
    context: int = 32768
    jitter: float = 0.0
    transfer_rate: float = 38_000.0


@dataclass(frozen=True, slots=True)
class Job:
    """One generation: its prompt (tokens, and hashes of its full blocks) and how much comes out.

    `received` of the prompt's tokens were computed by another engine, whose cache it gets. `kinds`
    name what its numbers are counted under.
    """

    id: str
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()
    received: int = 0
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobTimes:
    """When what happened to a finished job (engine seconds), and what it cost."""

    submitted: float
    started: float
    first_token: float
    finished: float
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    preemptions: int


@dataclass(frozen=True, slots=True)
class Progress:
    """Token number `token` (from 1) of `job` came out at `at`; `times` with the last one."""

    job: str
    at: float
    token: int
    times: JobTimes | None = None


class Load(NamedTuple):
    """What vLLM's gauges would say now."""

    running: int
    waiting: int
    kv_usage: float


@dataclass(slots=True)
class Totals:
    """Counters since the start (tokens, except `preemptions` and `steps`)."""

    prompt: int = 0
    generated: int = 0
    queried: int = 0
    hits: int = 0
    preemptions: int = 0
    steps: int = 0


@dataclass(slots=True, eq=False)
class Sequence:
    """One job as it runs."""

    job: Job
    submitted: float
    started: float | None = None
    first_token: float | None = None
    computed: int = 0
    generated: int = 0
    cached: int = 0
    preemptions: int = 0
    holding: Holding = field(default_factory=Holding)

    @property
    def missing(self) -> int:
        """Known tokens whose KV entries are not computed yet (1 while decoding)."""
        known = self.job.prompt_tokens + self.generated
        return known - self.computed

    @property
    def decoding(self) -> bool:
        """Whether its prompt is computed, and one token a step comes out."""
        return self.generated > 0 and self.missing == 1


class Engine:
    """A continuous-batching engine on a caller's clock (seconds, never going back)."""

    __slots__ = (
        "_pool", "_rng", "_running", "_step", "_waiting", "next_at", "spec", "totals",
    )  # fmt: skip

    def __init__(self, spec: EngineSpec, seed: int = 0) -> None:
        self.spec = spec
        self.totals = Totals()
        self.next_at: float | None = None
        self._rng = random.Random(seed)
        self._pool = BlockPool(spec.kv_blocks)
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._step: list[tuple[Sequence, int]] = []

    @property
    def load(self) -> Load:
        """The gauges now."""
        return Load(len(self._running), len(self._waiting), self._pool.usage)

    @property
    def held(self) -> int:
        """Tokens of all jobs that are here, running or waiting: prompts and whole answers."""
        jobs = [one.job for queue in (self._running, self._waiting) for one in queue]
        return sum([job.prompt_tokens + job.output_tokens for job in jobs])

    @property
    def idle(self) -> bool:
        """Whether it has no job at all."""
        return not (self._running or self._waiting)

    def cached(self, job: Job) -> int:
        """Tokens of a job's prompt that are in the cache now."""
        usable = job.blocks[: (job.prompt_tokens - 1) // self.spec.block_size]
        return self._pool.cached(usable) * self.spec.block_size

    def submit(self, job: Job, now: float) -> None:
        """Queue a job. ValueError if it could never run."""
        total = job.prompt_tokens + job.output_tokens
        if job.prompt_tokens < 1 or job.output_tokens < 1:
            raise ValueError("a job needs at least one prompt token and one output token")
        if total > self.spec.context or self._blocks(total) > self.spec.kv_blocks:
            raise ValueError(f"{total} tokens are more than this engine can hold")
        self._waiting.append(Sequence(job, now))
        if self.next_at is None:
            self._begin(now)

    def cancel(self, job_id: str) -> bool:
        """Forget a job, as an aborted request; False if it is not here (any more)."""
        for queue in (self._running, self._waiting):
            for sequence in queue:
                if sequence.job.id == job_id:
                    queue.remove(sequence)
                    self._pool.release(sequence.holding)
                    return True
        return False

    def advance(self, now: float) -> list[Progress]:
        """Finish every step that ends at or before `now`; what came out, in order."""
        out: list[Progress] = []
        while self.next_at is not None and self.next_at <= now:
            ended = self.next_at
            out.extend(self._end(ended))
            self._begin(ended)
        return out

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.spec.block_size)

    def _begin(self, at: float) -> None:
        self._step = []
        budget = self._take_running()
        if budget >= 0:
            self._admit(at, budget)
        if not self._step:
            self._wait_for_submitted(at)
            return
        self.next_at = at + self._length() * (1.0 + self.spec.jitter * self._rng.uniform(-1.0, 1.0))

    def _length(self) -> float:
        """Seconds that the step now taken lasts."""
        decoding, prefill = 0, 0
        for sequence, tokens in self._step:
            if sequence.decoding:
                decoding += 1
            else:
                prefill += tokens
        spec = self.spec
        return spec.step_floor + spec.per_sequence * decoding + prefill / spec.prefill_rate

    def _wait_for_submitted(self, at: float) -> None:
        """Idle, or (after a late `advance`) the next job arrived after this step would start."""
        later = [sequence.submitted for sequence in self._waiting if sequence.submitted > at]
        self.next_at = min(later) if later else None

    def _take_running(self) -> int:
        """Schedule running sequences; the token budget left, or -1 if one had to be evicted."""
        budget, evicted = self.spec.batch_tokens, False
        for sequence in list(self._running):
            if evicted and sequence not in self._running:
                continue  # by an older one a moment ago
            tokens = min(sequence.missing, budget)
            if tokens < 1:
                break
            while not self._room_for(sequence, tokens):
                evicted = True
                if self._evict_youngest() is sequence:
                    break
            else:
                self._schedule(sequence, tokens)
                budget -= tokens
        return -1 if evicted else budget

    def _room_for(self, sequence: Sequence, tokens: int) -> bool:
        wanted = self._blocks(sequence.computed + tokens) - sequence.holding.blocks
        return wanted <= 0 or self._pool.grow(sequence.holding, wanted)

    def _evict_youngest(self) -> Sequence:
        victim = self._running.pop()
        self._step = [entry for entry in self._step if entry[0] is not victim]
        self._pool.release(victim.holding)
        victim.computed = 0
        victim.preemptions += 1
        self.totals.preemptions += 1
        self._waiting.appendleft(victim)
        return victim

    def _admit(self, at: float, budget: int) -> None:
        while self._waiting and budget > 0 and len(self._running) < self.spec.max_num_seqs:
            sequence = self._waiting[0]
            if sequence.submitted > at or not self._seat(sequence, at):
                return
            self._waiting.popleft()
            self._running.append(sequence)
            tokens = min(sequence.missing, budget)
            self._schedule(sequence, tokens)
            budget -= tokens

    def _schedule(self, sequence: Sequence, tokens: int) -> None:
        """Let it compute so many tokens in this step. Its full blocks can be found at once.

        So vLLM has it: who is seated later in the same step shares what the step computes. The
        names are the prompt's: a block that its answer fills has another, which nobody asks for.
        """
        self._step.append((sequence, tokens))
        job = sequence.job
        if len(sequence.holding.published) < len(job.blocks):
            read = min(job.prompt_tokens, sequence.computed + tokens)
            self._pool.publish(sequence.holding, job.blocks[: read // self.spec.block_size])

    def _seat(self, sequence: Sequence, at: float) -> bool:
        known = sequence.job.prompt_tokens + sequence.generated
        # The last token is always computed: its logits are what the first output comes from.
        usable = sequence.job.blocks[: (known - 1) // self.spec.block_size]
        found = usable[: self._pool.cached(usable)]
        holding = self._pool.open(found, self._blocks(known) - len(found))
        if holding is None:
            return False
        sequence.holding = holding
        sequence.computed = len(found) * self.spec.block_size
        if sequence.started is None:
            sequence.started, sequence.cached = at, sequence.computed
            self.totals.queried += sequence.job.prompt_tokens
            self.totals.hits += sequence.computed
            # What was received is gone with an eviction: then it is computed here.
            received = min(sequence.job.received, known - 1)
            sequence.computed = max(sequence.computed, received)
        return True

    def _end(self, at: float) -> list[Progress]:
        self.totals.steps += 1
        out: list[Progress] = []
        for sequence, tokens in self._step:
            if not sequence.holding.blocks:
                continue  # cancelled during the step
            sequence.computed += tokens
            if sequence.missing == 0:
                out.append(self._token(sequence, at))
        self._step = []
        return out

    def _token(self, sequence: Sequence, at: float) -> Progress:
        job = sequence.job
        sequence.generated += 1
        self.totals.generated += 1
        if sequence.first_token is None:
            sequence.first_token = at
            self.totals.prompt += job.prompt_tokens
        if sequence.generated < job.output_tokens:
            return Progress(job.id, at, sequence.generated)
        self._running.remove(sequence)
        self._pool.release(sequence.holding)
        return Progress(job.id, at, sequence.generated, self._times(sequence, at))

    @staticmethod
    def _times(sequence: Sequence, at: float) -> JobTimes:
        started = sequence.submitted if sequence.started is None else sequence.started
        first = at if sequence.first_token is None else sequence.first_token
        return JobTimes(
            sequence.submitted, started, first, at, sequence.job.prompt_tokens,
            sequence.generated, sequence.cached, sequence.preemptions,
        )  # fmt: skip
