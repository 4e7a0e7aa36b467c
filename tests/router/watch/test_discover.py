"""Discovery from names and files: what is found serves, what is gone is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from regions.health import Sign
from router.providers.base import Bearer
from router.settings.members import listed
from router.transport.names import Located, NotFound, Service
from router.watch import discover, start
from router.watch.discover import Discoverer, placed
from tests.cases.built import BASELINE, ENVIRONMENT, Files, built, until
from tests.router.crowd import hosts
from tests.router.scripted import answer, refused
from tests.router.watch.fleets import FILE, URL, Names, Server, fleet, keys


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "SETTLED", 0.05)


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
    with pytest.raises(ValueError, match="in line 1") as error:
        listed("http://me:secret@host")
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


def shared(within: str = "") -> Files:
    """A router whose `fra` and `par` are the servers behind one name."""
    source = 'dns: "fra.internal:8000"'
    here = f"region: self:fra1, replicas: {{{source}{within}}}"
    text = BASELINE.replace('region: self:par1, url: "http://par1"', here)
    return Files(baseline=text.replace(URL, f"replicas: {{{source}}}"))


class Counted(Names):
    """A resolver that counts what it is asked."""

    asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return await super().__call__(host, port)


async def test_what_several_endpoints_name_is_looked_up_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "Addresses", Hanging)  # the router's own looks find nothing
    async with built(tmp_path, lambda host, number: answer(), shared()) as world:
        assert world.router.watches is not None
        swap, live, names = world.router.watches.swap, world.router.live, Counted("10.1.0.1")
        one = Discoverer(live, swap, Server(refused()), {}, tmp_path, names)
        for look in (1, 2):
            await one.look()
            assert names.asked == look
        assert list(live.snapshot.targets["fra"]) == ["fra/10.1.0.1:8000"]
        assert list(live.snapshot.targets["par"]) == ["par/10.1.0.1:8000"]
        names.down = True
        await one.look()
        told = "`fra.internal` can't be resolved"
        assert [live.notes[f"discover:{name}"] for name in ("fra", "par")] == [told, told]


class Odd(Names):
    """A resolver that fails as nobody expects."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        raise RuntimeError("a secret")


async def test_an_error_that_nobody_expects_keeps_no_other_fleet_and_no_reload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(start, "Addresses", Odd)
    (tmp_path / "iad.txt").write_text("http://10.9.0.1:80\n")
    text = shared().baseline.replace('url: "http://iad1"', "replicas: {file: iad.txt}")
    async with built(tmp_path, lambda host, number: answer()) as world:
        assert world.router.watches is not None
        live = world.router.live
        await world.router.watches.swap.reload(Files(baseline=text).load(tmp_path))
        assert list(live.snapshot.targets["iad"]) == ["iad/10.9.0.1:80"]
        told = "`dns:fra.internal:8000` can't be looked up: RuntimeError"
        assert live.notes["discover:fra"] == live.notes["discover:par"] == told


async def test_each_endpoint_is_told_of_what_it_may_not_use_of_a_shared_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "Addresses", Hanging)  # the router's own looks find nothing
    files = shared(", within: [10.2.0.0/16]")
    async with built(tmp_path, lambda host, number: answer(), files) as world:
        assert world.router.watches is not None
        swap, live, names = world.router.watches.swap, world.router.live, Names("10.1.0.1")
        one = Discoverer(live, swap, Server(refused()), {}, tmp_path, names)
        await one.look()
        assert list(live.snapshot.targets["fra"]) == ["fra/10.1.0.1:8000"]
        assert "discover:fra" not in live.notes
        assert list(live.snapshot.targets["par"]) == []
        assert live.notes["discover:par"] == "all 1 addresses found lie outside `within`"


async def test_a_ttl_of_years_is_believed_for_an_hour(tmp_path: Path) -> None:
    """RFC 2181 lets one be of 68 years; what was found would have stayed until a restart."""
    asked: list[str] = []

    async def service(name: str) -> Service:
        asked.append(name)
        return Service((Located("10.1.0.1", 8000, 1, 1),), 2.0**31)

    text = BASELINE.replace(URL, "replicas: {srv: _llm._tcp.fra}")
    async with built(tmp_path, lambda host, number: answer(), Files(baseline=text)) as world:
        assert world.router.watches is not None
        live, now = world.router.live, [0.0]
        live.loop_time = lambda: now[0]
        swap = world.router.watches.swap
        one = Discoverer(live, swap, Server(refused()), {}, tmp_path, service=service)
        for at, looks in ((0.0, 1), (3599.0, 1), (3601.0, 2)):
            now[0] = at
            await one.look()
            assert len(asked) == looks


async def test_a_fleet_that_a_reload_does_not_find_is_told_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told by the look after it, ten seconds later, and meanwhile nothing said why."""
    monkeypatch.setattr(start, "Addresses", Hanging)
    monkeypatch.setattr(discover, "AHEAD", 0.05)
    async with built(tmp_path, lambda host, number: answer()) as world:
        assert world.router.watches is not None
        live = world.router.live
        await world.router.watches.swap.reload(shared().load(tmp_path))
        told = "`dns:fra.internal:8000` was not found in 0.05 s"
        for name in ("fra", "par"):
            assert f"discover:{name}: {told}" in live.degraded()
