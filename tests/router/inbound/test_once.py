"""A header that says whose a request is stands in it once, wherever it is read."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router import admin, public
from router.errors import RequestError
from router.inbound.exchange import RequestHead
from router.inbound.once import ONCE, refuse_repeated
from tests.router.folders import sound
from tests.router.house import KEYS
from tests.router.reloading import BOSS, CLINIC, watched
from tests.router.scripted import answer, scripted

NAMES = st.sampled_from([b"authorization", b"x-api-key", b"accept", b"cookie"])


@given(names=st.lists(NAMES, max_size=8))
def test_a_head_knows_what_stands_twice_in_it(names: list[bytes]) -> None:
    head = RequestHead("POST", "/", b"", [(name, b"%d" % n) for n, name in enumerate(names)])
    assert head.repeated == {name for name in names if names.count(name) > 1}
    if head.repeated & ONCE:
        with pytest.raises(RequestError) as caught:
            refuse_repeated(head.repeated)
        assert (caught.value.code, caught.value.status) == ("invalid_header", 400)
    else:
        refuse_repeated(head.repeated)


@pytest.mark.parametrize("second", ["eu", "us", None])
async def test_two_keys_in_one_request_are_refused(tmp_path: Path, second: str | None) -> None:
    more = f"Bearer {KEYS[second]}" if second else "Basic eDp5"
    async with scripted(tmp_path, lambda host, number: answer()) as world:
        done = await world.ask("eu", [(b"authorization", more.encode())])
        assert (done.status, done.code) == (400, "invalid_header")
        assert b"`authorization` stands twice in the head; send it once" in done.written
        assert world.transport.sent == []
        keys = [(b"x-api-key", b"a"), (b"x-api-key", b"b")]
        assert (await world.ask("eu", keys)).code == "invalid_header"
        assert (await world.ask("eu", [(b"accept", b"a"), (b"accept", b"b")])).code == "ok"


async def test_so_they_are_where_fastapi_answers(tmp_path: Path) -> None:
    async with watched(sound(tmp_path)) as world:
        live = world.router.live
        shown = public.build(live)
        changed = admin.build(live, world.watches)
        paths = ((shown, "GET", "/v1/models"), (shown, "GET", "/domicile/v1/where"),
                 (changed, "POST", "/quarantine"), (changed, "POST", "/reload"))  # fmt: skip
        for app, method, path in paths:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://r") as client:
                keys = [("authorization", f"Bearer {key}") for key in (BOSS, CLINIC)]
                refused = await client.request(method, path, headers=keys, json={})
            assert refused.status_code == 400, path
            error = refused.json()["error"]
            assert (error["code"], error["param"]) == ("invalid_header", "authorization")
