"""The composition root: every part made once, in order, and put together here."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from regions.health import HealthBook
from regions.model import Endpoint
from router.admission import Concurrency
from router.attempts.hedging import Hedges
from router.attempts.prefilling import Prefills
from router.attempts.retrying import Retries
from router.audit.anchors.keeper import AnchorKeeper, Publish
from router.audit.entry import Entry
from router.audit.errors import AuditError
from router.audit.log import AuditLog
from router.audit.settings import LogSettings
from router.capacity.load import Held, InFlight
from router.capacity.placing import Placed, Placing
from router.capacity.quotas import Quotas
from router.capacity.ranking import Ranking, trail_of
from router.decisions.classifying import Suites
from router.dispatch import Dispatcher
from router.eligible import Filter
from router.entries.anchoring import Anchoring
from router.entries.records import Scribe
from router.errors import RequestError
from router.ids import Ids
from router.inbound.deadlines import HEADER as DEADLINE
from router.inbound.deadlines import seconds_for
from router.inbound.exchange import AsgiExchange, Exchange
from router.inbound.idempotency import Idempotency
from router.live import Live
from router.metrics import Metrics
from router.narrowing.vetoes import VetoBoard
from router.pipeline import Observed, Pipeline
from router.settings.reload import Source
from router.snapshot import Snapshot
from router.state.answers import MemoryAnswers
from router.state.ledger import Ledger
from router.state.memory import MemoryLedger
from router.state.spending import Spending
from router.steps import TwelveSteps
from router.surfaces.base import Surface
from router.surfaces.chat import ChatCompletions
from router.surfaces.errors import send_error
from router.tiers.cascading import Cascade
from router.tiers.grading import Graders
from router.tiers.shadow import ShadowLane
from router.transport.client import HttpTransport
from router.transport.messages import Transport
from router.types import Candidacy, Plan, Purpose, make_arrival
from router.waiting import WaitingRoom
from router.watch.start import Watches

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

SURFACES: Final[tuple[Surface, ...]] = (ChatCompletions(),)
TICK: Final = 5.0
BUILDING: Final = threading.Lock()
"""One thread at a time builds with FastAPI, which hides warnings of all meanwhile."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The two clocks and the randomness of a process, injected everywhere.

    `wall` gives seconds since the epoch, `loop` monotonic seconds, `entropy(n)` n bytes;
    `sleep` is what the watches wait with.
    """

    wall: Callable[[], float]
    loop: Callable[[], float]
    entropy: Callable[[int], bytes]
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def random(self) -> float:
        """A number from 0 to 1."""
        return int.from_bytes(self.entropy(4)) / 0xFFFFFFFF

    @classmethod
    def real(cls, entropy: Callable[[int], bytes]) -> Clocks:
        """The machine's."""
        return cls(time.time, asyncio.get_running_loop().time, entropy)


