"""Discovery: the replicas of fleets that are looked up, once a period and before the router is
ready.

- `dns`: every address of a name, so that each replica has its own load, health and connections;
- `srv`: every address of every SRV record, by priority and weight, asked for again after its TTL,
  an hour at most;
- `kubernetes`: the ready endpoints of a service, from the API server the pod is told of;
- `file`: one base URL a line; `#` begins a comment.

What can't be looked up stays as it was: a resolver that is down must not empty a fleet, nor keep
another one from being found: each is looked up beside the others, once for all endpoints that name
it, and in force at once. An address outside the endpoint's `replicas: {within: …}` is left out and
told. Membership is no part of a decision (the endpoint's region is the baseline's word for all of
its replicas), so the snapshot keeps its digest.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from regions.model import Endpoint
from router.live import Live
from router.settings import bounded
from router.settings.members import Members, Place, inside, listed, looked_up
from router.settings.swap import Swap
from router.snapshot import Snapshot
from router.transport.messages import Transport
from router.transport.names import Addresses, Look, Names, NotFound, Service, base_url
from router.watch.kubernetes import ACCOUNT, ready

AT_ONCE: Final = 32
"""Fleets looked up at a time."""
PATIENCE: Final = 10.0
"""Seconds for one fleet; the system's own functions take more where a name server is gone."""
AHEAD: Final = 5.0
"""Seconds for which a reload waits for the replicas of a fleet that is new in it."""
COUNTS: Final = 3600.0
"""Seconds for which a TTL is believed: one of years, by mistake, would keep servers that are gone
until a restart."""
LEAST: Final = 0.01
"""The part of a replica whose weight is 0."""
TOLD: Final = 3
NOTE: Final = "discover:"
SETTLED: Final = 0.5
"""Seconds for which a file that changed must stay the same."""

