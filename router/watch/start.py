"""Everything that watches, made and started for one router."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from router.audit.disk import LocalDisk
from router.audit.settings import LogSettings
from router.config import WatchSection
from router.live import Live
from router.narrowing.authority import Beside
from router.narrowing.operator import new_token, token_path
from router.narrowing.quarantine import Quarantine
from router.narrowing.veto_file import VetoFile
from router.settings.credentials import INSTANCE_ROLE
from router.settings.members import looked_up
from router.settings.reload import Reloader, Source
from router.settings.swap import Swap
from router.snapshot import Snapshot
from router.transport.messages import Transport
from router.transport.names import Addresses
from router.watch.bedrock_reader import BedrockReader
from router.watch.discover import Discoverer
from router.watch.drift import DriftWatch
from router.watch.loops import Loop, Loops
from router.watch.peers import PeerWatch
from router.watch.probe import Prober
from router.watch.renewal import Fetched, NoRole, RoleWatch
from router.watch.scrape import Scraper

LOOK_AT_FILES: Final = 5.0
LOOK_AT_PROFILES: Final = 900.0
LOOK_AT_ROLE: Final = 20.0
LISTEN: Final = 0.1
LOOK_AT_SEGMENTS: Final = 60.0
LOOK_AT_SINKS: Final = 2.0
LOOK_AT_PEERS: Final = 60.0


class Waiting(Protocol):
    """What loops wait with; see `router.app.Clocks`."""

    @property
    def sleep(self) -> Callable[[float], Awaitable[object]]:
        """Waits so many seconds."""
        ...

    @property
    def entropy(self) -> Callable[[int], bytes]:
        """So many random bytes."""
        ...

    def random(self) -> float:
        """A number from 0 to 1."""
        ...


class Watches:
    """The loops of one router, and what the admin listener asks of them."""

    def __init__(
        self,
        quarantine: Quarantine,
        swap: Swap,
        drift: DriftWatch,
        reloader: Reloader | None,
        loops: Loops,
        token: str,
        prober: Prober,
    ) -> None:
        self.drift = drift
        self.token = token
        self.quarantine = quarantine
        self.swap = swap
        self.reloader = reloader
        self._loops = loops
        self._prober = prober
        self._loaded: Callable[[], Awaitable[None]] = drift.settle
        self._asked: set[asyncio.Task[None]] = set()

    @classmethod
    async def begin(
        cls,
        live: Live,
        transport: Transport,
        log: LogSettings,
        clocks: Waiting,
        source: Source | None,
    ) -> Watches:
        """Put in force what was in force before, then start every loop.

        Raises:
            AuditError: the vetoes of before can't be read, or can't be put in force.
            ConfigError: those whose signatures were needed before did not sign.
        """
        file = VetoFile.open(log.dir, log.log_id, LocalDisk())
        router = live.snapshot.config.router.id
        authority = Beside.of(log.dir, router, [log.log_id], LocalDisk())
        if source is not None and source.watched:  # else the supervisor did, for all workers
            authority.uphold(live.snapshot.config, source.path.parent)
        token = new_token(token_path(log.dir, log.log_id), clocks.entropy)
        quarantine = Quarantine(live, file)
        swap = Swap(live, transport)
        await swap.begin()
        loops = Loops(live, clocks.sleep, clocks.random)
        reader = BedrockReader(transport, live.wall_time, live.loop_time)
        drift = DriftWatch(live, swap, file, reader)
        await drift.resume()
        soon, sought = asyncio.Event(), asyncio.Event()

        async def loaded() -> None:
            await drift.settle()
            soon.set()  # what is new in the files has not been asked about yet
            sought.set()

        reloader = None
        if source is not None and source.watched:
            reloader = Reloader(live, swap, source, loaded, authority)
        environment = {} if source is None else source.environment
        watch = live.snapshot.config.watch
        prober = Prober(live, transport, Scraper(live, transport), watch.probe)
        base = Path() if source is None else source.path.parent
        discoverer = Discoverer(live, swap, transport, environment, base, Addresses())
        swap.ahead = discoverer.ahead
        first = bool(looked_up(live.snapshot.policy))
        fleet = [
            Loop("discover", watch.discover, discoverer.look, first=first, limit=30.0, soon=sought),
            *fleet_loops(prober, watch),
        ]
        loops.start(list(_loops(live, drift, soon, reloader, environment, fleet)))
        peers = PeerWatch(live, log, clocks.entropy, LocalDisk())
        loops.start([Loop("peers", LOOK_AT_PEERS, peers.look, limit=600.0)])
        if source is not None:
            loops.start(list(_carried_out(live, log, transport, source)))
        made = cls(quarantine, swap, drift, reloader, loops, token, prober)
        made._loaded = loaded
        return made

    async def take(self, base: Snapshot) -> None:
        """Put in force a snapshot that the supervisor has checked.

        Raises:
            AuditError: it can't be stored or recorded; the old one serves on.
        """
        await self.swap.reload(base)
        await self._loaded()

    def look_at_files(self) -> None:
        """Take up a change now, as SIGHUP asks; nothing happens without files."""
        if self.reloader is not None:
            task = asyncio.get_running_loop().create_task(self.reloader.look(now=True))
            self._asked.add(task)
            task.add_done_callback(self._asked.discard)

    async def close(self) -> None:
        """Stop every loop."""
        for task in self._asked:
            task.cancel()
        await asyncio.gather(*self._asked, return_exceptions=True)
        await self._loops.close()
        await self._prober.close()


def _loops(
    live: Live,
    drift: DriftWatch,
    soon: asyncio.Event,
    reloader: Reloader | None,
    environment: Mapping[str, str],
    fleet: Sequence[Loop],
) -> Iterator[Loop]:
    """Every loop, the role's first: the drift check may need its keys."""

    def ask() -> Fetched:
        from router.watch.roles import fetch  # botocore, only where a role is used

        return fetch(environment)

    role = RoleWatch(live.roles, live.wall_time, ask, lambda: _uses_role(live))

    async def check() -> None:
        with contextlib.suppress(NoRole):  # the role's own loop tells; others have their own keys
            await role.look()
        await drift.check()

    yield from fleet
    yield Loop("role", LOOK_AT_ROLE, role.look, first=_uses_role(live), limit=15.0)
    yield Loop("drift", LOOK_AT_PROFILES, check, limit=300.0, soon=soon)
    if reloader is not None:
        yield Loop("files", LOOK_AT_FILES, reloader.look, limit=600.0)


def _carried_out(
    live: Live, log: LogSettings, transport: Transport, source: Source
) -> Iterator[Loop]:
    """What takes the log to other places, where any is configured."""
    base, environment, config = source.path.parent, source.environment, live.snapshot.config.log
    if config.exports:
        from router.storage.exports import export_watch

        follow = export_watch(live, log, config.exports, base, transport, environment)
        yield Loop("exports", LOOK_AT_SINKS, follow.look, limit=600.0)
    if config.seal is not None:
        from router.storage.seal import seal_watch

        seal = seal_watch(live, log, environment, base)
        yield Loop("seal", LOOK_AT_SEGMENTS, seal.look, limit=3600.0)


def fleet_loops(prober: Prober, watch: WatchSection) -> list[Loop]:
    """What looks at one's own replicas."""
    return [
        Loop("scrape", watch.scrape, prober.scraper.look, limit=10.0),
        Loop("probe", watch.probe, prober.look, limit=10.0),
        Loop("canary", LISTEN, prober.listen, limit=10.0),
    ]


def _uses_role(live: Live) -> bool:
    return any(one.credentials == INSTANCE_ROLE for one in live.snapshot.policy.endpoints.values())
