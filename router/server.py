"""Listening: the public and the admin socket, signals, draining."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import uvicorn

from router.app import BUILDING, Asgi, Clocks, Receive, Router, Scope, Send
from router.audit.settings import LogSettings
from router.config import ConfigError
from router.inbound.backlog import Backlog
from router.inbound.direct import direct
from router.inbound.door import Door
from router.inbound.exchange import Inference
from router.pages import gather
from router.settings.reload import Source
from router.settings.reload_files import fingerprint
from router.snapshot import Snapshot
from router.tiers.outcome_store import OutcomeStore, of_router
from router.transport.client import HttpTransport
from router.transport.messages import Transport

KEEP_ALIVE = 75
YOUNG = 20_000
"""Objects made beyond those gone, between looks for cycles."""


KEEPALIVE: Final = (
    ("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 90_000),
)  # fmt: skip
"""Seconds of silence before a client is asked for a sign of life, between asking, and how often;
milliseconds in which it takes nothing of what is there for it, until it is cut off."""


def bind(
    address: tuple[str, int], what: str, shared: bool = False, listens: bool = True
) -> socket.socket:
    """A listening socket; a `shared` one lets others of this user listen on the same address. One
    that does not listen keeps the address alone: nobody waits there.

    Raises:
        ConfigError: the address can't be bound; says what to change.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # With the protocol named, asyncio turns Nagle off on every accepted connection.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Accepted connections inherit it: a client that is gone without a word is found.
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        if hasattr(socket, name):
            found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if shared:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        found.bind(address)
    except OSError as error:
        found.close()
        shown = f"{address[0]}:{address[1]}"
        raise ConfigError(
            f"can't listen on `{shown}`: {error.strerror}; change `router.{what}`"
        ) from None
    if listens:
        found.listen(2048)
    return found


class Listener(uvicorn.Server):
    """A server without signal handling of its own: the router drains first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signals alone."""
        yield


