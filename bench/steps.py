"""What each of the twelve steps costs, in process: `python -m bench steps [--batches 200]`.

The server's protocol is fed whole requests and its answers are dropped; the upstream answers at
once, at the transport's seam. Everything between is the product's own: parser, twelve steps,
durable log. Not in it: sockets, the kernel, the outbound connection; see `bench gateway`.

Each step's own running time is taken, without what runs while it waits. Batches of 64 requests
at once; the fifth percentile of the batches is shown, so that a busy machine changes little.
Clocks around every step cost about 2 us a request; `whole` is measured without them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import pstats
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import uvicorn
import uvloop
from uvicorn.server import ServerState

from bench import world
from bench.gateway import ANSWER
from bench.load import PATH, body
from router.app import Clocks, Router
from router.inbound.direct import Direct, direct
from router.metrics import STEPS
from router.pipeline import Pipeline, Steps
from router.settings.loading import load_snapshot, log_settings
from router.transport.messages import Headers, OutboundRequest, Timeouts

T = TypeVar("T")
LIVES = 64
WHOLE = json.dumps(ANSWER, separators=(",", ":")).encode()


class Answer:
    """An upstream's whole answer, here already."""

    __slots__ = ("_left",)
    status = 200
    headers: Headers = (
        (b"server", b"nginx"), (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(WHOLE)), (b"connection", b"keep-alive"),
    )  # fmt: skip

    def __init__(self) -> None:
        self._left: bytes = WHOLE

    async def chunk(self, until: float) -> bytes:
        data, self._left = self._left, b""
        return data

    def abort(self) -> None:
        self._left = b""


class Upstream:
    """The transport's seam: answers at once."""

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> Answer:
        return Answer()


class Wire:
    """A client's connection: what is written to it is dropped."""

    def __init__(self) -> None:
        self.bytes = 0

    def write(self, data: bytes) -> None:
        self.bytes += len(data)

    def get_extra_info(self, name: str) -> object:
        return None

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        raise SystemExit("the router closed the connection")

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Running:
    """Adds up how long an awaitable runs by itself."""

    __slots__ = ("_add", "_inner")

    def __init__(self, inner: Awaitable[T], add: Callable[[float], None]) -> None:
        self._inner: Awaitable[Any] = inner
        self._add = add

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._inner.__await__()
        clock = time.perf_counter
        while True:
            began = clock()
            try:
                waits = next(steps)
            except StopIteration as end:
                self._add(clock() - began)
                return end.value
            except BaseException:
                self._add(clock() - began)
                raise
            self._add(clock() - began)
            yield waits


