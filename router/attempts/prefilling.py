"""Prefill and decode at two endpoints: vLLM's two steps, the first of which is made here.

1. The prompt goes to a replica of the endpoint's other half, which computes it and says one token:
   `max_tokens: 1`, no stream, `kv_transfer_params: {do_remote_decode: true, …}`.
2. Its answer's `kv_transfer_params` say where the cache of the prompt is kept. They go with the
   client's own request to the endpoint, whose engine fetches the cache and makes the answer.

Both are attempts: under the same vetoes, deadline and budget, the first covered by the decision's
entry and every later one by its own, durable before it is sent. When the first step fails it is
tried at one more replica, then the endpoint computes the prompt itself: it was not asked before, so
that takes nothing from the retry budget. A cache serves one request that was sent: who answers with
an error is asked again without it, since the way between the two may be what failed; after that,
too, the endpoint computes for itself. A request that is refused as invalid with a cache is the
client's mistake only if it is refused without one: what we added may be what is wrong.

Source: vLLM's `toy_proxy_server.py` and NIXL connector, llm-d's routing sidecar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import orjson

from regions.health import HealthBook, Standing
from regions.model import Endpoint
from router.answers.outcomes import Failed
from router.attempts.asking import ask_at, ask_of
from router.attempts.retrying import is_harmless
from router.attempts.running import PREFILLED, Run
from router.capacity.load import Held, InFlight
from router.errors import RequestError
from router.opening import OpenedStream, OpenedWhole
from router.providers.base import Ask
from router.providers.bodies import anew
from router.snapshot import Snapshot
from router.transport.messages import Fate
from router.types import Candidacy, Plan

if TYPE_CHECKING:
    from router.dispatch import Dispatched

REFUSED: Final = "cache_refused"
"""The result of an attempt that was refused as invalid, with what we added to it."""
TRIED: Final = 2
"""Replicas of the other half that a request asks."""
LEFT: Final = 2
"""Attempts that must be left to ask one: the last is the answer's."""
LEFT_AGAIN: Final = 4
"""The same for a second one, while there is another endpoint: where a whole region is gone, two
replicas of this one fail as well, and the next must not go without an attempt for that."""
KEEP: Final[Mapping[str, object]] = MappingProxyType(
    {
        "do_remote_decode": True,
        "do_remote_prefill": False,
        "remote_engine_id": None,
        "remote_block_ids": None,
        "remote_host": None,
        "remote_port": None,
    }
)
"""What tells an engine to keep the cache of a prompt for another one to fetch."""
_NOT_THEN: Final = frozenset({"stream_options", "min_tokens", "kv_transfer_params"})


class Attempting(Protocol):
    """What an attempt is made with: the dispatcher."""

    def may_go_on(self, run: Run) -> bool:
        """Whether one more attempt may be made at all."""
        ...

    def may_begin(self, run: Run) -> bool:
        """The same for one that is no retry."""
        ...

    def vetoed(self, run: Run, candidacy: Candidacy) -> bool:
        """Whether this endpoint may not be asked now."""
        ...

    async def attempt(
        self, run: Run, candidacy: Candidacy, replica: str, held: Held | None, ask: Ask | None
    ) -> Dispatched | None:
        """Ask one replica."""
        ...


