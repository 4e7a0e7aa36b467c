"""Discovery from names, files and Kubernetes: what is found serves, what is gone is forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.health import Sign, Standing
from router.providers.base import Bearer
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts, Tls
from router.watch import discover, start
from router.watch.discover import Discoverer, NotFound, checked, placed, slices
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built, until
from tests.certificates import Paper
from tests.router.crowd import hosts
from tests.router.scripted import Reply, Scripted, ScriptedTransport, answer, refused

URL = 'url: "http://fra1"'
CLUSTER = Paper.authority("cluster")
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "SETTLED", 0.05)


class Names:
    """A resolver whose answers a test sets."""

    def __init__(self, *found: str) -> None:
        self.found: Sequence[str] = found
        self.down = False

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("fra.internal", 8000)
        if self.down:
            raise OSError(5, "no answer")
        return self.found


class Server(ScriptedTransport):
    """An API server."""

    def __init__(self, made: Reply | Exception) -> None:
        super().__init__(lambda host, number: answer())
        self.made = made

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        """See `Transport`."""
        self.sent.append(request)
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


@asynccontextmanager
async def fleet(
    folder: Path,
    replicas: str,
    names: Names | None = None,
    server: Server | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
    more: str = "",
) -> AsyncIterator[tuple[Scripted, Discoverer]]:
    """A router whose `fra` is looked up, and its discoverer; the router's own finds nothing."""
    text = BASELINE.replace(URL, f"replicas: {replicas}{more}")
    files = Files(baseline=text, environment=environment)
    async with built(folder, lambda host, number: answer(), files) as world:
        assert world.router.watches is not None
        swap, live = world.router.watches.swap, world.router.live
        account = folder / "account"
        out = server or Server(refused())
        yield world, Discoverer(live, swap, out, environment, folder, names or Names(), account)


def keys(world: Scripted) -> list[str]:
    return list(world.router.live.snapshot.targets["fra"])


FILE = "{file: fra.txt}"