Sought = tuple[str, int, float]
"""A base URL, a priority and a share."""
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port → addresses. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in order, what was `left` out in words, and for how many seconds it counts."""

    places: tuple[Place, ...]
    left: tuple[str, ...] = ()
    ttl: float = 0.0


class Discoverer:
    """Looks up every fleet of one router.

    Args:
        base: the folder that a `file` is relative to.
    """

    def __init__(
        self,
        live: Live,
        swap: Swap,
        transport: Transport,
        environment: Mapping[str, str],
        base: Path,
        resolve: Resolve | None = None,
        account: Path = ACCOUNT,
        service: Look | None = None,
    ) -> None:
        self._live = live
        self._swap = swap
        self._transport = transport
        self._environment = environment
        self._base = base
        self._resolve = resolve or Addresses()
        self._account = account
        self._service = service or Names().service
        self._until: dict[str, float] = {}
        self._texts: dict[str, str] = {}

    async def look(self) -> None:
        """One round. What was found is in force when this returns; each failure is told."""
        turns = asyncio.Semaphore(AT_ONCE)
        known = named_by(self._swap.base)
        notes = {_note(endpoint) for endpoints in known.values() for endpoint in endpoints}
        for gone in [one for one in self._live.notes if one.startswith(NOTE) and one not in notes]:
            del self._live.notes[gone]
        self._until = {what: at for what, at in self._until.items() if what in known}
        due = [(what, by) for what, by in known.items() if not self._is_good(what)]
        await asyncio.gather(*(self._one(what, by, turns) for what, by in due))

    async def ahead(self, base: Snapshot) -> Members:
        """The replicas of fleets that are new in a snapshot: without them its endpoints would
        answer nobody from the reload until the next look. What is not found is told."""
        new = [item for item in named_by(base).items() if not self._swap.knows(item[0])]
        found = await asyncio.gather(*(self._looked(*one, AHEAD) for one in new))
        return {
            what: looked.places
            for (what, _), looked in zip(new, found, strict=True)
            if looked is not None
        }

    def _is_good(self, what: str) -> bool:
        """Whether what was found there still counts: its TTL is not over."""
        return self._swap.knows(what) and self._live.loop_time() < self._until.get(what, 0.0)

    async def _one(self, what: str, by: Sequence[Endpoint], turns: asyncio.Semaphore) -> None:
        async with turns:
            looked = await self._looked(what, by, PATIENCE)
        if looked is not None:
            await self._swap.people(what, looked.places)
            self._until[what] = self._live.loop_time() + min(looked.ttl, COUNTS)

    async def _looked(self, what: str, by: Sequence[Endpoint], patience: float) -> Looked | None:
        """What is at a source, if any of the endpoints that name it may use it; each is told of."""
        try:
            async with asyncio.timeout(patience):
                looked = await self.found(what)
        except Exception as error:  # noqa: BLE001 - told; no other fleet, and no reload, fails by it
            told = f"`{what}` can't be looked up: {type(error).__name__}"
            if isinstance(error, NotFound):
                told = str(error)
            elif isinstance(error, TimeoutError):
                told = f"`{what}` was not found in {patience:g} s"
            self._live.notes.update({_note(endpoint): told for endpoint in by})
            return None
        said = [_told(what, looked, endpoint) for endpoint in by]
        for endpoint, (told, _) in zip(by, said, strict=True):
            self._live.notes.pop(_note(endpoint), None)
            if told:
                self._live.notes[_note(endpoint)] = told
        return looked if any(usable for _, usable in said) else None

    async def found(self, source: str) -> Looked:
        """What is there now, of one that says so of its `replicas`. Raises NotFound."""
        how, _, what = source.partition(":")
        way, tls, _ = how.partition("+")
        ways = {"dns": self._dns, "kubernetes": self._kubernetes, "file": self._file}
        if way == "srv":
            found = await self._srv(what)
        else:
            found = placed((url, 0, 1.0) for url in await ways[way](what))
        places = found.places
        if tls:
            places = tuple(replace(p, url=p.url.replace("http:", "https:", 1)) for p in places)
        return replace(found, places=places)

    async def _srv(self, what: str) -> Looked:
        found = await self._service(what)
        looked = placed(shared(found))
        without = [f"`{host}` has no address" for host in found.left_out[:TOLD]]
        return replace(looked, left=(*looked.left, *without), ttl=found.ttl)

    async def _dns(self, what: str) -> list[str]:
        host, _, port = what.rpartition(":")
        if not host or not port.isdigit():
            raise NotFound(f"`{what}` is not NAME:PORT")
        try:
            found = await self._resolve(host, int(port))
        except (OSError, UnicodeError):
            raise NotFound(f"`{host}` can't be resolved") from None
        if not found:
            raise NotFound(f"`{host}` has no address")
        return [base_url(one, int(port)) for one in found]

    async def _kubernetes(self, what: str) -> list[str]:
        return await ready(
            what, self._environment, self._account, self._transport, self._live.loop_time
        )

    async def _file(self, what: str) -> list[str]:
        text = await self._settled(what)
        try:
            return listed(text)
        except ValueError as error:
            raise NotFound(f"`{what}` {error}") from None

    async def _settled(self, what: str) -> str:
        """A file's text, once nobody writes it any more: half of a line may name another server,
        and half of the lines are half of the fleet. Raises NotFound."""
        before, text = self._texts.get(what), await self._read(what)
        is_whole = before is None and text.endswith("\n")  # nobody waits for a start
        while text != before and not is_whole:
            await asyncio.sleep(SETTLED)
            before, text = text, await self._read(what)
        self._texts[what] = text
        return text

    async def _read(self, what: str) -> str:
        try:
            return (await asyncio.to_thread(bounded.read, self._base / what)).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError):
            raise NotFound(f"`{what}` can't be read") from None


def shared(found: Service) -> Iterator[Sought]:
    """The places of a service, each once, with its part of its priority's load.

    A weight of 0 means very little, as RFC 2782 has it; where all have it they are alike.
    """
    heaviest: dict[int, int] = {}
    for one in found.places:
        heaviest[one.priority] = max(heaviest.get(one.priority, 0), one.weight)
    for one in sorted(found.places, key=lambda one: (one.priority, -one.weight)):
        most = heaviest[one.priority]
        share = max(LEAST, one.weight / most) if most else 1.0
        yield base_url(one.address, one.port), one.priority, share


def placed(found: Iterable[Sought]) -> Looked:
    """The places of what was found, each once and in order. One that can't be called is left out:
    it must not keep the others from being found.

    Raises:
        NotFound: none of them can be called.
    """
    places: dict[str, Place] = {}
    odd: dict[str, str] = {}
    for url, priority, share in found:
        try:
            one = Place.of(url, priority, share)
        except ValueError as error:
            odd[url] = str(error)
        else:
            places.setdefault(one.at, one)
    left = [f"{len(odd)} of the addresses found can't be called: {why}" for why in odd.values()]
    if odd and not places:
        raise NotFound(left[0])
    ordered = sorted(places.values(), key=lambda one: (one.priority, one.url))
    return Looked(tuple(ordered), tuple(left[:1]))


def named_by(snapshot: Snapshot) -> dict[str, list[Endpoint]]:
    """Where a snapshot's replicas are looked up → the endpoints that have them from there."""
    found = defaultdict(list)
    for endpoint in looked_up(snapshot.policy):
        found[endpoint.settings["replicas"]].append(endpoint)
    return found


def _note(endpoint: Endpoint) -> str:
    return NOTE + endpoint.name


def _told(what: str, looked: Looked, endpoint: Endpoint) -> tuple[str, bool]:
    """What an operator should know of what was found for an endpoint, and whether that counts:
    if all of it lies outside `within`, it doesn't."""
    found, usable = len(looked.places), len(inside(endpoint, looked.places))
    if not found:
        return f"`{what}` has no replica now", True
    if not usable:
        return f"all {found} addresses found lie outside `within`", False
    outside = f"{found - usable} of {found} addresses found lie outside `within`"
    return "; ".join([*looked.left, *([outside] if usable < found else [])]), True