class Router:
    """One running router: its ASGI application, and what must be closed at the end."""

    def __init__(
        self, live: Live, steps: TwelveSteps, transport: Transport, clocks: Clocks
    ) -> None:
        self.live = live
        self.transport = transport
        self.filtering = steps.filtering
        self.idempotency = steps.idempotency
        self.pipeline = Pipeline(steps, _observer(live))
        live.replaced.append(steps.forget)
        self.lane = steps.lane
        self.lane.begin(self.pipeline.run)
        self._clocks = clocks
        self._ids = Ids(clocks.wall, clocks.entropy)
        self._surfaces = {surface.path: surface for surface in SURFACES}
        self._routes = {
            surface.path.encode(): partial(self._infer, surface) for surface in SURFACES
        }
        self._public: asyncio.Task[Asgi] | None = None
        self.watches: Watches | None = None
        self._open: set[asyncio.Task[object]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self.hurry = asyncio.Event()
        keeper = live.anchors or AnchorKeeper({}, clocks.wall)
        self._anchoring = Anchoring(keeper, clocks.loop)

    @classmethod
    async def open(
        cls,
        snapshot: Snapshot,
        log: LogSettings,
        clocks: Clocks,
        transport: Transport | None = None,
        source: Source | None = None,
        ledger: Ledger | None = None,
        anchors: Mapping[str, Publish] | None = None,
        spending: Spending | None = None,
    ) -> Router:
        """Open the log (recovering what a crash left), store the snapshot, be ready.

        With a `source` its files are watched, and a change that passes every check is served.
        `ledger` counts the tenants' limits, `spending` the burst budgets; without one they are
        counted in this process.
        `anchors` take every published checkpoint (see `router.entries.anchoring`).

        Raises:
            AuditError: the log can't be opened: nothing may be served without it.
        """
        audit = await AuditLog.open(log, clock=clocks.wall, entropy=clocks.entropy)
        try:
            await snapshot.keep(audit)
        except BaseException:
            await audit.close()
            raise
        limits = snapshot.config.router.limits
        live = Live(
            snapshot,
            audit,
            log.log_id,
            Metrics(),
            HealthBook(),
            InFlight(),
            Concurrency(limits.concurrency),
            ledger or MemoryLedger(clocks.loop),
            VetoBoard(),
            clocks.wall,
            clocks.loop,
            anchors=AnchorKeeper(anchors or {}, clocks.wall),
            chance=Random(clocks.entropy(16)).random,
            spending=spending,
        )
        out = transport or HttpTransport()
        router = cls(live, _steps(live, out, clocks), out, clocks)
        try:
            router.watches = await Watches.begin(live, out, log, clocks, source)
        except BaseException:
            await audit.close()
            raise
        router._ticking = asyncio.create_task(router._tick())
        return router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Inference goes to the pipeline, everything else to FastAPI."""
        surface = self._surfaces.get(scope["path"]) if scope["type"] == "http" else None
        if surface is None:
            await self._others(scope, receive, send)
            return
        exchange = AsgiExchange(scope, receive, send)
        try:
            await self._infer(surface, exchange, scope["method"])
        finally:
            exchange.close()

    def route(self, path: bytes) -> Callable[[Exchange, str], Awaitable[None]] | None:
        """Who answers a raw path without ASGI; see `router.inbound.direct`."""
        return self._routes.get(path)

    async def _infer(self, surface: Surface, exchange: Exchange, method: str) -> None:
        now, live = self._clocks.loop(), self.live
        refused = self._at_the_door(method) if method != "POST" or live.draining else None
        longest, said = live.snapshot.config.router.limits.deadline, exchange.head.get(DEADLINE)
        if said is not None:
            try:
                longest = seconds_for(said, longest)
            except RequestError as error:
                refused = refused or error
        arrival = make_arrival(
            exchange,
            self._ids(),
            self.live.stamp(),
            now,
            now + longest,
            surface,
            Purpose.INTERACTIVE,
            self.live.snapshot,
        )
        if refused is not None:
            await send_error(arrival, refused, None)
            return
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
        try:
            await self.pipeline.run(arrival)
        except Exception as error:  # noqa: BLE001 - the last resort: typed, counted, no details
            self.live.metrics.count("domicile_requests_total", (surface.name, "internal"))
            self.live.notes["internal"] = type(error).__name__
            await send_error(arrival, RequestError("internal", "something went wrong here"), None)
        finally:
            if task is not None:
                self._open.discard(task)

    def _at_the_door(self, method: str) -> RequestError | None:
        if method != "POST":
            return RequestError("method_not_allowed", "use POST", headers={"allow": "POST"})
        if self.live.draining:
            return RequestError("shutting_down", "this router is stopping", retry_after=1.0)
        return None

    async def _others(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._public is None:  # beside the loop: inference needs none of it
            self._public = asyncio.create_task(asyncio.to_thread(_others, self.live))
        try:
            others = await asyncio.shield(self._public)
        except Exception:
            self._public = None  # what was missing, as memory, may be there for the next one
            raise
        try:
            await others(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - answered already; its words may be a client's
            self.live.notes["internal"] = type(error).__name__

    async def _tick(self) -> None:
        """Heartbeats of the log; the log itself says when one is due."""
        while True:
            await asyncio.sleep(TICK)
            try:
                self._anchoring.tick(await self.live.log.tick())
                self.live.notes.pop("heartbeat", None)
            except Exception as error:  # noqa: BLE001 - shown in status; requests fail closed
                self.live.notes["heartbeat"] = type(error).__name__

    async def close(self, drain: float | None = None) -> None:
        """Let open requests end within `drain` seconds, then close log and connections.

        `hurry` set meanwhile ends the wait.
        """
        self.live.draining = True
        limit = self.live.snapshot.config.router.limits.drain if drain is None else drain
        if self._open:
            await self._ended(limit)
        for task in self._open:
            task.cancel()
        if self._open:
            await asyncio.wait(self._open, timeout=1.0)
        await self.lane.close()
        if self._ticking is not None:
            self._ticking.cancel()
        if self.watches is not None:
            await self.watches.close()
        stores = self.live.ledger, self.live.bursts.spending, self.idempotency.store
        await asyncio.gather(*(one.close() for one in stores))
        await self.live.log.close()
        await self._anchoring.close(self.live.log.head)
        if isinstance(self.transport, HttpTransport):
            await self.transport.close()

    async def _ended(self, limit: float) -> None:
        """Open requests have ended, `limit` seconds are over, or somebody is in a hurry."""
        hurry = asyncio.ensure_future(self.hurry.wait())
        ended = asyncio.ensure_future(asyncio.wait(self._open))
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait((hurry, ended), timeout=limit, return_when=first)
        finally:
            hurry.cancel()
            ended.cancel()


def _others(live: Live) -> Asgi:
    with BUILDING:
        from router import public  # FastAPI, which costs half a second

        return public.build(live)


def _steps(live: Live, transport: Transport, clocks: Clocks) -> TwelveSteps:
    config = live.snapshot.config.router
    scribe = Scribe(config.id, config.region, live.log.openings)
    budget, graders = Retries(), graders_of(live)

    async def record(plan: Plan, candidacy: Candidacy, number: int) -> object:
        return await live.log.record(scribe.attempt(plan, candidacy, number, live.stamp()))

    balance = live.balance

    def choose(plan: Plan, half: Endpoint, prompt: int) -> Held | None:
        single = len(live.snapshot.targets.get(half.name, ())) < 2
        path = None if single else trail_of(plan.ranked.filtered)
        return balance.reserve(half.name, prompt, path, prompt)

    room: WaitingRoom[Placed] = WaitingRoom(live.loop_time, config.limits.waiting)
    live.inflight.on_leave, live.waiting = room.wake, room.lines

    def bounded() -> None:
        room.bound = live.snapshot.config.router.limits.waiting
        room.wake()  # before anybody waits by the new policy, and stands before those of the old

    live.replaced.append(bounded)
    dispatcher = Dispatcher(
        transport,
        live.health,
        live.inflight,
        live.vetoes,
        budget,
        live.roles,
        live.silence,
        Hedges(live.silence),
        Prefills(choose, balance.in_turn, live.inflight, live.health, live.loop_time),
        live.bursts,
        balance.in_turn,
        record,
        live.loop_time,
        live.wall_time,
        live.stamp,
        Cascade(live.metrics, live.loop_time).doubts,
        lambda: live.snapshot,
    )
    return TwelveSteps(
        live.log,
        scribe,
        dispatcher,
        Filter({}),
        Suites(live.loop_time),
        graders,
        ShadowLane(live, graders, clocks.random, Ids(clocks.wall, clocks.entropy)),
        live.concurrency,
        Quotas(live.ledger, live.loop_time, live.metrics),
        live.metrics,
        Ranking(Placing(balance, room), live.bursts),
        live.wall_time,
        live.loop_time,
        _idempotency(live),
    )


def _idempotency(live: Live) -> Idempotency:
    """Keys of one process; `serve` puts the store in that its configuration names."""
    config = live.snapshot.config
    section = config.idempotency
    region = config.router.region if config.state is None else config.state.region
    store = MemoryAnswers(live.loop_time, section.window, section.keys, section.answers)
    return Idempotency(
        store, region, section.largest, section.window, live.stamp, live.loop_time, live.vetoes
    )


def graders_of(live: Live) -> Graders:
    """What grades this router's requests, telling its log and its status."""

    def tell(entry: Entry) -> None:
        try:
            live.log.note(entry)
        except AuditError:
            live.metrics.count("domicile_log_failures_total")

    return Graders(live.metrics, live.loop_time, live.stamp, tell, live.notes, live.audits)


def _observer(live: Live) -> Callable[[Observed], None]:
    def observe(observed: Observed) -> None:
        surface = observed.arrival.surface.name
        live.metrics.count("domicile_requests_total", (surface, observed.code))
        seconds = live.loop_time() - observed.arrival.began
        live.metrics.time("domicile_request_seconds", seconds, (surface,))
        if observed.attempts > 1 and observed.code == "ok":
            live.metrics.count("domicile_failovers_total")

    return observe
