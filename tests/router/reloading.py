"""A router over a folder of real files, with nothing outside: for tests of watching and reload."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from router.app import SURFACES, Clocks, Router
from router.audit.layout import Folder
from router.audit.reading import LogReader, Shown
from router.ids import Ids
from router.settings.loading import log_settings
from router.settings.reload import Reloader, Source
from router.settings.reload_files import fingerprint
from router.transport.messages import Transport
from router.types import Arrival, Purpose
from router.watch.start import Watches
from tests.router.folders import AT, Box
from tests.router.scripted import FakeExchange, Reply, Script, ScriptedTransport, answer

CLINIC = "dom-clinic"
BOSS = "dom-boss"


def _line(id_: str, key: str, more: str = "") -> str:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"  - {{id: {id_}, sha256: {digest}, tenant: clinic{more}}}\n"


KEYS = "version: 1\nkeys:\n" + _line("clinic-1", CLINIC) + _line("boss", BOSS, ", role: operator")


def well(host: str, number: int) -> Reply:
    """Every endpoint answers."""
    return answer()


async def never(seconds: float) -> None:
    """A sleep that the test wakes from by ending."""
    await asyncio.Event().wait()


@dataclass
class World:
    """The router, its folder, its transport and its clock."""

    box: Box
    router: Router
    transport: ScriptedTransport
    now: list[float] = field(default_factory=lambda: [AT])

    @property
    def watches(self) -> Watches:
        assert self.router.watches is not None
        return self.router.watches

    @property
    def reloader(self) -> Reloader:
        assert self.watches.reloader is not None
        return self.watches.reloader

    def change(self, name: str, old: str, new: str) -> None:
        """Edit one file of the folder."""
        path = self.box.root / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    async def settle(self) -> None:
        """As many looks as a change needs to be taken up."""
        for _ in range(2):
            await self.reloader.look()

    def entries(self, kind: str) -> list[Shown]:
        """What the log holds of one kind."""
        reader = LogReader(Folder(self.box.root / "log").log(self.router.live.log_name))
        return [one for one in reader.entries() if one.kind == kind]

    def arrive(
        self, key: str = CLINIC, model: str = "assistant", *more: tuple[bytes, bytes]
    ) -> FakeExchange:
        """A chat request that has not begun; `more` are headers beside the key."""
        body = f'{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}'
        return FakeExchange(body.encode(), [(b"authorization", f"Bearer {key}".encode()), *more])

    async def run(self, exchange: FakeExchange) -> FakeExchange:
        """Walk it through the twelve steps with the snapshot that serves now."""
        live, loop = self.router.live, asyncio.get_running_loop().time()
        clocks = Clocks(lambda: self.now[0], asyncio.get_running_loop().time, os.urandom)
        arrival = Arrival(
            exchange, Ids(clocks.wall, clocks.entropy)(), live.stamp(), loop, loop + 20,
            SURFACES[0], Purpose.INTERACTIVE, live.snapshot,
        )  # fmt: skip
        await self.router.pipeline.run(arrival)
        return exchange

    async def ask(self, key: str = CLINIC) -> FakeExchange:
        """One whole request."""
        return await self.run(self.arrive(key))


@asynccontextmanager
async def watched(
    box: Box,
    script: Script = well,
    environment: Mapping[str, str] | None = None,
    real: Transport | None = None,
    looked: bool = True,
) -> AsyncIterator[World]:
    """A router of this folder; its loops look once and then sleep for good.

    With a `real` transport that one is used, and the world's scripted one sees nothing.
    `looked` waits for the one look at the files, so that a change after it is a change.
    """
    if "clinic-1" not in (box.root / "keys.yaml").read_text():
        (box.root / "keys.yaml").write_text(KEYS)
    given = environment or {}
    source = Source(box.config, given, fingerprint(box.config))
    snapshot = box.snapshot(given)
    now = [AT]
    clocks = Clocks(lambda: now[0], asyncio.get_running_loop().time, os.urandom, never)
    transport = ScriptedTransport(script)
    settings = log_settings(snapshot.config, box.root)
    router = await Router.open(snapshot, settings, clocks, real or transport, source)
    await asyncio.sleep(0)
    for _ in range(1000 if looked else 0):
        if router.live.files.looked_at:
            break
        await asyncio.sleep(0.005)
    try:
        yield World(box, router, transport, now)
    finally:
        await router.close(0.5)