async def test_a_file_that_changes_under_us(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text("# ours\nhttp://10.1.0.1:80\n\nhttp://10.1.0.2:80 # two\n")
    async with fleet(tmp_path, FILE) as (world, one):
        digest = world.router.live.snapshot.digest
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:80", "fra/10.1.0.2:80"]
        assert world.router.live.snapshot.digest == digest
        for _ in range(4):
            await world.ask("de")
        assert sum(hosts(world).values()) == 4
        assert set(hosts(world)) <= {"10.1.0.1", "10.1.0.2"}
        (tmp_path / "fra.txt").write_text("http://10.1.0.3:80\n")
        await one.look()
        await world.ask("de")
        assert world.transport.sent[-1].origin.host == "10.1.0.3"


async def test_what_is_gone_is_forgotten_and_what_stays_is_kept(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text("http://10.1.0.1:80\nhttp://10.1.0.2:80\n")
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        live = world.router.live
        for key in keys(world):
            live.health.observe(key, Sign.DEAD, live.loop_time())
        (tmp_path / "fra.txt").write_text("http://10.1.0.2:80\n")
        await one.look()
        assert live.health.marked(live.loop_time()) == ("fra/10.1.0.2:80",)
        before = live.snapshot
        await one.look()
        assert live.snapshot is before  # nothing changed, so nothing that is remembered goes


@pytest.mark.parametrize("text", ["ftp://x\n", "http://user:pass@x\n", "not a url\n", None])
async def test_a_file_that_is_wrong_empties_nothing(tmp_path: Path, text: str | None) -> None:
    (tmp_path / "fra.txt").write_text("http://10.1.0.1:80\n")
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        if text is None:
            (tmp_path / "fra.txt").unlink()
        else:
            (tmp_path / "fra.txt").write_text(text)
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:80"]
        note = world.router.live.notes["discover:fra"]
        assert "pass" not in note


async def test_every_address_of_a_name_is_a_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names("10.1.0.1", "10.1.0.2", "fd00::1")
    monkeypatch.setattr(start, "Addresses", lambda: names)
    async with fleet(tmp_path, '{dns: "fra.internal:8000"}', names) as (world, one):
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000", "fra/10.1.0.2:8000", "fra/fd00::1:8000"]
        target = world.router.live.snapshot.targets["fra"]["fra/fd00::1:8000"]
        assert target.url == "http://[fd00::1]:8000"
        for names.down, names.found in ((True, ()), (False, ())):
            await one.look()
            assert len(keys(world)) == 3
            assert "fra.internal" in world.router.live.notes["discover:fra"]
        names.found = ("10.1.0.9",)
        await one.look()
        assert keys(world) == ["fra/10.1.0.9:8000"]
        assert "discover:fra" not in world.router.live.notes


async def test_addresses_outside_the_fleet_s_networks_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names("10.1.0.1", "203.0.113.9")
    monkeypatch.setattr(start, "Addresses", lambda: names)
    written = '{dns: "fra.internal:8000", within: [10.0.0.0/8]}'
    async with fleet(tmp_path, written, names) as (world, one):
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000"]
        assert "1 of 2" in world.router.live.notes["discover:fra"]
        names.found = ("203.0.113.9",)
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000"]
        assert "outside" in world.router.live.notes["discover:fra"]


def slice_of(*found: tuple[str, bool | None], port: str = "http") -> dict[str, object]:
    return {
        "ports": [{"name": "metrics", "port": 9}, {"name": port, "port": 8000}],
        "endpoints": [
            {"addresses": [address], "conditions": {} if ready is None else {"ready": ready}}
            for address, ready in found
        ],
    }


def listed(*items: object) -> Reply:
    return Reply(200, (), [json.dumps({"items": list(items)}).encode()])


@asynccontextmanager
async def pod(folder: Path, server: Server) -> AsyncIterator[tuple[Scripted, Discoverer]]:
    (folder / "account").mkdir()
    (folder / "account" / "token").write_text("pod-token\n")
    (folder / "account" / "ca.crt").write_text(CLUSTER.pem)
    environment = {**ENVIRONMENT, **POD}
    async with fleet(folder, "{kubernetes: llm/large}", None, server, environment) as found:
        yield found


async def test_the_ready_endpoints_of_a_service(tmp_path: Path) -> None:
    server = Server(
        listed(slice_of(("10.1.0.1", True), ("10.1.0.2", False)), slice_of(("10.1.0.3", None)))
    )
    async with pod(tmp_path, server) as (world, one):
        live = world.router.live
        assert live.balance.condition("fra").standing is Standing.MARKED
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000", "fra/10.1.0.3:8000"]
        asked = server.sent[0]
        assert str(asked.origin) == "https://10.0.0.1:6443"
        assert asked.origin.tls == Tls(CLUSTER.pem)
        renewed = Paper.authority("renewed")
        (tmp_path / "account" / "ca.crt").write_text(f"# new\n{renewed.pem}")
        assert asked.target.startswith(
            "/apis/discovery.k8s.io/v1/namespaces/llm/endpointslices?labelSelector="
        )
        assert dict(asked.headers)[b"authorization"] == b"Bearer pod-token"
        server.made = listed(slice_of(("10.1.0.4", True)))
        await one.look()
        assert keys(world) == ["fra/10.1.0.4:8000"]
        assert server.sent[-1].origin.tls == Tls(renewed.pem)
        (await world.ask("de")).sent["x-domicile-endpoint"]
        assert world.transport.sent[-1].origin.host == "10.1.0.4"


@pytest.mark.parametrize(
    "made", [refused(), Reply(403), Reply(200, (), [b"{"]), Reply(200, (), [b"[]"])]
)
async def test_an_api_server_in_trouble_empties_nothing(
    tmp_path: Path, made: Reply | Exception
) -> None:
    server = Server(listed(slice_of(("10.1.0.1", True))))
    async with pod(tmp_path, server) as (world, one):
        await one.look()
        server.made = made
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000"]
        assert "API server" in world.router.live.notes["discover:fra"]


async def test_outside_a_cluster_it_is_told(tmp_path: Path) -> None:
    async with fleet(tmp_path, "{kubernetes: llm/large}") as (world, one):
        await one.look()
        assert "no cluster" in world.router.live.notes["discover:fra"]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["items", "ports", "port", "endpoints", "addresses", "conditions"]),
        inner, max_size=4,
    ),
    max_leaves=12,
))  # fmt: skip
def test_no_answer_breaks_the_reading(document: object) -> None:
    try:
        found = list(slices(json.dumps(document).encode()))
    except NotFound:
        return
    assert all(one.startswith("http://") for one in found)


