"""Probes: free questions, and a canary where silence asks for one.

- `/health` of every replica of one's own, once a period, with the endpoint's credential and below
  its URL's path. What does not answer is marked before a request finds out, and stays marked.
- A canary is a real request for one token. It finds the engine that stands still behind a server
  that says 200. It is sent when an attempt has waited longer than is usual there, when nothing
  was heard for `QUIET` seconds, and to see whether a marked replica works again. On by default
  for replicas of one's own (`probe: off` or `probe: health` ends it); a managed API is asked only
  with `probe: canary`, because each answer costs.

Residency: a probe holds no byte of any client. Its prompt is a constant in this file, and it goes
to configured endpoints only, with the endpoint's own credential. So there is no decision for the
log to hold, and no boundary it could cross; a vetoed endpoint is not asked all the same. A canary
at a managed API is an `administration` entry with the provider's id of the call, once it has
ended, so that reconciliation doesn't take it for a call past the router.

Every mark is a lease of about two periods: if this loop dies, so do its marks.

Many may be gone at once, and questions cost the loop that serves clients: of those that are gone
`IN_TURN` are asked a period, each in its turn (with no more than that, all of them, each period),
and their marks last until then. When one is back, all are asked at once. A server that is gone
gets no canary until it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from math import ceil, inf
from typing import Final

import orjson

from regions.fleet import Reading, endpoint_of
from regions.footprints.base import PLAIN_CALL, footprint
from regions.health import Sign, Standing
from regions.model import Endpoint
from router.attempts.silence import Silence
from router.audit.entry import Entry, Json, microseconds
from router.audit.errors import AuditError
from router.live import Live
from router.providers.base import Ask
from router.providers.openai_compatible import beside
from router.transport.messages import (
    AnswerTimeout,
    AttemptFailed,
    ConnectFailed,
    NoRoomHere,
    OutboundRequest,
    OutboundResponse,
    Timeouts,
    Transport,
    read_body,
)
from router.watch.canary import judged
from router.watch.scrape import Replica, Scraper, own_replicas
from router.watch.verdicts import BAD, Verdict, by_status, unreached

HEALTH_TIME: Final = 1.0
LEASE: Final = 2.0
"""Seconds of a mark, or two periods if that is longer."""
LATE: Final = 1.5
"""Or so many times what is from one look to the next, if that is longest."""
QUIET: Final = 10.0
"""Seconds without content after which a replica of one's own is asked."""
PAID_QUIET: Final = 60.0
"""The same of a managed one."""
GRACE: Final = 0.35
"""Seconds above the usual before silence is suspected, and again for the canary's answer:
together less than twice the usual plus one second."""
PACE: Final = 0.001
"""Seconds for a token of a prompt: so slow may any engine be, up to twenty times as slow where that
was seen. Of 20,000 the first sign may come after 20 s: during a step of the engine nothing is
told, and a canary waits for the next."""
LARGEST: Final = 1 << 20
IN_TURN: Final = 32
"""Of the replicas that are gone, so many are asked a period; and so many canaries are under way
that nobody waits for."""
AT_ONCE: Final = 256
"""Replicas asked for their health at a time. One that swallows packets takes `HEALTH_TIME`, and is
marked the second time: of a lost region all are to be known before many requests found out."""
PROMPT: Final = "."
COUNTED: Final = "domicile_probes_total"
Read = Callable[[OutboundResponse, float], Awaitable[Verdict]]
"""An answer, read by a loop time, as what it says."""