@dataclass(frozen=True, slots=True)
class Prefills:
    """The first of the two steps.

    `choose` takes a place for so many prompt tokens at an endpoint's best replica.
    """

    choose: Callable[[Plan, Endpoint, int], Held | None]
    in_turn: Callable[[Snapshot, str, str | None], Iterable[str]]
    inflight: InFlight
    health: HealthBook
    loop_time: Callable[[], float]

    async def step(self, run: Run, candidacy: Candidacy, replica: str, by: Attempting) -> bool:
        """Have the prompt computed, where that is due; gives whether the answer may be asked for.

        Where its cache then is stands in `run.moved`.
        """
        name, half = candidacy.endpoint.name, candidacy.endpoint.prefill
        if half is None or name in run.whole or _is_there(run, name):
            return True
        if by.vetoed(run, candidacy):
            return True  # which the attempt itself finds
        used = run.cache_for(name) is not None
        run.moved = None
        run.whole.add(name)
        left = 0 if used else elsewhere(run.plan, candidacy.endpoint, replica)
        if not left:
            return True
        before = len(run.failures)
        found = await self._tried(run, half_of(candidacy, half), left, by)
        moved = None if found is None else transfer_in(found.opened)
        if moved is None:
            return len(run.failures) == before or by.may_begin(run)
        run.moved = name, moved
        run.whole.discard(name)
        return True

    def ask(self, run: Run, candidacy: Candidacy, by: Attempting) -> Ask:
        """The request for an endpoint: with the cache of its prompt, unless whoever keeps it may
        not be asked any more."""
        half = candidacy.endpoint.prefill
        if run.moved is not None and half is not None and by.vetoed(run, half_of(candidacy, half)):
            run.moved = None
        return ask_at(run, candidacy)

    def lost(self, run: Run, candidacy: Candidacy, by: Attempting) -> bool:
        """Whether a replica that refused a request with a cache may be asked again without one."""
        name, last = candidacy.endpoint.name, run.failures[-1] if run.failures else None
        if run.cache_for(name) is None or last is None or last.status is None:
            return False
        if last.load:
            return False  # it has too much to do, with a cache or without
        run.moved = None
        run.whole.add(name)
        return by.may_begin(run) if last.result == REFUSED else by.may_go_on(run)

    def judged(self, run: Run, candidacy: Candidacy, one: Failed) -> Failed:
        """A failed attempt: whose mistake it is, is not known yet where it went with a cache."""
        if one.clients is None or one.status is None:
            return one  # or it was not sent, so not for what was added
        if run.cache_for(candidacy.endpoint.name) is None:
            return one
        return replace(one, result=REFUSED, clients=None)

    async def _tried(
        self, run: Run, half: Candidacy, left: int, by: Attempting
    ) -> Dispatched | None:
        """The first replica that computes the prompt."""
        name, snapshot = half.endpoint.name, run.snapshot
        first = self.choose(run.plan, half.endpoint, left)
        kept = None if first is None else first.key
        last = run.plan.ranked.order[-1].verdict is half.verdict
        try:
            for number, key in enumerate(self.in_turn(snapshot, name, kept)):
                if number >= TRIED or run.left < needed(number, last=last):
                    return None
                if self._marked(key) or by.vetoed(run, half):
                    return None
                if number and not by.may_go_on(run):
                    return None
                held = first if key == kept else None
                held = held or self.inflight.enter(key, left, left, self.loop_time())
                before = len(run.failures)
                found = await self._once(run, half, held, by)
                if found is not None or len(run.failures) == before:
                    return found
        finally:
            if first is not None:
                first.close()
        return None

    async def _once(
        self, run: Run, half: Candidacy, held: Held, by: Attempting
    ) -> Dispatched | None:
        try:
            found = await by.attempt(run, half, held.key, held, keeping(ask_of(run.committed)))
        except RequestError:
            return None  # what is its own fault the endpoint says itself, of the whole request
        else:
            if found is not None:
                run.attempts[-1] = replace(run.attempts[-1], result=PREFILLED)
                held.opened(self.loop_time())
            return found
        finally:
            held.close()  # also where nothing was sent: a veto came, or the log is full

    def _marked(self, key: str) -> bool:
        return self.health.standing(key, self.loop_time()) is Standing.MARKED


def needed(number: int, *, last: bool) -> int:
    """Attempts that must be left before replica `number` of the other half is asked.

    Args:
        last: whether the plan has no other endpoint after this one.
    """
    return LEFT if last or not number else LEFT_AGAIN


def half_of(candidacy: Candidacy, half: Endpoint) -> Candidacy:
    """The other half as somebody to ask: judged with its endpoint, under the footprint of both."""
    return Candidacy(half, candidacy.verdict, candidacy.footprint)


def _is_there(run: Run, name: str) -> bool:
    """Whether a cache was made for this endpoint and nobody can have fetched it yet."""
    if run.cache_for(name) is None or not run.failures:
        return False
    return run.failures[-1].fate is Fate.NOT_SENT


def elsewhere(plan: Plan, endpoint: Endpoint, replica: str) -> int:
    """Prompt tokens that the other half is to compute; 0 where that doesn't pay, or doesn't do."""
    body = plan.body
    if body.get("n") not in (None, 1) or body.get("prompt_logprobs") is not None:
        return 0
    if not is_harmless(plan, endpoint):
        return 0
    lease = plan.admitted.lease
    if lease.replica == replica:
        return lease.elsewhere
    prompt = plan.classified.prompt_tokens
    return prompt if prompt >= int(endpoint.settings["prefill_least"]) else 0


def keeping(ask: Ask) -> Ask:
    """A request that has the prompt computed and its cache kept, and one token said."""
    body = {name: value for name, value in ask.body.items() if name not in _NOT_THEN}
    body |= {"stream": False, "max_tokens": 1}
    if "max_completion_tokens" in body:
        body["max_completion_tokens"] = 1
    return replace(ask, body=body, raw=anew(body), stream=False, transfer=KEEP)


def transfer_in(opened: OpenedStream | OpenedWhole) -> Mapping[str, object] | None:
    """Where an answer says that the cache of its prompt is; `None` when it says nothing of it."""
    if isinstance(opened, OpenedStream):
        return None
    found = orjson.loads(opened.frame.data).get("kv_transfer_params")
    return found if isinstance(found, dict) and found else None
