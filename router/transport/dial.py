"""Opening one connection: name, TCP, TLS. The only place that does.

Nothing here reads proxy, endpoint or key-log environment variables. Trust comes from the system's
roots or from the endpoint's own authorities.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from typing import Final, Protocol, TypeVar

from router.transport.messages import ConnectFailed, NoRoomHere, Origin, Tls, TlsFailed
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
_USUAL: Final = Tls()
# By OpenSSL's numbers of what is wrong with a chain (X509_V_ERR_…).
_WRONG: Final[Mapping[int, str]] = {
    **dict.fromkeys((2, 18, 19, 20, 21), "unknown_authority"),
    9: "not_yet_valid",
    10: "expired",
    **dict.fromkeys((62, 64), "wrong_name"),
}
Address = tuple[str, int]
Trust = tuple[str | None, str | None]
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


def tls_context(tls: Tls) -> ssl.SSLContext:
    """A client context that verifies chain and name, TLS 1.2 or newer.

    It takes long where the system's roots are many: a fifth of a second on a slow machine.

    Built by hand, not by `ssl.create_default_context`, which would write session keys to the
    file that SSLKEYLOGFILE names.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_COMPRESSION
    # RFC 9525, 6.3: a certificate's subject proves no name; only its alternative names do.
    made.hostname_checks_common_name = False
    made.set_alpn_protocols(["http/1.1"])
    if tls.ca is not None:
        made.load_verify_locations(cadata=tls.ca)
        # Each of those counts, also one that another one signed.
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        made.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if tls.identity is not None:
        identify(made, tls.identity)
    return made


def identify(made: ssl.SSLContext, identity: str) -> None:
    """Show this certificate. OpenSSL's binding reads keys from files alone; this one is on no disk.

    Raises:
        ssl.SSLError: OpenSSL doesn't take it, as with a short key.
    """
    file = os.memfd_create("identity", os.MFD_CLOEXEC)
    try:
        os.write(file, identity.encode("ascii"))
        made.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


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
    """Opens connections to origins; keeps one TLS context for each thing that is trusted."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._contexts: dict[Trust, asyncio.Future[ssl.SSLContext]] = {}

    def keep(self, used: Iterable[Tls | None]) -> None:
        """Forget contexts that none of these has; the system's roots stay as they were read."""
        kept = {_trust(_USUAL), *(_trust(tls or _USUAL) for tls in used)}
        for trust in self._contexts.keys() - kept:
            del self._contexts[trust]

    async def dial(self, origin: Origin, make: Callable[[socket.socket], P], until: float) -> P:
        """A connected protocol made by `make`, by `until` (loop time). Raises ConnectFailed."""
        try:
            async with asyncio.timeout_at(until):
                return await self._dial(origin, make, until)
        except TimeoutError as error:
            raise ConnectFailed(f"connecting to {origin} timed out", "timeout") from error

    async def _dial(self, origin: Origin, make: Callable[[socket.socket], P], until: float) -> P:
        secure = await self._secure(origin)
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
                    return await self._connect(origin, address, make, secure)
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
        self,
        origin: Origin,
        address: Address,
        make: Callable[[socket.socket], P],
        secure: ssl.SSLContext | None,
    ) -> P:
        loop = asyncio.get_running_loop()
        opened = _open_socket(address)
        try:
            await loop.sock_connect(opened, address)
            _, protocol = await loop.create_connection(
                lambda: make(opened),
                sock=opened,
                ssl=secure,
                server_hostname=None if secure is None else _name(origin),
            )
        except ssl.SSLError as error:
            opened.close()
            raise _tls_failed(origin, error) from error
        except TimeoutError:
            opened.close()
            raise
        except OSError as error:
            opened.close()
            if error.errno in _STARVED:
                raise _no_room() from error
            if secure is not None and _after_connect(error):
                raise _tls_failed(origin, error) from error
            raise ConnectFailed(f"connecting to {origin} failed", "refused") from error
        except BaseException:
            opened.close()
            raise
        return protocol

    async def _secure(self, origin: Origin) -> ssl.SSLContext | None:
        """Its context, made once, beside the loop; whoever else needs it meanwhile waits too."""
        if origin.scheme != "https":
            return None
        tls = origin.tls or _USUAL
        trust = _trust(tls)
        making = self._contexts.get(trust)
        if making is None or making.cancelled():
            making = asyncio.ensure_future(asyncio.to_thread(tls_context, tls))
            self._contexts[trust] = making
        try:
            return await asyncio.shield(making)
        except (OSError, ValueError) as error:
            self._contexts.pop(trust, None)
            raise _tls_failed(origin, error) from error


def _trust(tls: Tls) -> Trust:
    """What a context is made of; names differ from connection to connection."""
    return tls.ca, tls.identity


def _name(origin: Origin) -> str:
    """Whose certificate it must be. The dot that ends a full name is no part of it in TLS (RFC
    6066, 3)."""
    name = None if origin.tls is None else origin.tls.name
    return (name or origin.host).removesuffix(".")


def _tls_failed(origin: Origin, error: Exception) -> TlsFailed:
    detail = "handshake"
    if isinstance(error, ssl.SSLCertVerificationError):
        detail = _WRONG.get(error.verify_code, "bad_certificate")
    return TlsFailed(f"tls with {origin} failed: {detail}", detail)


def _after_connect(error: OSError) -> bool:
    return isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
