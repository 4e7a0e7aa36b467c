"""Who said what: sources are told apart, and refusals become the client's error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from policies.attributes import AttributeNotYours, AttributeUnknown, Supplied
from policies.model import App
from policies.timed import effective_now
from router.auth import Principal
from router.errors import RequestError
from router.inbound.exchange import Headers
from router.inbound.said import refusing, said_by_head
from router.surfaces.chat import ChatCompletions
from router.types import Arrival, Authenticated, Purpose
from tests.router.house import Plan, snapshot
from tests.router.scripted import URLS, FakeExchange, answer, scripted


def known(folder: Path, headers: Headers = (), principal: Principal | None = None) -> Authenticated:
    shot = snapshot(Plan(), URLS, folder)
    tenants = dict(shot.policy.tenants)
    tenants["eu"] = replace(tenants["eu"], attributes={"sector": frozenset({"health", "bank"})})
    apps = {"crm": App("crm", attributes={"zone": frozenset({"red"})})}
    shot = replace(shot, policy=replace(shot.policy, tenants=tenants, apps=apps))
    exchange = FakeExchange(b"{}", headers)
    arrival = Arrival(exchange, "r", 0, 0, 1, ChatCompletions(), Purpose.INTERACTIVE, shot)
    return Authenticated(arrival, principal or Principal("k", "eu"), effective_now(0.0, 0.0))


def test_key_tenant_app_and_headers_each_speak_for_themselves(tmp_path: Path) -> None:
    holder = Principal("k", "eu", "crm", attributes={"staff": ("yes",)})
    headers = [(b"x-domicile-attr-data", b"a, b"), (b"x-other", b"c"), (b"x-domicile-attr-d", b"")]
    assert said_by_head(known(tmp_path, headers, holder)) == [
        Supplied("staff", ("yes",), "key"),
        Supplied("sector", ("bank", "health"), "tenant"),
        Supplied("zone", ("red",), "app"),
        Supplied("data", ("a", "b"), "header"),
        Supplied("d", (), "header"),
    ]


def test_a_tenant_or_app_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert said_by_head(known(tmp_path, (), Principal("k", "other", "none"))) == []


def test_a_header_sent_twice_is_said_twice(tmp_path: Path) -> None:
    headers = [(b"x-domicile-attr-data", b"a"), (b"x-domicile-attr-data", b"b\xff")]
    said = said_by_head(known(tmp_path, headers, Principal("k", "other")))
    assert [one.values for one in said] == [("a",), ("b\xff",)]


@pytest.mark.parametrize("error", [AttributeUnknown("no"), AttributeNotYours("not yours")])
def test_a_refusal_is_the_clients_error(error: Exception) -> None:
    def read() -> None:
        raise error

    with pytest.raises(RequestError) as caught:
        refusing(read)
    assert (caught.value.status, caught.value.code) == (400, error.code)  # type: ignore[attr-defined]
    assert refusing(lambda: 7) == 7


@pytest.mark.parametrize("name", [b"x-domicile-atr-data_class", b"x-domicile-data_class"])
async def test_a_mistyped_header_of_ours_is_no_silence(tmp_path: Path, name: bytes) -> None:
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu", ((name, b"health"),))
        assert (done.status, done.code) == (400, "invalid_header")
        assert world.transport.sent == []
        again = await world.ask("eu", ((b"x-domicile-region", b"self:iad1"),))
        assert again.code == "ok"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("priority", (b"batch", b"batch")),
        ("deadline", (b"30s", b"60s")),
        ("session", (b"one", b"two")),
        ("tier", (b"large", b"small")),
    ],
)
async def test_a_header_of_ours_that_stands_twice_is_refused(
    tmp_path: Path, name: str, values: tuple[bytes, bytes]
) -> None:
    header = f"x-domicile-{name}"
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu", [(header.encode(), value) for value in values])
        assert (done.status, done.code) == (400, "invalid_header")
        assert f"`{header}` stands twice" in done.written.decode()
        assert world.transport.sent == []
        once = await world.ask("eu", [(header.encode(), values[0])])
        assert once.code == "ok"
        answers = [(b"x-domicile-region", b"a"), (b"x-domicile-region", b"b")]
        assert (await world.ask("eu", answers)).code == "ok", "they say nothing, however often"
