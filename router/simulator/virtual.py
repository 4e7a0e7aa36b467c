"""Virtual time: an event loop whose clock jumps to whatever comes next, and engines on it.

The real code (waiting room, selection, timeouts) runs on it unchanged: it asks the running loop
for the time and for wake-ups, and sleeps that nobody else needs take no time at all.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Final, Protocol, TypeVar

from router.simulator.leaping import LeapingEngine
from router.simulator.timing import EngineSpec, Job, JobTimes

T = TypeVar("T")
_NOTHING: Final[list[tuple[selectors.SelectorKey, int]]] = []


class Stalled(RuntimeError):
    """Everybody waits, and nothing is left that could wake anybody."""


class _HasNumber(Protocol):
    def fileno(self) -> int: ...


class _Jump(selectors.BaseSelector):
    """A selector without sockets: waiting moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self._map: dict[int, selectors.SelectorKey] = {}

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stalled("nothing is left that could happen")
        if timeout > 0:
            self.now += timeout
        return _NOTHING

    def register(
        self, fileobj: int | _HasNumber, events: int, data: object = None
    ) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(number, number, events, data)
        self._map[number] = key
        return key

    def unregister(self, fileobj: int | _HasNumber) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._map.pop(number)

    def get_map(self) -> Mapping[int | _HasNumber, selectors.SelectorKey]:
        return {number: key for number, key in self._map.items()}  # noqa: C416 - its type widens


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, from 0 on. It has no sockets; threads can't wake it."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Virtual seconds."""
        return self._jump.now


def run(main: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end in virtual time.

    Raises:
        Stalled: it waits for something that nothing will ever do.
    """
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


class Ended:
    """Who asked an engine for something: told of the first token, and of the end.

    `times` is `None` when the engine died before the answer was whole.
    """

    def first(self) -> None:
        """The first token came out."""
        raise NotImplementedError

    def ended(self, times: JobTimes | None) -> None:
        """Nothing more comes."""
        raise NotImplementedError


class LoopEngine:
    """One engine on the running loop. `up` until it is killed, and again when revived.

    `life` says how often it was killed: what it held before is gone. Each set in `watching` gets
    the engine when it begins something, dies or comes back.
    """

    __slots__ = ("_asking", "_loop", "_spec", "_timer", "engine", "life", "up", "watching")

    def __init__(self, spec: EngineSpec) -> None:
        self._loop = asyncio.get_running_loop()
        self._spec = spec
        self._asking: dict[str, Ended] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.engine = LeapingEngine(spec)
        self.up, self.life = True, 0
        self.watching: list[set[LoopEngine]] = []

    def stir(self) -> None:
        """Tell who watches."""
        for one in self.watching:
            one.add(self)

    def submit(self, job: Job, asking: Ended) -> None:
        """Queue a job.

        Raises:
            ValueError: the engine could never hold it.
        """
        self.engine.submit(job, self._loop.time())
        self._asking[job.id] = asking
        self.stir()
        self._schedule()

    def kill(self) -> None:
        """Everything that runs ends now, without an answer; the cache is lost."""
        self.up, self.life = False, self.life + 1
        self.stir()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        asking, self._asking = self._asking, {}
        self.engine = LeapingEngine(self._spec, before=self.engine)
        for one in asking.values():
            one.ended(None)

    def revive(self) -> None:
        """Take requests again, with an empty cache."""
        self.up = True
        self.stir()

    def _schedule(self) -> None:
        due = self.engine.next_at
        timer = self._timer
        if timer is not None:
            if timer.when() == due:
                return
            timer.cancel()
        self._timer = None if due is None else self._loop.call_at(due, self._due)

    def _due(self) -> None:
        self._timer = None
        due = self.engine.next_at
        out = [] if due is None else self.engine.advance(max(due, self._loop.time()))
        self._schedule()
        for told in out:
            asking = self._asking.get(told.job)
            if asking is None:
                continue
            if told.token == 1:
                asking.first()
            if told.times is not None:
                del self._asking[told.job]
                asking.ended(told.times)