async def test_a_fleets_credential_goes_to_its_replicas(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text("http://10.1.0.1:80\n")
    more = ', credentials: "env:OPENAI_EU"'
    async with fleet(tmp_path, FILE, more=more) as (world, one):
        await one.look()
        target = world.router.live.snapshot.targets["fra"]["fra/10.1.0.1:80"]
        assert target.credential == Bearer(ENVIRONMENT["OPENAI_EU"])


async def test_a_reload_keeps_what_was_found(tmp_path: Path) -> None:
    (tmp_path / "fra.txt").write_text("http://10.1.0.1:80\n")
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        assert world.router.watches is not None
        text = BASELINE.replace(URL, "replicas: {file: fra.txt}, context: 4096")
        new = Files(baseline=text).load(tmp_path)
        await world.router.watches.swap.reload(new)
        assert world.router.live.snapshot.digest == new.digest
        assert keys(world) == ["fra/10.1.0.1:80"]


async def test_nothing_is_told_of_a_fleet_that_a_reload_took_away(tmp_path: Path) -> None:
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        assert "discover:fra" in world.router.live.notes
        assert world.router.watches is not None
        await world.router.watches.swap.reload(Files().load(tmp_path))
        await one.look()
        assert "discover:fra" not in world.router.live.notes


def test_a_line_that_may_hold_a_key_is_not_shown() -> None:
    with pytest.raises(NotFound) as error:
        checked("http://me:secret@host")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "found", "told"),
    [
        ("", ["fra/10.1.0.1:80"], "is empty"),
        (" \n\n", ["fra/10.1.0.1:80"], "is empty"),
        ("# none\n", [], "has no replica now"),
        ("\ufeffhttp://10.1.0.2:80\r\n", ["fra/10.1.0.2:80"], None),
        ("http://10.1.0.2:80\nhttp://10.1.0.2:80/\n", ["fra/10.1.0.2:80"], None),
    ],
)
async def test_a_file_that_is_just_written_empties_nothing_and_no_replicas_are_told(
    tmp_path: Path, text: str, found: list[str], told: str | None
) -> None:
    (tmp_path / "fra.txt").write_text("http://10.1.0.1:80\n")
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        (tmp_path / "fra.txt").write_text(text, "utf-8")
        await one.look()
        assert keys(world) == found
        note = world.router.live.notes.get("discover:fra")
        assert (note is None) if told is None else (note is not None and told in note)


async def test_of_a_file_that_is_being_written_nothing_is_taken(tmp_path: Path) -> None:
    """Of half a line the port was taken that stands in no line."""
    path, whole = tmp_path / "fra.txt", "http://10.1.0.1:8000\nhttp://10.1.0.2:8000\n"
    path.write_text(whole)
    async with fleet(tmp_path, FILE) as (world, one):
        await one.look()
        before = keys(world)
        path.write_text(whole[:18])
        looking = asyncio.create_task(one.look())
        for end in (25, len(whole)):
            await asyncio.sleep(0.03)
            assert keys(world) == before
            path.write_text(whole[:end])
        await looking
        assert keys(world) == before
        path.write_text(f"{whole}http://10.1.0.3:8000")  # without an end, as `printf` writes it
        await one.look()
        assert len(keys(world)) == 3


async def test_one_odd_address_keeps_no_other_from_being_found(tmp_path: Path) -> None:
    """A whole fleet stood still for one slice with an address that can't be called."""
    odd = slice_of(("fe80::1%eth0", True), ("", True), ("10.1.0.1", True))
    server = Server(listed(odd, slice_of(("10.1.0.2", True))))
    async with pod(tmp_path, server) as (world, one):
        await one.look()
        assert keys(world) == ["fra/10.1.0.1:8000", "fra/10.1.0.2:8000"]
        server.made = listed(slice_of(("", True)))
        await one.look()
        assert len(keys(world)) == 2


def test_what_cannot_be_called_is_left_out_and_told() -> None:
    found = placed([("http://10.1.0.1:0", 0, 1.0), ("http://10.1.0.1:80", 0, 1.0)])
    assert [one.at for one in found.places] == ["10.1.0.1:80"]
    assert found.left == (
        "1 of the addresses found can't be called: port `0` is not between 1 and 65535",
    )
    with pytest.raises(NotFound, match="2 of the addresses found"):
        placed([("http://a b", 0, 1.0), ("http://", 0, 1.0)])
    assert placed([]).places == ()


class Hanging(Names):
    """A resolver whose name servers are gone: the system waits long for each."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_name_server_that_is_gone_keeps_no_other_fleet_from_being_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One look of half a minute was over with the second of them, and nothing of it in force."""
    (tmp_path / "iad.txt").write_text("http://10.9.0.1:80\n")
    monkeypatch.setattr(discover, "PATIENCE", 0.5)
    names = "replicas: {{dns: {}.internal:8000}}"
    text = BASELINE.replace('url: "http://par1"', names.format("par"))
    text = text.replace('url: "http://iad1"', "replicas: {file: iad.txt}")
    text = text.replace(URL, names.format("fra"))
    async with built(tmp_path, lambda host, number: answer(), Files(baseline=text)) as world:
        assert world.router.watches is not None
        swap, live = world.router.watches.swap, world.router.live

        def said(note: str, told: str) -> bool:
            return live.notes.get(note) == told

        out, hanging = Server(refused()), Hanging()
        one = Discoverer(live, swap, out, {}, tmp_path, hanging)
        looking = asyncio.create_task(one.look())
        await until(lambda: "iad/10.9.0.1:80" in live.snapshot.targets["iad"])
        assert not looking.done()
        for name in ("fra", "par"):
            told = f"`dns:{name}.internal:8000` was not found in {discover.PATIENCE:g} s"
            await until(partial(said, f"discover:{name}", told), 8)
        await asyncio.wait_for(looking, 5)