@dataclass(slots=True)
class Prober:
    """Probes of one router; `look` and `listen` are one round each."""

    live: Live
    transport: Transport
    scraper: Scraper
    period: float
    _asked: dict[str, float] = field(default_factory=dict)
    _failed: dict[str, int] = field(default_factory=dict)
    _doubted: set[str] = field(default_factory=set)
    _gone: dict[str, None] = field(default_factory=dict)  # whoever was asked last stands last
    _back: bool = False
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _born: float | None = None
    _took: float = 0.0
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def _silence(self) -> Silence:
        return self.live.silence

    async def look(self) -> None:
        """Ask every replica of one's own for its health, those that are gone in turn."""
        snapshot = self.live.snapshot
        asked = [r for r in own_replicas(snapshot) if _wants(r.endpoint) and self._may(r)]
        began = self.live.loop_time()
        await asyncio.gather(*(self._health(replica) for replica in self._in_turn(asked)))
        self._took = self.live.loop_time() - began
        self._forget(snapshot.replica_keys)

    def _in_turn(self, replicas: list[Replica]) -> list[Replica]:
        """Whom to ask now: whoever isn't known to be gone, then those asked longest ago."""
        health, now = self.live.health, self.live.loop_time()
        # By the mark too: one that a client's answer or a sibling's has ended puts nobody off.
        gone = [k for k in self._gone if health.standing(k, now) is Standing.MARKED]
        by_key = {r.key: r for r in replicas}
        waiting = [by_key.pop(key) for key in gone if key in by_key]
        few = None if self._back else IN_TURN
        self._back = False
        return [*by_key.values(), *waiting[:few]]

    def _forget(self, keep: frozenset[str]) -> None:
        self._silence.forget(keep)
        self.live.balance.affinity.forget(keep)
        for known in (self._asked, self._failed, self._gone):
            for key in known.keys() - keep:
                del known[key]
        self._doubted &= keep
        for note in [n for n in self.live.notes if n.startswith("probe:")]:
            if note.removeprefix("probe:") not in keep:
                del self.live.notes[note]

    def _may(self, replica: Replica) -> bool:
        """Whether nothing vetoes the endpoint now."""
        snapshot, vetoes = self.live.snapshot, self.live.vetoes.current
        if not vetoes:
            return True
        where = footprint(replica.endpoint, PLAIN_CALL, snapshot.catalog, self.live.now())
        return vetoes.against(replica.endpoint.name, where, "") is None

    async def _health(self, replica: Replica) -> None:
        request = beside(replica.target, "/health")
        async with self._turns:
            began = self.live.loop_time()
            verdict = await self._sent(request, HEALTH_TIME)
        if verdict is Verdict.ALIVE:
            verdict = Verdict.REACHABLE  # the server; its engine may stand still
        elif verdict is Verdict.LATE:
            verdict = Verdict.BUSY if self._works(replica.key, began) else Verdict.DOWN
        self._learn(replica, verdict, "health")

    def _works(self, key: str, began: float) -> bool:
        """Whether an engine was heard of since its server was asked: long prompts can keep that
        from saying anything in time."""
        return max(self._silence.heard(key), self.live.readings.moved(key)) >= began

    def _learn(self, replica: Replica, verdict: Verdict, kind: str) -> None:
        """Mark what failed, twice in a row unless it is certain; tell why."""
        live, key = self.live, replica.key
        live.metrics.count(COUNTED, (replica.endpoint.name, kind, verdict.value))
        if verdict is Verdict.UNASKED:
            return
        # The next look begins a period after this one, which those that say nothing make long.
        lease = max(LEASE, 2 * self.period, LATE * (self.period + self._took))
        if verdict not in BAD:
            self._failed.pop(key, None)
            if kind == "health" and key in self._gone:
                del self._gone[key]
                self._back = True
            # What a server says does not clear its engine, where the engine can be asked.
            if kind == "canary" or not takes_canary(replica.endpoint):
                if key in self._doubted:  # its mark may be one that lasts until many had their turn
                    live.health.ease(key, live.loop_time(), lease)
                self._doubted.discard(key)
                live.notes.pop(f"probe:{key}", None)
            if verdict is Verdict.ABSENT:
                live.notes[f"probe:{key}"] = f"canary finds no `{replica.endpoint.model}` there"
            if verdict is Verdict.ALIVE:
                live.health.observe(key, Sign.OK, live.loop_time())
            return
        self._failed[key] = self._failed.get(key, 0) + 1
        certain = kind == "canary" or verdict in (Verdict.AUTH, Verdict.GONE)
        if certain or self._failed[key] > 1:
            self._doubted.add(key)
            if kind == "health":
                self._gone.pop(key, None)
                if verdict is not Verdict.AUTH:  # whose server answers: a canary tells more
                    self._gone[key] = None
            turns = ceil(len(self._doubted) / IN_TURN)  # periods until it is asked again
            live.health.mark(key, live.loop_time(), lease * turns)
            live.notes[f"probe:{key}"] = f"{kind} says {verdict.value}"

    async def _sent(self, request: OutboundRequest, seconds: float) -> Verdict:
        """Send a probe and judge what comes."""

        async def read(response: OutboundResponse, until: float) -> Verdict:
            await read_body(response, LARGEST, until)
            return by_status(response.status)

        return await self._answered(request, seconds, read)

    async def _answered(self, request: OutboundRequest, seconds: float, read: Read) -> Verdict:
        now = self.live.loop_time()
        try:
            response = await self.transport.send(request, Timeouts(now + seconds, seconds, seconds))
            return await read(response, now + seconds)
        except ConnectFailed as error:
            return unreached(error)
        except AttemptFailed as error:
            ours = isinstance(error, NoRoomHere) or error.code == "aborted"
            late = Verdict.LATE if isinstance(error, AnswerTimeout) else Verdict.DOWN
            return Verdict.UNASKED if ours else late

    # ----------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Send a canary wherever there is reason to; they run on while this returns."""
        suspects = set(self._silence.suspects(GRACE, self._pace))
        due = sorted(self._due(suspects), key=lambda r: self._asked.get(r.key, -inf))
        for replica in due:
            # Clients wait for what a suspect says; for the others nobody does.
            if replica.key in suspects or len(self._running) < IN_TURN:
                self._begin(replica, self._canary)
        for replica in self._hurt():
            self._begin(replica, self._health)

    def _begin(
        self, replica: Replica, ask: Callable[[Replica], Coroutine[None, None, None]]
    ) -> None:
        if replica.key not in self._running and self._may(replica):
            self._asked[replica.key] = self.live.loop_time()
            task = asyncio.create_task(ask(replica))
            self._running[replica.key] = task
            task.add_done_callback(partial(self._ended, replica.key))

    def _hurt(self) -> Iterator[Replica]:
        """Just marked by a request: when its server is gone, the mark must not end first."""
        now = self.live.loop_time()
        for replica in own_replicas(self.live.snapshot):
            key = replica.key
            marked = self.live.health.standing(key, now) is Standing.MARKED
            rested = now - self._asked.get(key, -inf) > self.period / 2
            if marked and rested and key not in self._doubted and _wants(replica.endpoint):
                yield replica

    def _ended(self, key: str, task: asyncio.Task[None]) -> None:
        self._running.pop(key, None)
        if not task.cancelled() and task.exception() is not None:
            self.live.notes[f"probe:{key}"] = type(task.exception()).__name__

    def _due(self, suspects: set[str]) -> Iterator[Replica]:
        now = self.live.loop_time()
        self._born = now if self._born is None else self._born
        for replica in self._canaries():
            key = replica.key
            since = now - max(self._silence.heard(key), self._asked.get(key, self._born))
            quiet = QUIET if replica.endpoint.self_operated else PAID_QUIET
            # What a probe marked, a probe looks at again; else a client's request would have to.
            again = key in self._doubted and now - self._asked.get(key, -inf) > self.period
            if key in suspects or ((again or since > quiet) and key not in self._gone):
                yield replica

    def _canaries(self) -> Iterator[Replica]:
        snapshot = self.live.snapshot
        for name, replicas in snapshot.targets.items():
            endpoint = snapshot.policy.endpoints[name]
            if takes_canary(endpoint):
                yield from (Replica(endpoint, key, target) for key, target in replicas.items())

    async def _canary(self, replica: Replica) -> None:
        """Ask for one token. Late is not dead: an engine whose counters move is busy."""
        key, waits = replica.key, False
        patience = self._silence.quickest(key) + GRACE
        before = asyncio.create_task(self._progress(replica, patience))
        try:
            verdict = await self._asked_for_one(replica, patience)
            if verdict in (Verdict.DOWN, Verdict.LATE):
                told = await before
                if await self._moves(replica, told):
                    verdict = Verdict.BUSY
                elif verdict is Verdict.LATE and self._silence.computes(key, self._pace(key)):
                    # What it computes is not lost; but who was silent before stays marked.
                    found, waits = key in self._doubted, True
                    verdict = Verdict.DOWN if found else Verdict.UNKNOWN
                elif verdict is Verdict.LATE:
                    verdict, waits = Verdict.DOWN, self._one_by_one(replica, told)
        finally:
            before.cancel()
        self._learn(replica, verdict, "canary")
        if verdict in BAD - {Verdict.AUTH} and not waits:
            self._silence.end(key)

    def _pace(self, key: str) -> float:
        """Seconds that an engine may take for a token of a prompt, and not stand still."""
        learned = self.live.balance.paces.line(endpoint_of(key)).pace
        return max(PACE, min(2 * learned, 20 * PACE))

    def _one_by_one(self, replica: Replica, told: Reading | None) -> bool:
        """Whether a canary may wait behind a request of ours, as at servers of one slot.

        Nobody can tell that from standing still where an engine tells no counters, and was not seen
        to compute several at once. Others are asked first, and what it computes is not lost.
        """
        key, silence = replica.key, self._silence
        tells = told is not None and told.progress is not None
        if tells or self.live.readings.moved(key) > -inf or silence.several(key):
            return False
        return replica.endpoint.self_operated and self.live.inflight.requests(key) > 0

    async def _asked_for_one(self, replica: Replica, seconds: float) -> Verdict:
        live, endpoint = self.live, replica.endpoint
        provider = live.snapshot.provider(endpoint)
        now = live.wall_time()
        try:
            target = live.roles.filled(endpoint, replica.target, now)
            ask = question(endpoint, now)
            request = provider.encode(ask, endpoint, target, now)
        except AttemptFailed:
            return Verdict.UNKNOWN
        began, call = live.stamp(), None

        async def read(response: OutboundResponse, until: float) -> Verdict:
            nonlocal call
            call = provider.call_id(response.headers)
            return await judged(provider, ask, endpoint, response, until, live.loop_time)

        verdict = await self._answered(request, seconds, read)
        if not endpoint.self_operated:
            self._record(endpoint, call, verdict, began)
        return verdict

    def _record(self, endpoint: Endpoint, call: str | None, verdict: Verdict, began: float) -> None:
        """Put a canary that costs into the log; the log's failures stand in its health."""
        live = self.live
        where = footprint(endpoint, PLAIN_CALL, live.snapshot.catalog, live.now())
        body: dict[str, Json] = {
            "event": "canary",
            "endpoint": endpoint.name,
            "snapshot": live.snapshot.digest,
            "process": list(where.process.ids),
            "began": microseconds(began),
            "result": "ok" if verdict is Verdict.ALIVE else "unknown",
        }
        if call is not None:
            body["call"] = call
        try:
            live.log.note(Entry("administration", "", live.stamp(), body))
        except AuditError:
            live.metrics.count("domicile_log_failures_total")

    async def _moves(self, replica: Replica, before: Reading | None) -> bool:
        after = await self._progress(replica, GRACE / 2)
        if before is None or after is None or before.progress is None:
            return False
        return after.progress != before.progress

    async def _progress(self, replica: Replica, seconds: float) -> Reading | None:
        if not replica.endpoint.self_operated:
            return None
        return await self.scraper.read(replica, seconds)

    async def close(self) -> None:
        """Stop the canaries."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def question(endpoint: Endpoint, now: float) -> Ask:
    """A constant prompt, one token: nothing in it is any client's."""
    body: dict[str, object] = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": 1,
    }
    raw = orjson.dumps(body)
    return Ask("chat.completions", body, raw, False, endpoint.model, "probe", "", int(now))


def takes_canary(endpoint: Endpoint) -> bool:
    """Whether an endpoint is asked for tokens: one's own unless told not to, others if told to."""
    if "chat.completions" not in endpoint.surfaces:
        return False
    return endpoint.settings.get("probe", "canary" if endpoint.self_operated else "off") == "canary"


def _wants(endpoint: Endpoint) -> bool:
    return endpoint.settings.get("probe", "canary") != "off"
