"""A router whose `fra` is looked up, and what is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from router.watch.discover import Discoverer
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built
from tests.router.scripted import Reply, Scripted, ScriptedTransport, answer, refused

URL = 'url: "http://fra1"'
FILE = "{file: fra.txt}"


class Names:
    """A resolver whose answers a test sets."""

    def __init__(self, *found: str) -> None:
        self.found: Sequence[str] = found
        self.down = False

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("fra.internal", 8000)
        if self.down:
            raise OSError(5, "no answer")
        return self.found


class Server(ScriptedTransport):
    """An API server."""

    def __init__(self, made: Reply | Exception) -> None:
        super().__init__(lambda host, number: answer())
        self.made = made

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        self.sent.append(request)
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


@asynccontextmanager
async def fleet(
    folder: Path,
    replicas: str,
    names: Names | None = None,
    server: Server | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
    more: str = "",
) -> AsyncIterator[tuple[Scripted, Discoverer]]:
    """A router whose `fra` is looked up, and its discoverer; the router's own finds nothing."""
    text = BASELINE.replace(URL, f"replicas: {replicas}{more}")
    files = Files(baseline=text, environment=environment)
    async with built(folder, lambda host, number: answer(), files) as world:
        assert world.router.watches is not None
        swap, live = world.router.watches.swap, world.router.live
        account = folder / "account"
        out = server or Server(refused())
        yield world, Discoverer(live, swap, out, environment, folder, names or Names(), account)


def keys(world: Scripted) -> list[str]:
    return list(world.router.live.snapshot.targets["fra"])
