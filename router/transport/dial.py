"""Opening one connection: name, TCP, TLS. The only place that does.

Nothing here reads proxy, endpoint or key-log environment variables. Trust comes from the system's
roots or from the endpoint's own CA file.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Protocol, TypeVar

from router.transport.messages import ConnectFailed, NoRoomHere, Origin, TlsFiles
from router.transport.room import ENDPOINTS, has_room

# A peer that drops packets in silence is found by its missing acknowledgements.
_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *[
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (
            ("TCP_KEEPIDLE", 15),
            ("TCP_KEEPINTVL", 5),
            ("TCP_KEEPCNT", 3),
            ("TCP_USER_TIMEOUT", 10_000),
        )
        if hasattr(socket, name)
    ],
]
_STARVED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
Address = tuple[str, int]
P = TypeVar("P", bound=asyncio.Protocol)


class Resolver(Protocol):
    """Turns a host name into addresses."""

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """The (ip, port) pairs to try, in order. Raises OSError when there are none."""
        ...


class SystemResolver:
    """The operating system's own resolver, optionally behind a fixed map.

    `fixed` sends a host name to one (ip, port), for tests and the demo; TLS names stay the host's.
    """

    def __init__(self, fixed: Mapping[str, Address] | None = None) -> None:
        self._fixed = dict(fixed or {})

    async def resolve(self, host: str, port: int) -> Sequence[Address]:
        """See `Resolver`; IPv4 and IPv6 in the system's order."""
        if host in self._fixed:
            return [self._fixed[host]]
        if _is_address(host):
            return [(host, port)]
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys((str(entry[4][0]), port) for entry in found))


@lru_cache(1024)
def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def tls_context(files: TlsFiles | None) -> ssl.SSLContext:
    """A client context that verifies chain and name, TLS 1.2 or newer.

    Built by hand, not by `ssl.create_default_context`, which would write session keys to the
    file that SSLKEYLOGFILE names.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_COMPRESSION
    # RFC 9525, 6.3: a certificate's subject proves no name; only its alternative names do.
    made.hostname_checks_common_name = False
    made.set_alpn_protocols(["http/1.1"])
    if files is not None and files.ca is not None:
        made.load_verify_locations(cafile=files.ca)
    else:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if files is not None and files.cert is not None:
        made.load_cert_chain(files.cert, files.key)
    return made


def _open_socket(address: Address) -> socket.socket:
    """Raises NoRoomHere where this process has no descriptor for it."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        opened = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        if error.errno not in _STARVED:
            raise
        raise _no_room() from error
    if not has_room(opened.fileno(), ENDPOINTS):
        opened.close()
        raise _no_room()
    opened.setblocking(False)
    for level, option, value in _OPTIONS:
        opened.setsockopt(level, option, value)
    return opened


def _no_room() -> NoRoomHere:
    return NoRoomHere("this router has no room for another connection")


class Dialer:
    """Opens connections to origins; keeps one TLS context per set of files."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._contexts: dict[TlsFiles | None, ssl.SSLContext] = {}

    def forget(self, files: TlsFiles | None) -> None:
        """Read these files anew for the next connection: certificates are renewed in place."""
        self._contexts.pop(files, None)

    async def dial(self, origin: Origin, make: Callable[[socket.socket], P], until: float) -> P:
        """A connected protocol made by `make`, by `until` (loop time). Raises ConnectFailed."""
        try:
            async with asyncio.timeout_at(until):
                return await self._dial(origin, make, until)
        except TimeoutError as error:
            raise ConnectFailed(f"connecting to {origin} timed out", "timeout") from error

    async def _dial(self, origin: Origin, make: Callable[[socket.socket], P], until: float) -> P:
        try:
            addresses = await self._resolver.resolve(origin.host, origin.port)
        except (OSError, UnicodeError) as error:
            _open_socket(("127.0.0.1", 0)).close()  # a starved lookup does not say so
            raise ConnectFailed(f"the name of {origin} has no address", "dns") from error
        failure = ConnectFailed(f"the name of {origin} has no address", "dns")
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            now = asyncio.get_running_loop().time()
            # An address that swallows packets leaves the others their share of the time.
            share = asyncio.timeout_at(now + (until - now) / left) if left > 1 else nullcontext()
            try:
                async with share:
                    return await self._connect(origin, address, make)
            except TimeoutError as error:
                failure = ConnectFailed(f"connecting to {origin} timed out", "timeout")
                failure.__cause__ = error
            except ConnectFailed as error:
                failure = error
        try:
            raise failure
        finally:
            del failure  # it holds this frame

    async def _connect(
        self, origin: Origin, address: Address, make: Callable[[socket.socket], P]
    ) -> P:
        loop = asyncio.get_running_loop()
        opened = _open_socket(address)
        try:
            secure = self._secure(origin)
            await loop.sock_connect(opened, address)
            _, protocol = await loop.create_connection(
                lambda: make(opened),
                sock=opened,
                ssl=secure,
                # The dot that ends a full name is no part of it in TLS (RFC 6066, 3).
                server_hostname=None if secure is None else origin.host.removesuffix("."),
            )
        except ssl.SSLError as error:
            opened.close()
            raise ConnectFailed(f"tls with {origin} failed: {_reason(error)}", "tls") from error
        except TimeoutError:
            opened.close()
            raise
        except OSError as error:
            opened.close()
            if error.errno in _STARVED:
                raise _no_room() from error
            reason = "tls" if origin.scheme == "https" and _after_connect(error) else "refused"
            raise ConnectFailed(f"connecting to {origin} failed", reason) from error
        except BaseException:
            opened.close()
            raise
        return protocol

    def _secure(self, origin: Origin) -> ssl.SSLContext | None:
        if origin.scheme != "https":
            return None
        if origin.tls not in self._contexts:
            self._contexts[origin.tls] = tls_context(origin.tls)
        return self._contexts[origin.tls]


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    return (error.reason or "handshake").lower().replace("_", " ")


def _after_connect(error: OSError) -> bool:
    return isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
