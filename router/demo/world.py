"""The demo's world: a simulated fleet in three regions, a Bedrock stub, two real routers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from regions.catalog import Catalog, epoch
from router.app import Clocks, Router
from router.demo.files import ROUTERS, SONNET_EU, SONNET_US, write
from router.server import Serving, bind
from router.settings.loading import load_snapshot, log_settings
from router.simulator.bedrock import BedrockSpec, BedrockStub
from router.simulator.bedrock_world import BedrockWorld
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec

REGIONS: Final[Mapping[str, str]] = {"fra": "self:fra1", "par": "self:par1", "iad": "self:iad1"}
_ENGINE: Final = EngineSpec(step_floor=0.004, per_sequence=0.0002)
_EU: Final = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
_US: Final = ("us-east-1", "us-east-2", "us-west-2")


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """Everything that runs: routers by id with their addresses, fleet, Bedrock."""

    folder: Path
    fleet: SimulatedFleet
    bedrock: BedrockStub
    urls: Mapping[str, str]
    admins: Mapping[str, str]


def demo_clock() -> Callable[[], float]:
    """A clock that starts one day after the catalog's date: facts age, a demo must not."""
    start, began = epoch(Catalog.load({}).date) + 86400, time.monotonic()
    return lambda: start + time.monotonic() - began


@asynccontextmanager
async def running(folder: Path, wall: Callable[[], float]) -> AsyncIterator[DemoWorld]:
    """Start everything on free loopback ports; stop it all at the end.

    `wall` gives seconds since the epoch, to routers and Bedrock alike.
    """
    specs = {region: ReplicaSpec(models=("llama",), engine=_ENGINE) for region in REGIONS.values()}
    world = BedrockWorld.of({SONNET_EU: {"eu-central-1": _EU}, SONNET_US: {"us-east-1": _US}})
    async with AsyncExitStack() as stack:
        fleet = await stack.enter_async_context(SimulatedFleet(specs))
        bedrock = BedrockStub(BedrockSpec(world, engine=_ENGINE), wall=wall)
        bedrock.retention.update(dict.fromkeys((*_EU, *_US), "none"))  # as the endpoints say
        await stack.enter_async_context(bedrock)
        sockets = {
            router: (bind(("127.0.0.1", 0), "listen"), bind(("127.0.0.1", 0), "admin"))
            for router in ROUTERS
        }
        ports = {
            router: (public.getsockname()[1], private.getsockname()[1])
            for router, (public, private) in sockets.items()
        }
        urls = {name: fleet[region].url for name, region in REGIONS.items()}
        write(folder, {**urls, "bedrock": bedrock.url}, ports)
        clocks = Clocks(wall, asyncio.get_running_loop().time, os.urandom)
        for router, (public, private) in sockets.items():
            snapshot = load_snapshot(folder / f"{router}.yaml", os.environ, wall())
            settings = log_settings(snapshot.config, folder)
            serving = Serving(await Router.open(snapshot, settings, clocks), public, private)
            await serving.start()
            stack.push_async_callback(serving.stop, 2.0)
        yield DemoWorld(
            folder,
            fleet,
            bedrock,
            {router: f"http://127.0.0.1:{port}" for router, (port, _) in ports.items()},
            {router: f"http://127.0.0.1:{port}" for router, (_, port) in ports.items()},
        )
