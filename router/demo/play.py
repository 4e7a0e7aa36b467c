"""The demo's scenes: traffic of three tenants, a dying region, a refusal, a 421, the proof."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from router.audit.layout import Folder
from router.audit.reading import LogReader
from router.audit.verify import verify
from router.demo.files import KEYS, MODEL
from router.demo.world import DemoWorld, demo_clock, running
from router.simulator.faults import Fault, Kind
from router.transport.client import HttpTransport
from router.transport.messages import Origin, OutboundRequest, Timeouts, read_body

Say = Callable[[str], None]
QUESTIONS: Final = (
    "summarise this letter",
    "what is the capital of France?",
    "write a haiku about borders",
    "translate: good morning",
)


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer: status, error code if one, headers."""

    status: int
    code: str
    headers: Mapping[str, str]

    @property
    def place(self) -> str:
        """Where it ran, as the receipt says."""
        found = self.headers.get("x-domicile-region")
        return found or self.headers.get("x-domicile-footprint", "")


class Client:
    """A client of the routers, over real sockets."""

    def __init__(self, world: DemoWorld) -> None:
        self._world = world
        self._transport = HttpTransport()

    async def ask(
        self, tenant: str, router: str, number: int = 0, headers: Mapping[str, str] | None = None
    ) -> Heard:
        """One chat request; every second one as a stream."""
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": QUESTIONS[number % len(QUESTIONS)]}],
            "max_tokens": 12,
            "stream": number % 2 == 1,
        }
        sent = {
            "authorization": f"Bearer {KEYS[tenant]}",
            "content-type": "application/json",
            **(headers or {}),
        }
        until = asyncio.get_running_loop().time() + 20
        response = await self._transport.send(
            OutboundRequest(
                Origin.parse(self._world.urls[router]),
                "POST",
                "/v1/chat/completions",
                tuple((k.encode(), v.encode()) for k, v in sent.items()),
                orjson.dumps(body),
            ),
            Timeouts(until),
        )
        answer = await read_body(response, 1 << 20, until)
        shown = {k.decode(): v.decode() for k, v in response.headers}
        code = "" if response.status == 200 else orjson.loads(answer)["error"]["code"]
        return Heard(response.status, code, shown)

    async def many(self, tenant: str, router: str, count: int) -> Counter[str]:
        """So many requests, four at a time: where each ran, or why not."""
        found: Counter[str] = Counter()
        for start in range(0, count, 4):
            asked = [self.ask(tenant, router, start + n) for n in range(min(4, count - start))]
            for heard in await asyncio.gather(*asked):
                found[heard.place or f"{heard.status} {heard.code}"] += 1
        return found

    async def close(self) -> None:
        """Close its connections."""
        await self._transport.close()


async def play(say: Say, keep: bool) -> bool:
    """All scenes; whether everything was as it should be."""
    clock = demo_clock()
    with tempfile.TemporaryDirectory(prefix="domicile-demo-") as name:
        folder = Path(name)
        async with running(folder, clock) as world:
            say("two routers are up: eu-1 in self:fra1 (Germany), us-1 in self:iad1 (Virginia)")
            client = Client(world)
            try:
                good = await _scenes(say, world, client)
                if keep:
                    await _stay(say, world)
            finally:
                await client.close()
        return _proof(say, folder) and good


async def _scenes(say: Say, world: DemoWorld, client: Client) -> bool:
    say("\n1. three tenants send traffic: clinic (EU only), bank-us (US only), games (worldwide)")
    for tenant, router in (("clinic", "eu-1"), ("bank-us", "us-1"), ("games", "eu-1")):
        _tell(say, tenant, await client.many(tenant, router, 16))
    say("\n2. Frankfurt's fleet dies; clinic's requests fail over, inside the EU")
    world.fleet["fra1"].kill()
    _tell(say, "clinic", await client.many("clinic", "eu-1", 16))
    say("\n3. Paris freezes (its /health still says 200); Bedrock's EU profile is next")
    world.fleet["par1"].freeze()
    _tell(say, "clinic", await client.many("clinic", "eu-1", 8))
    say("\n4. Bedrock throttles too; Virginia is healthy, and outside: clinic gets an honest 503")
    world.bedrock.fail(Fault(Kind.STATUS, status=429))
    outside = _outside(world)
    refused = await client.ask("clinic", "eu-1")
    _told(say, refused)
    say("\n5. US patient data needs a signed agreement (BAA) that no endpoint holds: a refusal")
    attribute = {"x-domicile-attr-data_class": "phi"}
    sensitive = await client.ask("clinic", "eu-1", headers=attribute)
    _told(say, sensitive)
    say("\n6. bank-us asks the router in Germany: its prompt may not even be read there")
    elsewhere = await client.ask("bank-us", "eu-1")
    _told(say, elsewhere)
    say(f"   go to {elsewhere.headers.get('location', 'nowhere')}")
    return (
        refused.status == 503
        and elsewhere.status == 421
        and sensitive.status == 403
        and _outside(world) == outside
    )


def _outside(world: DemoWorld) -> int:
    """Requests that reached the fleet outside the EU."""
    return len(world.fleet["iad1"].seen)


def _tell(say: Say, tenant: str, found: Counter[str]) -> None:
    shown = ", ".join(f"{place} {count}×" for place, count in found.most_common())
    say(f"   {tenant:<8} {shown}")


def _told(say: Say, heard: Heard) -> None:
    say(f"   {heard.status} {heard.code}")


async def _stay(say: Say, world: DemoWorld) -> None:
    await world.fleet["fra1"].heal()
    url, key = world.urls["eu-1"], KEYS["clinic"]
    say("\nkept running; stop with ctrl-c. try:\n")
    say(
        f"curl -si {url}/v1/chat/completions -H 'authorization: Bearer {key}' "
        f"-H 'content-type: application/json' -d "
        f'\'{{"model":"{MODEL}","messages":[{{"role":"user","content":"hello"}}]}}\''
    )
    say(f"\nfiles: {world.folder}\nstatus: {world.admins['eu-1']}/status")
    await asyncio.Event().wait()


def _proof(say: Say, folder: Path) -> bool:
    """The region table from the logs alone, and their verification."""
    say("\nwhere everything was processed, read from the region logs:")
    good = True
    for router in ("eu-1", "us-1"):
        logs = folder / f"log-{router}"
        for (tenant, place), count in sorted(_places(logs).items()):
            say(f"   {router}  {tenant:<8} {place:<40} {count:>4}")
        verdict = verify(logs)
        good = good and verdict.ok
        say(f"   {router}  audit verify: {'ok' if verdict.ok else 'FAILED'}")
    return good


def _places(logs: Path) -> Counter[tuple[str, str]]:
    tenants: dict[str, str] = {}
    found: Counter[tuple[str, str]] = Counter()
    for log in Folder(logs).logs:
        for entry in LogReader(log).entries():
            who, ran = entry.body.get("who"), entry.body.get("ran")
            if isinstance(who, dict):
                tenants[entry.id] = str(who["tenant"])
            if entry.kind == "refusal":
                found[tenants[entry.id], f"refused: {entry.body['code']}"] += 1
            elif isinstance(ran, dict) and isinstance(ran["process"], list):
                found[tenants[entry.id], _shown(ran["process"])] += 1
    return found


def _shown(places: Sequence[object]) -> str:
    if len(places) == 1:
        return str(places[0])
    return f"one of {len(places)}: {places[0]} … {places[-1]}"
