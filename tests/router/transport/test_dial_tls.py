"""TLS to endpoints: whom it trusts, what it proves, and what is told when it fails."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

from router.transport.client import HttpTransport
from router.transport.dial import SystemResolver, tls_context
from router.transport.messages import ConnectFailed, Fate, Origin, OutboundRequest, Tls, TlsFailed
from tests.certificates import DAYS, Days, Paper
from tests.rawserver import Line, RawServer, echo, whole, within


@dataclass(frozen=True)
class Papers:
    """One test authority in PEM, a server certificate for `eu.internal`, a client's in PEM, and one
    that names `eu.internal` in its subject alone; files where that is where they are read from."""

    ca: str
    server: str
    client: str
    nameless: str


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    folder = tmp_path_factory.mktemp("papers")
    authority = Paper.authority()
    server = authority.signed("eu.internal", ("eu.internal",))
    client = authority.signed("client.internal", ("client.internal",))
    nameless = authority.signed("eu.internal")
    for file, paper in (("server", server), ("nameless", nameless)):
        (folder / file).write_text(paper.secret + paper.pem)
    secret = client.secret + client.pem
    return Papers(authority.pem, str(folder / "server"), secret, str(folder / "nameless"))


def server_side(
    papers: Papers, *, asks: bool = False, old: bool = False, nameless: bool = False
) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(papers.nameless if nameless else papers.server)
    if asks:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(cadata=papers.ca)
    if old:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            made.minimum_version = ssl.TLSVersion.TLSv1
            made.maximum_version = ssl.TLSVersion.TLSv1_1
        made.set_ciphers("ALL:@SECLEVEL=0")
    return made


async def over_tls(
    tls: ssl.SSLContext, files: Tls | None, host: str = "eu.internal", count: int = 1
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
    files = Tls(ca=papers.ca)
    assert await over_tls(server_side(papers), files, count=3) == (b"2", 1)


async def test_the_dot_that_ends_a_full_name_is_no_part_of_it_in_tls(papers: Papers) -> None:
    asked: list[str | None] = []
    tls = server_side(papers)
    tls.sni_callback = lambda _object, name, _context: asked.append(name)
    files = Tls(ca=papers.ca)
    assert await over_tls(tls, files, "eu.internal.") == (b"0", 1)
    assert asked == ["eu.internal"]


@pytest.mark.parametrize(
    ("case", "detail"),
    [
        ("unknown authority", "unknown_authority"),
        ("other name", "wrong_name"),
        ("old version", "handshake"),
        ("no name", "wrong_name"),
    ],
)
async def test_tls_that_proves_nothing_is_refused(papers: Papers, case: str, detail: str) -> None:
    files = None if case == "unknown authority" else Tls(ca=papers.ca)
    host = "us.internal" if case == "other name" else "eu.internal"
    tls = server_side(papers, old=case == "old version", nameless=case == "no name")
    with pytest.raises(TlsFailed) as caught:
        await over_tls(tls, files, host)
    assert (caught.value.reason, caught.value.fate) == ("tls", Fate.NOT_SENT)
    assert (caught.value.detail, caught.value.told) == (detail, f"tls_failed:{detail}")


async def test_tls_with_our_own_certificate(papers: Papers) -> None:
    files = Tls(ca=papers.ca, identity=papers.client)
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
    made = tls_context(Tls())
    assert not made.keylog_filename
    assert made.check_hostname
    found = made.minimum_version, made.verify_mode
    assert found == (ssl.TLSVersion.TLSv1_2, ssl.CERT_REQUIRED)


async def test_other_authorities_are_another_origin(papers: Papers) -> None:
    """Nothing is sent over a connection that was made when others were trusted."""
    stranger = Paper.authority("other").pem
    async with RawServer(echo, server_side(papers)) as server:
        transport = HttpTransport(SystemResolver({"eu.internal": ("127.0.0.1", server.port)}))

        def trusting(ca: str) -> OutboundRequest:
            return OutboundRequest(Origin("https", "eu.internal", 443, Tls(ca)), "POST", "/", ())

        good = trusting(papers.ca)
        await whole(await transport.send(good, within(5)))
        assert transport.counts.idle == 1
        with pytest.raises(TlsFailed):
            await transport.send(trusting(stranger), within(5))
        transport.drain(good.origin)
        assert transport.counts.idle == 0
        await whole(await transport.send(trusting(papers.ca + stranger), within(5)))
        assert len(server.lines) == 2
        await transport.close()


async def test_a_context_is_made_once_for_all_that_trust_the_same(papers: Papers) -> None:
    async with RawServer(echo, server_side(papers)) as server:
        transport = HttpTransport(SystemResolver({"eu.internal": ("127.0.0.1", server.port)}))
        origins = [Origin("https", "eu.internal", 443 + n, Tls(papers.ca)) for n in range(8)]
        asked = [OutboundRequest(one, "POST", "/", ()) for one in origins]
        for one in await asyncio.gather(*(transport.send(each, within(10)) for each in asked)):
            await whole(one)
        assert len(transport._dialer._contexts) == 1
        for origin in origins:
            transport.drain(origin)
        assert not transport._dialer._contexts
        await transport.close()


async def test_a_name_of_its_own_is_what_the_certificate_must_prove(papers: Papers) -> None:
    async with RawServer(echo, server_side(papers)) as server:
        transport = HttpTransport()
        for name, right in (("eu.internal", True), ("us.internal", False), (None, False)):
            origin = Origin("https", "127.0.0.1", server.port, Tls(papers.ca, name))
            request = OutboundRequest(origin, "POST", "/", ())
            if right:
                assert await whole(await transport.send(request, within(5))) == b""
            else:
                with pytest.raises(TlsFailed, match="wrong_name"):
                    await transport.send(request, within(5))
        await transport.close()


@pytest.mark.parametrize(
    ("server", "authority", "detail"),
    [
        ((-9, -1), DAYS, "expired"),
        ((1, 9), DAYS, "not_yet_valid"),
        (DAYS, (-9, -1), "expired"),
        (DAYS, DAYS, ""),
    ],
)
async def test_the_time_of_a_certificate_counts(
    tmp_path: Path, server: Days, authority: Days, detail: str
) -> None:
    root = Paper.authority(days=authority)
    tls = root.signed("eu.internal", ("eu.internal",), server).server(tmp_path)
    if not detail:
        assert await over_tls(tls, Tls(root.pem)) == (b"0", 1)
        return
    with pytest.raises(TlsFailed) as caught:
        await over_tls(tls, Tls(root.pem))
    assert (caught.value.detail, caught.value.fate) == (detail, Fate.NOT_SENT)


async def test_each_authority_given_counts_and_no_other(tmp_path: Path) -> None:
    """One that signs servers is enough, without the one above it; another one below the same root
    is not trusted."""
    root = Paper.authority("root")
    ours, theirs = root.signed("ours", ca=True), root.signed("theirs", ca=True)
    good = ours.signed("eu.internal", ("eu.internal",)).server(tmp_path)
    bad = theirs.signed("eu.internal", ("eu.internal",)).server(tmp_path, above=True)
    assert await over_tls(good, Tls(ours.pem)) == (b"0", 1)
    with pytest.raises(TlsFailed, match="unknown_authority"):
        await over_tls(bad, Tls(ours.pem))
    assert await over_tls(bad, Tls(root.pem)) == (b"0", 1)


async def test_authorities_of_one_s_own_replace_the_system_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, own = Paper.authority("known to the system"), Paper.authority("own")
    roots = tmp_path / "roots.pem"
    roots.write_text(known.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    tls = known.signed("eu.internal", ("eu.internal",)).server(tmp_path)
    assert await over_tls(tls, None) == (b"0", 1)
    with pytest.raises(TlsFailed, match="unknown_authority"):
        await over_tls(tls, Tls(own.pem))


async def test_no_context_no_connection(papers: Papers) -> None:
    """What can't be loaded trusts nobody, and is tried anew the next time."""
    async with RawServer(echo, server_side(papers)) as server:
        transport = HttpTransport()
        origin = Origin("https", "127.0.0.1", server.port, Tls("nothing in PEM"))
        for _ in range(2):
            with pytest.raises(TlsFailed, match="handshake"):
                await transport.send(OutboundRequest(origin, "POST", "/", ()), within(5))
        assert (server.lines, transport.counts.open) == ([], 0)
        await transport.close()
