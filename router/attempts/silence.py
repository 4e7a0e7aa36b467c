"""Attempts that wait for first content, and how long that usually takes, per replica.

An engine can stop while its server still says that all is well. What shows it is silence: an
attempt that waits longer than nearly all before it. Silence only raises the question; a canary
answers it (`router.watch.probe`), and then the attempts that still wait are ended, so that they
go on elsewhere instead of waiting for their timeout.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from math import ceil, inf
from types import TracebackType
from typing import Final

from router.transport.messages import AnswerTimeout, Fate

KEPT: Final = 128
"""First-content times kept of each replica, streams and whole answers apart."""
ENOUGH: Final = 5
"""Of these at least, before what is usual is known."""
UNKNOWN: Final = 10.0
"""Seconds that are taken for usual while that isn't known."""
LEAST: Final = 0.05
"""Seconds: less is never taken for usual; a router's own pauses are as long."""
OVERTAKEN: Final = 3
"""So often an attempt was answered before one that began earlier, by LEAST and more, until a
replica is known to compute several at once."""


class Silence:
    """What every replica owes an answer to. Belongs to one event loop."""

    __slots__ = ("_heard", "_loop_time", "_overtaken", "_times", "_waiting")

    def __init__(self, loop_time: Callable[[], float]) -> None:
        self._loop_time = loop_time
        self._waiting: defaultdict[str, set[Patience]] = defaultdict(set)
        self._times: dict[tuple[str, bool], deque[float]] = {}
        self._heard: dict[str, float] = {}
        self._overtaken: dict[str, int] = {}

    def enter(self, one: Patience) -> None:
        """An attempt begins."""
        self._waiting[one.key].add(one)

    def leave(self, one: Patience, content: bool) -> None:
        """An attempt ended, with first content or without."""
        key = one.key
        self._waiting[key].discard(one)
        if content:
            now = self._heard[key] = self._loop_time()
            times = self._times.get((key, one.stream))
            if times is None:
                times = self._times[key, one.stream] = deque(maxlen=KEPT)
            times.append(now - one.began)
            if not self.several(key):
                latest = one.began - LEAST
                if any(other.began < latest for other in self._waiting[key]):
                    self._overtaken[key] = self._overtaken.get(key, 0) + 1

    def several(self, key: str) -> bool:
        """Whether a replica was seen to compute several requests at once, not one by one."""
        return self._overtaken.get(key, 0) >= OVERTAKEN

    def heard(self, key: str) -> float:
        """Loop time at which a replica last gave first content; minus infinity if never."""
        return self._heard.get(key, -inf)

    def usual(self, key: str, stream: bool) -> float:
        """The 99th percentile of the time to first content, in seconds."""
        times = self._times.get((key, stream), ())
        if len(times) < ENOUGH:
            return UNKNOWN
        return max(LEAST, sorted(times)[ceil(len(times) * 0.99) - 1])

    def within(self, key: str, share: float) -> float | None:
        """Seconds in which so large a share of streams had first content; `None` when unknown."""
        times = self._times.get((key, True), ())
        if len(times) < ENOUGH:
            return None
        return max(LEAST, sorted(times)[ceil(len(times) * share) - 1])

    def quickest(self, key: str) -> float:
        """What is usual for the quicker kind of answer."""
        return min(self.usual(key, True), self.usual(key, False))

    def computes(self, key: str, pace: float) -> bool:
        """Whether a prompt under way may be what keeps a replica silent, at `pace` seconds a token:
        until then a step of the engine, and all that waits for the next one, says nothing.

        It counts from the last content, or the oldest wait: what comes later puts nothing off.
        """
        waiting = self._waiting.get(key)
        if not waiting:
            return False
        since = max(self.heard(key), min([one.began for one in waiting]))
        longest = max([one.prompt for one in waiting])
        return self._loop_time() - since <= longest * pace

    def suspects(
        self, grace: float, pace: Callable[[str], float] = lambda key: 0.0
    ) -> Iterator[str]:
        """Replicas with an attempt older than usual by `grace` seconds, and no content since, that
        no prompt explains; `pace`: see `computes`."""
        now = self._loop_time()
        for key, waiting in self._waiting.items():
            heard = self.heard(key)
            if self.computes(key, pace(key)):
                continue
            if any(now - max(w.began, heard) > self.usual(key, w.stream) + grace for w in waiting):
                yield key

    def end(self, key: str) -> int:
        """End every attempt that waits at a replica; gives how many."""
        waiting = tuple(self._waiting.get(key, ()))
        for one in waiting:
            one.give_up()
        return len(waiting)

    def forget(self, keep: frozenset[str]) -> None:
        """Drop what is known of replicas that are gone."""
        self._heard = {key: at for key, at in self._heard.items() if key in keep}
        self._overtaken = {key: n for key, n in self._overtaken.items() if key in keep}
        self._times = {one: times for one, times in self._times.items() if one[0] in keep}
        for key in [key for key in self._waiting.keys() - keep if not self._waiting[key]]:
            del self._waiting[key]


class Patience:
    """One attempt's wait for first content; raises AnswerTimeout when it is ended.

    It works on the entering task, as `asyncio.timeout` does, but has no time of its own. `prompt`
    has so many tokens.
    """

    __slots__ = ("_at", "_before", "_ended", "_task", "began", "key", "prompt", "stream")

    def __init__(self, at: Silence, key: str, stream: bool, began: float, prompt: int = 0) -> None:
        self._at = at
        self._ended = False
        self._task: asyncio.Task[object] | None = None
        self._before = 0
        self.key = key
        self.stream = stream
        self.began = began
        self.prompt = prompt

    def __enter__(self) -> None:
        task = self._task = asyncio.current_task()
        if task is None:
            raise RuntimeError("`patience` needs a task")
        self._before = task.cancelling()
        self._at.enter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._at.leave(self, kind is None)
        task, self._task = self._task, None
        if not self._ended or task is None:
            return
        if task.uncancel() <= self._before and kind is asyncio.CancelledError:
            # The request was written; whether it would still have run, nobody knows.
            raise AnswerTimeout("the engine stands still", Fate.UNKNOWN) from error

    def give_up(self) -> None:
        """End the wait in the next turn of the event loop."""
        if self._task is not None and not self._ended:
            self._ended = True
            self._task.cancel()