def listener(
    app: Asgi, inference: Inference | None = None, backlog: Backlog | None = None
) -> Listener:
    """A server for one of the sockets; `inference` takes its routes off the ASGI way."""
    config = uvicorn.Config(
        _heads(app),
        loop="none",
        http=Door if inference is None else direct(inference, backlog),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",  # else each connection is told twice to a log that drops it
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return Listener(config)


def _heads(app: Asgi) -> Asgi:
    """Answer HEAD as GET, of which uvicorn then leaves out the body: FastAPI's routes refuse it,
    and monitors and load balancers ask so whether a server is well."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") == "HEAD":
            scope = {**scope, "method": "GET"}
        await app(scope, receive, send)

    return answered


class Serving:
    """A router behind its two sockets."""

    def __init__(
        self, router: Router, public: socket.socket, private: socket.socket | None
    ) -> None:
        self.router = router
        self._public, self._private = public, private
        self._servers: list[Listener] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to answer: the public listener at once, the admin listener when what it needs is
        there. FastAPI is a third of a start, and no request for inference waits for it; who
        connects to the admin listener meanwhile is answered then."""
        front = listener(self.router, self.router, Backlog(self._public))
        await self._begin(front, self._public)
        if self._private is not None:
            built = await asyncio.to_thread(_admin, self.router)
            gc.freeze()  # what has come since `rest_easy`
            await self._begin(listener(built), self._private)

    async def _begin(self, server: Listener, found: socket.socket) -> None:
        self._servers.append(server)
        task = asyncio.create_task(_serve(server, found))
        self._tasks.append(task)
        while not server.started:
            await asyncio.sleep(0.005)
            if task.done():
                task.result()

    async def stop(self, drain: float | None = None) -> None:
        """Refuse new requests, let open ones end, then close everything."""
        await self.router.close(drain)
        for server in self._servers:
            server.should_exit = True
            server.force_exit = True
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _admin(router: Router) -> Asgi:
    with BUILDING:
        from router import admin

        return admin.build(router.live, router.watches)


async def _serve(server: uvicorn.Server, found: socket.socket) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await server.serve([found])


async def opened(
    source: Source,
    snapshot: Snapshot,
    settings: LogSettings,
    workers: int = 1,
    transport: Transport | None = None,
) -> Router:
    """The router of a snapshot, with its ledger, its anchors, and what it measured before.

    Args:
        workers: how many share the limits.

    Raises:
        ConfigError, AuditError: it can't start; says why.
    """
    from router.entries.anchoring import publishers
    from router.settings.handover import worker_log
    from router.state.opening import open_answers, open_ledger, open_spending

    config, environment, base = snapshot.config, source.environment, source.path.parent
    clocks = Clocks.real(os.urandom)
    ledger = open_ledger(config, environment, base, clocks.loop, workers)
    answers = open_answers(config, environment, base, clocks.loop, workers)
    out = transport or HttpTransport()
    both = (clocks.wall, clocks.loop)
    spending = open_spending(config, environment, base, both, os.urandom(8).hex(), workers)
    anchors = publishers(config.log.anchor, settings, out, both, environment, base)
    router = await Router.open(snapshot, settings, clocks, out, source, ledger, anchors, spending)
    router.live.concurrency.share = 1 / workers
    router.idempotency.store = answers
    outcomes = config.grading.outcomes
    try:
        if outcomes is not None:
            name = config.router.id
            used = [name] if workers == 1 else [worker_log(name, n + 1) for n in range(workers)]
            own = OutcomeStore(base / outcomes / f"{settings.log_id}.jsonl")
            others, gone = of_router(base / outcomes, name, used)
            router.lane.restore(own, others, gone)
    except (ConfigError, OSError):
        await router.close(0)
        raise
    rest_easy()
    return router


def rest_easy() -> None:
    """Let the collector of cycles leave alone what was loaded, and look less often at the rest;
    and put what was loaded in large pages.

    Requests make no cycles, but their values are many: it looked through all of a catalog and a
    policy again and again, for a twelfth of the CPU time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)
    gather()


async def serve(
    path: Path,
    environment: Mapping[str, str],
    transport: Transport | None = None,
    workers: int | None = None,
    begun: Callable[[], None] = lambda: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second one ends what is still open.

    Args:
        workers: instead of the file's `router.workers`. More than one run under a supervisor.
        begun: called once requests are taken, by every worker and at the admin listener.

    Raises:
        ConfigError, DocumentErrors, AuditError: it can't start; says why.
    """
    from router.settings.handover import hand_over
    from router.settings.loading import load_snapshot, log_settings
    from router.settings.starting import no_folder

    source = Source(path, environment, fingerprint(path))
    snapshot = load_snapshot(path, environment, time.time())
    settings = log_settings(snapshot.config, path.parent, environment)
    if why := no_folder(settings.dir):
        raise ConfigError(f"`log.dir`: {why}")
    count = snapshot.config.router.workers if workers is None else workers
    if count > 1:
        from router.supervisor.supervise import supervise

        await supervise(source, snapshot, settings, count, begun)
        return
    await hand_over(settings, snapshot.config.router.id, (settings.log_id,))
    router = await opened(source, snapshot, settings, transport=transport)
    listening = snapshot.config.router
    try:
        public = bind(listening.listen, "listen")
        private = bind(listening.admin, "admin")
    except (ConfigError, OSError):
        await router.close(0)
        raise
    serving = Serving(router, public, private)
    look = None if router.watches is None else router.watches.look_at_files
    stop = asyncio.Event()
    with signals(stop, router.hurry, look):
        starting = asyncio.create_task(serving.start())
        asked = asyncio.create_task(stop.wait())
        try:
            # Who is told to stop does not wait for what is still being built.
            await asyncio.wait((starting, asked), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                begun()
                await asked
        finally:
            starting.cancel()
            await serving.stop()


@contextlib.contextmanager
def signals(
    stop: asyncio.Event, hurry: asyncio.Event, look: Callable[[], None] | None
) -> Iterator[None]:
    """SIGTERM and SIGINT stop, a second one is in a `hurry`; SIGHUP looks at the files now."""
    loop = asyncio.get_running_loop()

    def asked() -> None:
        (hurry if stop.is_set() else stop).set()

    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, asked)
    if look is not None:
        loop.add_signal_handler(signal.SIGHUP, look)
    try:
        yield
    finally:
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(one)
