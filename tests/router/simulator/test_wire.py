from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from router.simulator.wire import Listener, Reply, Request, Started, head


async def talk(listener: Listener, data: bytes, *, close: bool = True) -> bytes:
    reader, writer = await asyncio.open_connection(listener.host, listener.port)
    writer.write(data)
    if close:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


async def echo(request: Request, reply: Reply) -> None:
    body = f"{request.method} {request.path} {request.query} {request.body!r}".encode()
    await reply.answer(200, body, "text/plain", ("x-from", request.header("x-from") or "-"))


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    listening = Listener(echo)
    await listening.start()
    yield listening
    await listening.close()


async def test_a_request_is_parsed_and_answered_on_a_connection_that_stays_open(
    listener: Listener,
) -> None:
    one = b"POST /a%2Fb?c=1 HTTP/1.1\r\nHost: x\r\nX-From: me\r\nContent-Length: 2\r\n\r\nhi"
    last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    out = await talk(listener, one + last, close=False)
    assert out.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert b"POST /a%2Fb c=1 b'hi'" in out
    assert b"x-from: me" in out
    assert out.endswith(b"GET /  b''")


async def test_a_chunked_body_and_expect_continue_are_understood(listener: Listener) -> None:
    request = (
        b"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n"
        b"Connection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    )
    out = await talk(listener, request, close=False)
    assert out.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK")
    assert out.endswith(b"b'abc'")


async def test_garbage_is_answered_with_400_and_the_listener_lives(listener: Listener) -> None:
    assert (await talk(listener, b"\x00\x01\x02 nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")
    good = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert (await talk(listener, good, close=False)).startswith(b"HTTP/1.1 200")


async def test_a_stopped_listener_refuses_resets_and_comes_back_on_its_port(
    listener: Listener,
) -> None:
    port = listener.port
    reader, writer = await asyncio.open_connection(listener.host, port)
    await asyncio.sleep(0.01)
    listener.stop()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    writer.close()
    assert not listener.up
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(listener.host, port)
    await listener.start()
    assert (listener.up, listener.port) == (True, port)
    good = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert (await talk(listener, good, close=False)).startswith(b"HTTP/1.1 200")


async def test_a_client_that_leaves_cancels_its_answer() -> None:
    cancelled = asyncio.Event()

    async def never(request: Request, reply: Reply) -> None:
        del request
        try:
            await reply.gone.wait()
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    listening = Listener(never)
    await listening.start()
    _, writer = await asyncio.open_connection(listening.host, listening.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.02)
    writer.close()
    await asyncio.wait_for(cancelled.wait(), 2)
    await listening.close()


async def test_a_slow_reader_slows_the_writer_down() -> None:
    sent = 0

    async def flood(request: Request, reply: Reply) -> None:
        nonlocal sent
        del request
        reply.start(200, (), None)
        for _ in range(400):
            await reply.send(b"x" * 65536)
            sent += 1
        reply.end()

    listening = Listener(flood)
    await listening.start()
    _, writer = await asyncio.open_connection(listening.host, listening.port, limit=1024)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.sleep(0.1)
    assert 0 < sent < 400
    writer.close()
    await listening.close()


def test_unknown_statuses_have_a_head_too() -> None:
    assert head(529, [("a", "b")]) == b"HTTP/1.1 529 Unknown\r\na: b\r\n\r\n"


async def test_small_writes_are_not_held_back(listener: Listener) -> None:
    _, writer = await asyncio.open_connection(listener.host, listener.port)
    await asyncio.sleep(0.01)
    (connection,) = listener.connections
    transport = connection._transport
    assert transport is not None
    sock = transport.get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    writer.close()


def certificate(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Server and client contexts of a self-signed certificate for one AWS hostname."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated")])
    now = datetime.now(UTC)
    host = x509.DNSName("bedrock-runtime.eu-central-1.amazonaws.com")
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = directory / "pem"
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    pem.write_bytes(secret + signed.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


async def test_it_speaks_tls_under_any_name(tmp_path: Path) -> None:
    server, client = certificate(tmp_path)
    listening = Listener(echo, tls=server)
    await listening.start()
    assert listening.url.startswith("https://127.0.0.1:")
    reader, writer = await asyncio.open_connection(
        listening.host, listening.port, ssl=client,
        server_hostname="bedrock-runtime.eu-central-1.amazonaws.com",
    )  # fmt: skip
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 200 OK")
    writer.close()
    await listening.close()


async def test_connections_taken_just_before_a_stop_do_not_survive_it(listener: Listener) -> None:
    for _ in range(10):
        opening = [
            asyncio.create_task(asyncio.open_connection(listener.host, listener.port))
            for _ in range(8)
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        listener.stop()
        for found in await asyncio.gather(*opening, return_exceptions=True):
            if isinstance(found, BaseException):
                assert isinstance(found, ConnectionError)
                continue
            reader, writer = found
            with contextlib.suppress(ConnectionError):
                writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                assert await asyncio.wait_for(reader.read(), 2) == b""
            writer.close()
        assert not listener.connections
        await listener.start()


@dataclass
class Line:
    outcome: str = "open"
    status: int = 0
    ended: float | None = None


@pytest.mark.parametrize(
    ("error", "up", "outcome"),
    [
        (None, True, "answered"),
        (ConnectionResetError(), True, "gone"),
        (ConnectionResetError(), False, "killed"),
        (asyncio.CancelledError(), True, "gone"),
        (asyncio.CancelledError(), False, "killed"),
        (ValueError(), True, "open"),
    ],
)
async def test_how_a_request_ended_is_noted(
    listener: Listener, error: BaseException | None, up: bool, outcome: str
) -> None:
    line, reply = Line(), cast("Reply", SimpleNamespace(status=204))
    if not up:
        listener.stop()
    told = contextlib.nullcontext()
    if error is not None and not isinstance(error, ConnectionError):
        told = pytest.raises(type(error))  # type: ignore[assignment]
    with told, listener.noting(line, reply):
        if error is not None:
            raise error
        line.outcome = "answered"
    assert (line.outcome, line.status) == (outcome, 204)
    assert line.ended is not None


async def test_what_is_started_is_closed_however_it_ends() -> None:
    said: list[str] = []

    class One(Started):
        async def start(self) -> None:
            said.append("start")

        async def close(self) -> None:
            said.append("close")

    with pytest.raises(ValueError, match="inside"):
        async with One():
            raise ValueError("inside")
    assert said == ["start", "close"]
