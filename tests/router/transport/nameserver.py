"""A name server on loopback, with records that a test sets: real DNS messages over real UDP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers from `records`: (name, type) → (ttl, texts). `broken` names get SERVFAIL."""

    records: dict[tuple[str, str], tuple[int, list[str]]] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    silent: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list)
    port: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        name, kind = str(query.question[0].name), query.question[0].rdtype.name
        self.asked.append((name, kind))
        if not self.silent:
            self._transport.sendto(self._answer(query, name, kind).to_wire(), addr)

    def _answer(self, query: dns.message.Message, name: str, kind: str) -> dns.message.Message:
        made = dns.message.make_response(query)
        made.flags |= dns.flags.RA
        found = self.records.get((name, kind))
        if name in self.broken:
            made.set_rcode(dns.rcode.SERVFAIL)
        elif found is not None:
            made.answer.append(dns.rrset.from_text(name, found[0], "IN", kind, *found[1]))
        elif not any(known == name for known, _ in self.records):
            made.set_rcode(dns.rcode.NXDOMAIN)
        return made

    def srv(self, name: str, *texts: str, ttl: int = 30) -> None:
        """Set the SRV records of a name: priority, weight, port, host."""
        self.records[name, "SRV"] = (ttl, list(texts))

    def a(self, name: str, *addresses: str, ttl: int = 60) -> None:
        """Set the addresses of a host."""
        kinds = {"A": [a for a in addresses if ":" not in a], "AAAA": []}
        kinds["AAAA"] = [a for a in addresses if ":" in a]
        for kind, found in kinds.items():
            if found:
                self.records[name, kind] = (ttl, found)


@asynccontextmanager
async def nameserver() -> AsyncIterator[NameServer]:
    """One, on a port of its own."""
    server = NameServer()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: server, local_addr=("127.0.0.1", 0))
    server.port = transport.get_extra_info("sockname")[1]
    try:
        yield server
    finally:
        transport.close()
