"""The engine of `timing.py`, taking many steps at once where nothing changes between them.

While everybody only decodes, all steps are equally long until somebody ends, the KV blocks run
out, or a request comes: the engine goes there in one leap. What happens, and when, is what the
stepping engine does (a test holds them together); only tokens between a request's first and last
are not told one by one. Days of load take minutes so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import floor

from router.simulator.spread import Spread
from router.simulator.timing import Engine, EngineSpec, Job, Progress, Sequence

_ROUNDING = 1e-9


@dataclass(slots=True)
class Done:
    """What an engine did: seconds between two tokens of a request, of all and by kind; seconds in
    which it worked; jobs it was given; and prompt tokens that it was to compute itself, with those
    of them that its cache had."""

    gaps: Spread = field(default_factory=Spread)
    apart: dict[str, Spread] = field(default_factory=dict)
    busy: float = 0.0
    jobs: int = 0
    prompt: int = 0
    hits: int = 0


class LeapingEngine(Engine):
    """An `Engine` without jitter.

    `done` is what it did; an engine that takes another one's place goes on with that one's.
    """

    __slots__ = ("_began", "_leap", "_one", "done")

    def __init__(
        self, spec: EngineSpec, seed: int = 0, before: LeapingEngine | None = None
    ) -> None:
        if spec.jitter:
            raise ValueError("steps of random length can't be leapt over; set `jitter` to 0")
        super().__init__(spec, seed)
        self.done: Done = Done() if before is None else before.done
        if before is not None:
            self.totals = before.totals
        self._began = self._one = 0.0
        self._leap = 1

    def submit(self, job: Job, now: float) -> None:
        """Queue a job; a leap under way ends with the step that is running. See `Engine`."""
        super().submit(job, now)
        self.done.jobs += 1
        self.interrupt(now)

    def interrupt(self, now: float) -> None:
        """End a leap with the step that runs at `now`: something is about to change."""
        if self._leap > 1:
            done = floor((now - self._began) / self._one + _ROUNDING)
            self._leap = min(self._leap, done + 1)
            self.next_at = self._began + self._leap * self._one

    def _begin(self, at: float) -> None:
        evicted = self.totals.preemptions
        super()._begin(at)
        self._leap = 1
        if self._step and self.next_at is not None:
            self._began, self._one = at, self.next_at - at
            # A step that evicts admits nobody; the next one may.
            self._leap = self._alike() if self.totals.preemptions == evicted else 1
            self.next_at = at + self._leap * self._one

    def _seat(self, sequence: Sequence, at: float) -> bool:
        new = sequence.started is None
        if not super()._seat(sequence, at):
            return False
        if new and not sequence.job.received:
            self.done.prompt += sequence.job.prompt_tokens
            self.done.hits += sequence.cached
        return True

    def _alike(self) -> int:
        """How many steps, this one included, will be like this one."""
        if len(self._step) < len(self._running):
            return 1
        steps, room = self.spec.context, self._pool.available
        for sequence, _ in self._step:
            if not sequence.decoding:
                return 1
            steps = min(steps, sequence.job.output_tokens - sequence.generated)
        while steps > 1 and self._growth(steps) > room:
            steps //= 2
        return max(1, steps)

    def _growth(self, steps: int) -> int:
        """KV blocks that so many steps take, at least one of them held already."""
        return sum(
            max(0, self._blocks(sequence.computed + steps) - sequence.holding.blocks)
            for sequence, _ in self._step
        )

    def _end(self, at: float) -> list[Progress]:
        leap, self._leap = self._leap, 1
        decoding, kinds = 0, Counter[str]()
        for sequence, _ in self._step:
            if not sequence.holding.blocks or not sequence.decoding:
                continue
            decoding += 1
            if sequence.job.kinds:
                kinds.update(sequence.job.kinds)
            if leap > 1:
                self._room_for(sequence, leap)
                sequence.computed += leap - 1
                sequence.generated += leap - 1
        if decoding:
            self.done.gaps.add(self._one, decoding * leap)
            for kind, count in kinds.items():
                self.done.apart.setdefault(kind, Spread()).add(self._one, count * leap)
            self.totals.generated += decoding * (leap - 1)
        self.totals.steps += leap - 1
        self.done.busy += leap * self._one
        return [told for told in super()._end(at) if told.token == 1 or told.times is not None]