class Timed:
    """Steps with a clock around each."""

    def __init__(self, steps: object) -> None:
        self._steps = steps
        self.spent = dict.fromkeys(STEPS, 0.0)
        for name in STEPS:
            setattr(self, name, self._around(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)

    def _around(self, name: str) -> Callable[..., Any]:
        inner = getattr(self._steps, name)
        spent, clock = self.spent, time.perf_counter

        def add(seconds: float) -> None:
            spent[name] += seconds

        @wraps(inner)
        async def awaited(*args: Any) -> Any:
            return await Running(inner(*args), add)

        @wraps(inner)
        def step(*args: Any) -> Any:
            began = clock()
            try:
                return inner(*args)
            finally:
                spent[name] += clock() - began

        return awaited if asyncio.iscoroutinefunction(getattr(Steps, name)) else step


class Client:
    """Connections that send one request after the other."""

    def __init__(self, router: Router) -> None:
        config = uvicorn.Config(cast(Any, router), http="httptools", log_config=None)
        self._done: dict[int, asyncio.Future[None]] = {}
        self._loop = asyncio.get_running_loop()
        client = self

        class Ending(direct(router)):  # type: ignore[misc]
            def on_response_complete(self) -> None:
                super().on_response_complete()
                client._done[id(self)].set_result(None)

        config.load()
        state = ServerState()
        state.default_headers = [(b"date", b"Sun, 29 Nov 2026 20:00:00 GMT")]
        self._doors = [self._opened(Ending, config, state) for _ in range(LIVES)]

    def _opened(self, kind: type[Direct], config: uvicorn.Config, state: ServerState) -> Direct:
        door = kind(config, server_state=state, app_state={})
        door.connection_made(cast(Any, Wire()))
        return door

    async def batch(self, requests: Sequence[bytes]) -> None:
        """One request on each connection."""
        waits = []
        for door, request in zip(self._doors, requests, strict=True):
            wait = self._done[id(door)] = self._loop.create_future()
            door.data_received(request)
            waits.append(wait)
        for wait in waits:
            await wait


def requests(tenants: int, bodies: int, projects: int) -> list[bytes]:
    """Requests as a client writes them; with many bodies no two in a batch are the same."""
    made = []
    for n in range(max(LIVES, bodies)):
        data = body(world.MODEL, note=f" {n % bodies}" if bodies > 1 else "")
        extra = f"x-domicile-attr-project: p{n % projects}\r\n" if projects else ""
        head = (
            f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {world.key(n % tenants)}\r\n{extra}"
            f"content-length: {len(data)}\r\n\r\n"
        )
        made.append(head.encode() + data)
    return made


def fifth(values: Sequence[float]) -> float:
    """The fifth percentile, in microseconds a request."""
    return sorted(values)[len(values) // 20] / LIVES * 1e6


async def measure(
    folder: Path, batches: int, shape: world.Shape, bodies: int, profile: bool
) -> None:
    """One shape of traffic: the whole, then by steps."""
    tenants = shape.tenants
    path = world.write(folder, shape, 1, "http://127.0.0.1:9")
    clocks = Clocks.real(os.urandom)
    snapshot = load_snapshot(path, {}, clocks.wall())
    settings = log_settings(snapshot.config, folder, {})
    router = await Router.open(snapshot, settings, clocks, cast(Any, Upstream()))
    client = Client(router)
    sent = requests(tenants, bodies, 100 if tenants > 1 else 0)
    turns = [[sent[(n * LIVES + at) % len(sent)] for at in range(LIVES)] for n in range(97)]

    async def run(after: Callable[[], None]) -> None:
        for n in range(batches):
            await client.batch(turns[n % len(turns)])
            after()

    await run(lambda: None)
    print(f"\n{tenants} tenants, {bodies} bodies, us per request of 64 at once")
    marks = [(time.thread_time(), time.process_time())]
    await run(lambda: marks.append((time.thread_time(), time.process_time())))
    loop = fifth([b[0] - a[0] for a, b in pairwise(marks)])
    every = fifth([b[1] - a[1] for a, b in pairwise(marks)])
    print(f"  whole, loop thread CPU {loop:8.1f}\n  whole, all threads CPU {every:8.1f}")
    if profile:
        await _profiled(run, batches)
    await _by_steps(router, run)
    await router.close(0)


async def _by_steps(router: Router, run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
    pipeline = router.pipeline
    timed = Timed(pipeline._steps)  # noqa: SLF001 - taken apart to be measured
    found: dict[str, list[float]] = {name: [] for name in STEPS}

    def take() -> None:
        for name in STEPS:
            found[name].append(timed.spent[name])
            timed.spent[name] = 0.0

    router.pipeline = Pipeline(cast(Any, timed), pipeline._observe)  # noqa: SLF001
    await run(take)
    parts = {name: fifth(values) for name, values in found.items()}
    for name, value in parts.items():
        print(f"  {name:14} {value:8.1f}")
    print(f"  all twelve     {sum(parts.values()):8.1f}")


async def _profiled(run: Callable[[Callable[[], None]], Awaitable[None]], batches: int) -> None:
    profile = cProfile.Profile()
    profile.enable()
    await run(lambda: None)
    profile.disable()
    count = batches * LIVES
    told = pstats.Stats(profile)
    rows = cast(Any, told).stats
    total = sum(row[1] for row in rows.values())
    print(f"  {total / count:.0f} calls per request; by own time, us with cProfile's own cost:")
    ordered = sorted(rows.items(), key=lambda one: -one[1][2])
    for (file, line, name), (_, calls, own, _, _) in ordered[:150]:
        at = f"{'/'.join(file.split('/')[-2:])}:{line} {name}"
        print(f"    {own / count * 1e6:7.2f} {calls / count:6.1f}x  {at}")


def main() -> None:
    parser = argparse.ArgumentParser("bench steps", description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--profile", action="store_true", help="function calls per request too")
    parser.add_argument("--warm-only", action="store_true", help="one tenant and one body only")
    parser.add_argument("--ungraded", action="store_true", help="no prompt is graded")
    given = parser.parse_args()
    print(f"{sys.version.split()[0]}; load averages {os.getloadavg()}")
    shapes = ((1, 1),) if given.warm_only else ((1, 1), (200, 997))
    for tenants, bodies in shapes:
        with tempfile.TemporaryDirectory() as folder:
            shape = world.Shape(tenants=tenants, graded=not given.ungraded)
            uvloop.run(measure(Path(folder), given.batches, shape, bodies, given.profile))


if __name__ == "__main__":
    main()
