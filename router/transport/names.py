"""Services by name: SRV records (RFC 2782), with the addresses of the hosts they name.

The system's resolvers are asked (`/etc/resolv.conf`, read anew each time), by dnspython, for the
system's own functions know no SRV. Every record and every address counts, and how long they do:
the smallest TTL of all that was read.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

LIFETIME: Final = 3.0
"""Seconds that one question may take, with its repetitions."""
MOST: Final = 512
AT_ONCE: Final = 32
"""Hosts of one service that are asked about at a time: each takes a descriptor of the clients'."""
RESOLVING: Final = 8
"""Threads for the system's functions, apart from those that everything else is done in: one that
waits for a name server can't be ended."""


class NotFound(Exception):
    """It can't be looked up now, or names nothing; says why, in words for the operator."""


@dataclass(frozen=True, slots=True)
class Located:
    """One address of a service: lower `priority` first, `weight` among those of one priority."""

    address: str
    port: int
    priority: int
    weight: int


@dataclass(frozen=True, slots=True)
class Service:
    """Everything a name leads to, for `ttl` seconds; `left_out` are hosts without an address."""

    places: tuple[Located, ...]
    ttl: float
    left_out: tuple[str, ...] = ()


Look = Callable[[str], Awaitable[Service]]


def base_url(address: str, port: int | str, scheme: str = "http") -> str:
    """The URL of a server at an address or host."""
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


class Addresses:
    """A and AAAA records, as the system resolves them."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVING, "resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, each once. Raises OSError."""
        loop = asyncio.get_running_loop()
        ask = partial(socket.getaddrinfo, host, port, proto=socket.IPPROTO_TCP)
        found = await loop.run_in_executor(self._threads, ask)
        return sorted({str(one[4][0]) for one in found})


class Names:
    """Asks name servers. `servers` are `(address, port)`, instead of the system's: for tests."""

    def __init__(self, servers: Sequence[tuple[str, int]] = ()) -> None:
        self._servers = tuple(servers)
        self._threads = ThreadPoolExecutor(RESOLVING, "service")

    async def service(self, name: str) -> Service:
        """What the SRV records of a name lead to.

        Found beside the event loop: to read an answer of a thousand addresses takes a tenth of a
        second, for which all streams would stand still.

        Raises:
            NotFound: there are none, or an answer that is needed did not come.
        """
        from dns.exception import DNSException

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self._found, name)
        except DNSException as error:
            raise NotFound(f"`{name}`: {_said(error)}") from None

    def _found(self, name: str) -> Service:
        return asyncio.run(self._service(name))

    async def _service(self, name: str) -> Service:
        resolver = self._resolver()
        answer = await resolver.resolve(name, "SRV", search=False, lifetime=LIFETIME)
        records = [(str(r.target), int(r.port), int(r.priority), int(r.weight)) for r in answer]
        if any(host == "." for host, *_ in records):
            raise NotFound(f"`{name}` says that there is no such service")
        if len(records) > MOST:
            raise NotFound(f"`{name}` has {len(records)} records; {MOST} at most are read")
        hosts = sorted({host for host, *_ in records})
        turns = asyncio.Semaphore(AT_ONCE)
        asked = (_addresses(resolver, host, turns) for host in hosts)
        found = dict(zip(hosts, await asyncio.gather(*asked), strict=True))
        places = [
            Located(address, port, priority, weight)
            for host, port, priority, weight in records
            for address in found[host][0]
        ]
        if not places:
            raise NotFound(f"no host that `{name}` names has an address")
        ttl = min([float(answer.chaining_result.minimum_ttl), *(found[host][1] for host in hosts)])
        left = [host.rstrip(".") for host in hosts if not found[host][0]]
        return Service(tuple(dict.fromkeys(places)), ttl, tuple(left))

    def _resolver(self) -> Resolver:
        from dns.asyncresolver import Resolver  # only where a fleet is found so
        from dns.nameserver import Do53Nameserver

        if not self._servers:
            return Resolver()
        made = Resolver(configure=False)
        made.nameservers = [Do53Nameserver(address, port) for address, port in self._servers]
        return made


async def _addresses(
    resolver: Resolver, host: str, turns: asyncio.Semaphore
) -> tuple[list[str], float]:
    """A and AAAA records of a host, and their smallest TTL.

    Raises:
        DNSException: a server did not answer: that is not the same as having none.
    """
    from dns.resolver import NXDOMAIN, NoAnswer

    found: list[str] = []
    ttl = float("inf")
    for kind in ("A", "AAAA"):
        try:
            async with turns:
                answer = await resolver.resolve(host, kind, search=False, lifetime=LIFETIME)
        except NXDOMAIN:
            break
        except NoAnswer:
            continue
        found += [str(record) for record in answer]
        ttl = min(ttl, float(answer.chaining_result.minimum_ttl))
    return sorted(found), ttl


def _said(error: Exception) -> str:
    """What went wrong, without the resolver's many words."""
    from dns.resolver import NXDOMAIN, LifetimeTimeout, NoAnswer, NoNameservers

    words = (
        (NXDOMAIN, "there is no such name"),
        (NoAnswer, "it has no SRV record"),
        (LifetimeTimeout, "no name server answered in time"),
        (NoNameservers, "every name server failed"),
    )
    return next((said for kind, said in words if isinstance(error, kind)), type(error).__name__)
