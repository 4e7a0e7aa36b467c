"""Opening connections: names, addresses, time, and no environment."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import warnings
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver, _open_socket, tls_context
from router.transport.messages import (
    ConnectFailed,
    Fate,
    NoRoomHere,
    Origin,
    OutboundRequest,
    TlsFiles,
)
from tests.garbage import let_go
from tests.rawserver import Line, RawServer, ask, echo, now, served, whole, within


async def test_nobody_listens() -> None:
    async with served(echo) as (_, transport):
        origin = Origin("http", "127.0.0.1", 1)
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert (caught.value.reason, caught.value.fate) == ("refused", Fate.NOT_SENT)
        assert transport.counts.open == 0


def starved(*_: object) -> socket.socket:
    raise OSError(errno.EMFILE, "too many open files")


class Nameless:
    """Finds no address, as a lookup that may open nothing."""

    async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
        """See `Resolver`."""
        raise socket.gaierror(socket.EAI_AGAIN, "again")


@pytest.mark.parametrize("name", ["socket.socket", "router.transport.dial.has_room"])
@pytest.mark.parametrize("host", ["127.0.0.1", "eu.internal"])
async def test_a_process_without_descriptors_says_nothing_of_the_endpoint(
    monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    async with served(echo) as (server, _):
        transport = HttpTransport(Nameless() if host == "eu.internal" else None)
        monkeypatch.setattr(name, starved if "socket" in name else lambda number, kept: False)
        out = OutboundRequest(Origin("http", host, server.port), "POST", "/", ())
        with pytest.raises(NoRoomHere) as caught:
            await transport.send(out, within(5))
        monkeypatch.undo()
        assert (caught.value.fate, caught.value.hurried) == (Fate.NOT_SENT, True)
        assert transport.counts.open == 0
        await transport.close()


async def test_a_name_without_an_address_is_one_while_there_is_room() -> None:
    transport = HttpTransport(Nameless())
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(
            OutboundRequest(Origin("http", "eu.internal", 80), "POST", "/", ()), within(5)
        )
    assert caught.value.reason == "dns"
    await transport.close()


async def test_a_failed_connect_is_kept_by_nothing() -> None:
    async with served(echo) as (_, transport), let_go(ConnectFailed):
        origin = Origin("http", "127.0.0.1", 1)
        for _ in range(3):
            with suppress(ConnectFailed):
                await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))


async def test_names_are_resolved_by_the_resolver_alone() -> None:
    async with RawServer(echo) as server:
        fixed = SystemResolver({"eu.internal": ("127.0.0.1", server.port)})
        transport = HttpTransport(fixed)
        origin = Origin("http", "eu.internal", 80)
        response = await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert response.status == 200
        await transport.close()


async def test_a_name_without_an_address() -> None:
    class Nowhere:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            raise OSError("no such name")

    transport = HttpTransport(Nowhere())
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(
            OutboundRequest(Origin("http", "nowhere.internal", 80), "POST", "/", ()), within(5)
        )
    assert caught.value.reason == "dns"
    await transport.close()


async def test_the_second_address_is_tried_when_the_first_refuses() -> None:
    async with RawServer(echo) as server:

        class Two:
            async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
                return [("127.0.0.1", 1), ("127.0.0.1", server.port)]

        transport = HttpTransport(Two())
        request = OutboundRequest(Origin("http", "two.internal", 80), "POST", "/", ())
        assert (await transport.send(request, within(5))).status == 200
        await transport.close()


async def test_an_address_that_swallows_packets_leaves_time_for_the_next() -> None:
    async with RawServer(echo) as server:
        # A full backlog: the kernel answers no more connections.
        deaf = socket.create_server(("127.0.0.1", 0), backlog=0)
        port: int = deaf.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(("127.0.0.1", port))

        class Two:
            async def resolve(self, host: str, _: int) -> list[tuple[str, int]]:
                return [("127.0.0.1", port), ("127.0.0.1", server.port)]

        transport = HttpTransport(Two())
        request = OutboundRequest(Origin("http", "two.internal", 80), "POST", "/", ())
        assert (await transport.send(request, within(5, connect=0.6))).status == 200
        await transport.close()
        for one in (*callers, deaf):
            one.close()


def test_dead_peers_are_found_by_the_kernel() -> None:
    """timeouts-03, failover-10: a peer that vanished in silence."""
    opened = _open_socket(("127.0.0.1", 80))
    with opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 10_000
            assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 15


async def test_a_renewed_authority_is_read_after_a_drain(papers: Papers, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    other = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(pem(certificate("other", other, "other", other.public_key())))
    async with RawServer(echo, server_side(papers)) as server:
        transport = HttpTransport(SystemResolver({"eu.internal": ("127.0.0.1", server.port)}))
        origin = Origin("https", "eu.internal", 443, TlsFiles(ca=str(file)))
        request = OutboundRequest(origin, "POST", "/", ())
        with pytest.raises(ConnectFailed):
            await transport.send(request, within(5))
        file.write_bytes(Path(papers.ca).read_bytes())
        transport.drain(origin)
        assert (await transport.send(request, within(5))).status == 200
        await transport.close()


async def test_a_slow_name_is_a_connect_timeout() -> None:
    class Slow:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await asyncio.sleep(5)
            return []

    transport = HttpTransport(Slow())
    request = OutboundRequest(Origin("http", "slow.internal", 80), "POST", "/", ())
    began = now()
    with pytest.raises(ConnectFailed) as caught:
        await transport.send(request, within(5, connect=0.05))
    assert caught.value.reason == "timeout"
    assert now() - began < 1
    assert transport.counts.open == 0
    await transport.close()


async def test_cancelling_a_connect_leaves_nothing() -> None:
    class Slow:
        async def resolve(self, host: str, port: int) -> list[tuple[str, int]]:
            await asyncio.sleep(60)
            return []

    transport = HttpTransport(Slow())
    request = OutboundRequest(Origin("http", "slow.internal", 80), "POST", "/", ())
    task = asyncio.create_task(transport.send(request, within(60)))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait([task])
    assert transport.counts.open == 0
    await transport.close()


async def test_environment_variables_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "AWS_ENDPOINT_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with served(echo) as (server, transport):
        assert (await transport.send(ask(server), within(5))).status == 200


@dataclass(frozen=True)
class Papers:
    """PEM files of one test authority, a server certificate for `eu.internal`, a client's, and one
    that names `eu.internal` in its subject alone."""

    ca: str
    server: str
    client: str
    nameless: str


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    authority = ec.generate_private_key(ec.SECP256R1())
    root = certificate("test authority", authority, "test authority", authority.public_key())
    (folder / "ca.pem").write_bytes(pem(root))
    for name, file in (("eu.internal",) * 2, ("client.internal",) * 2, ("eu.internal", "nameless")):
        key = ec.generate_private_key(ec.SECP256R1())
        names = () if file == "nameless" else (name,)
        made = certificate("test authority", authority, name, key.public_key(), names)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (folder / f"{file}.pem").write_bytes(secret + pem(made))
    server, client = folder / "eu.internal.pem", folder / "client.internal.pem"
    return Papers(str(folder / "ca.pem"), str(server), str(client), str(folder / "nameless.pem"))


def pem(made: x509.Certificate) -> bytes:
    return made.public_bytes(serialization.Encoding.PEM)


def certificate(
    issuer: str,
    key: ec.EllipticCurvePrivateKey,
    subject: str,
    public: ec.EllipticCurvePublicKey,
    names: tuple[str, ...] = (),
) -> x509.Certificate:
    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    today = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .issuer_name(named(issuer))
        .subject_name(named(subject))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - timedelta(days=1))
        .not_valid_after(today + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer == subject, path_length=None), critical=True)
    )
    if names:
        found = x509.SubjectAlternativeName([x509.DNSName(name) for name in names])
        made = made.add_extension(found, critical=False)
    return made.sign(key, hashes.SHA256())


def server_side(
    papers: Papers, *, asks: bool = False, old: bool = False, nameless: bool = False
) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(papers.nameless if nameless else papers.server)
    if asks:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(papers.ca)
    if old:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            made.minimum_version = ssl.TLSVersion.TLSv1
            made.maximum_version = ssl.TLSVersion.TLSv1_1
        made.set_ciphers("ALL:@SECLEVEL=0")
    return made


async def over_tls(
    tls: ssl.SSLContext, files: TlsFiles | None, host: str = "eu.internal", count: int = 1
) -> tuple[bytes, int]:
    """The last of `count` answers over TLS, and the number of connections that it took."""
    async with RawServer(echo, tls) as server:
        transport = HttpTransport(SystemResolver({host: ("127.0.0.1", server.port)}))
        try:
            origin = Origin("https", host, 443, files)
            answer = b""
            for number in range(count):
                body = b"%d" % number * 300_000
                request = OutboundRequest(origin, "POST", "/", (), body)
                answer = await whole(await transport.send(request, within(10)))
                assert answer == body
            return answer[-1:], len(server.lines)
        finally:
            await transport.close()


async def test_tls_with_the_endpoint_s_own_authority(papers: Papers) -> None:
    files = TlsFiles(ca=papers.ca)
    assert await over_tls(server_side(papers), files, count=3) == (b"2", 1)


async def test_the_dot_that_ends_a_full_name_is_no_part_of_it_in_tls(papers: Papers) -> None:
    asked: list[str | None] = []
    tls = server_side(papers)
    tls.sni_callback = lambda _object, name, _context: asked.append(name)
    files = TlsFiles(ca=papers.ca)
    assert await over_tls(tls, files, "eu.internal.") == (b"0", 1)
    assert asked == ["eu.internal"]


@pytest.mark.parametrize("case", ["unknown authority", "other name", "old version", "no name"])
async def test_tls_that_proves_nothing_is_refused(papers: Papers, case: str) -> None:
    files = None if case == "unknown authority" else TlsFiles(ca=papers.ca)
    host = "us.internal" if case == "other name" else "eu.internal"
    tls = server_side(papers, old=case == "old version", nameless=case == "no name")
    with pytest.raises(ConnectFailed) as caught:
        await over_tls(tls, files, host)
    assert (caught.value.reason, caught.value.fate) == ("tls", Fate.NOT_SENT)


async def test_tls_with_our_own_certificate(papers: Papers) -> None:
    files = TlsFiles(ca=papers.ca, cert=papers.client)
    assert await over_tls(server_side(papers, asks=True), files) == (b"0", 1)


async def test_plain_text_where_tls_was_expected() -> None:
    async def greet(line: Line) -> None:
        await line.say(b"220 hello\r\n")
        await line.closed_by_peer()

    async with RawServer(greet) as server:
        transport = HttpTransport()
        request = OutboundRequest(Origin("https", "127.0.0.1", server.port), "POST", "/", ())
        with pytest.raises(ConnectFailed) as caught:
            await transport.send(request, within(5, connect=2))
        assert caught.value.reason == "tls"
        await transport.close()


def test_session_keys_are_written_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    made = tls_context(None)
    assert not made.keylog_filename
    assert made.check_hostname
    found = made.minimum_version, made.verify_mode
    assert found == (ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED)


async def test_the_system_resolver_gives_addresses_as_they_are() -> None:
    assert list(await SystemResolver().resolve("::1", 8000)) == [("::1", 8000)]
    assert ("127.0.0.1", 8000) in await SystemResolver().resolve("localhost", 8000)
