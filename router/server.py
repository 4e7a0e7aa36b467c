"""Listening: the public and the admin socket, signals, draining."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import uvicorn

from router import admin
from router.app import Asgi, Clocks, Router
from router.config import ConfigError
from router.direct import Inference, direct
from router.door import Door
from router.outcome_store import OutcomeStore
from router.reload import Source
from router.reload_files import fingerprint
from router.transport.client import HttpTransport
from router.transport.messages import Transport
from router.watch.start import Watches

KEEP_ALIVE = 75


def bind(address: tuple[str, int], what: str) -> socket.socket:
    """A listening socket.

    Raises:
        ConfigError: the address can't be bound; says what to change.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    # With the protocol named, asyncio turns Nagle off on every accepted connection.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind(address)
    except OSError as error:
        found.close()
        shown = f"{address[0]}:{address[1]}"
        raise ConfigError(
            f"can't listen on `{shown}`: {error.strerror}; change `router.{what}`"
        ) from None
    found.listen(2048)
    return found


class Listener(uvicorn.Server):
    """A server without signal handling of its own: the router drains first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signals alone."""
        yield


def listener(app: Asgi, inference: Inference | None = None) -> Listener:
    """A server for one of the sockets; `inference` takes its routes off the ASGI way."""
    config = uvicorn.Config(
        app,
        loop="none",
        http=Door if inference is None else direct(inference),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE,
    )
    return Listener(config)


class Serving:
    """A router behind its two sockets."""

    def __init__(self, router: Router, public: socket.socket, private: socket.socket) -> None:
        self.router = router
        self._public = listener(router, router)
        self._private = listener(admin.build(router.live, router.watches))
        self._sockets = ((self._public, public), (self._private, private))
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Begin to answer."""
        for server, found in self._sockets:
            self._tasks.append(asyncio.create_task(_serve(server, found)))
        while not all(server.started for server, _ in self._sockets):
            await asyncio.sleep(0.005)
            for task in self._tasks:
                if task.done():
                    task.result()

    async def stop(self, drain: float | None = None) -> None:
        """Refuse new requests, let open ones end, then close everything."""
        await self.router.close(drain)
        for server, _ in self._sockets:
            server.should_exit = True
            server.force_exit = True
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _serve(server: uvicorn.Server, found: socket.socket) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await server.serve([found])


async def serve(
    path: Path, environment: Mapping[str, str], transport: Transport | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    Raises:
        ConfigError, DocumentErrors, AuditError: it can't start; says why.
    """
    from router.anchoring import publishers
    from router.loading import load_snapshot, log_settings
    from router.state.opening import open_ledger

    clocks = Clocks.real(os.urandom)
    source = Source(path, environment, fingerprint(path))
    snapshot = load_snapshot(path, environment, clocks.wall())
    settings = log_settings(snapshot.config, path.parent, environment)
    ledger = open_ledger(snapshot.config, environment, path.parent, clocks.loop)
    out = transport or HttpTransport()
    both = (clocks.wall, clocks.loop)
    section = snapshot.config.log.anchor
    anchors = publishers(section, settings, out, both, environment, path.parent)
    router = await Router.open(snapshot, settings, clocks, out, source, ledger, anchors)
    listening, outcomes = snapshot.config.router, snapshot.config.grading.outcomes
    try:
        if outcomes is not None:
            name = f"{settings.log_id}.jsonl"
            router.lane.restore(OutcomeStore(path.parent / outcomes / name))
        public = bind(listening.listen, "listen")
        private = bind(listening.admin, "admin")
    except (ConfigError, OSError):
        await router.close(0)
        raise
    serving = Serving(router, public, private)
    stop = asyncio.Event()
    with _signals(stop, router.watches):
        await serving.start()
        await stop.wait()
        await serving.stop()


@contextlib.contextmanager
def _signals(stop: asyncio.Event, watches: Watches | None) -> Iterator[None]:
    """SIGTERM and SIGINT stop, SIGHUP looks at the files now."""
    loop = asyncio.get_running_loop()
    for one in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(one, stop.set)
    if watches is not None:
        loop.add_signal_handler(signal.SIGHUP, watches.look_at_files)
    try:
        yield
    finally:
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.remove_signal_handler(one)
