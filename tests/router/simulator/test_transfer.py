"""The servers' own side of two steps: kept once, fetched once, gone when it is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.attempts.prefilling import KEEP
from router.simulator.fleet import SimulatedFleet
from router.simulator.replica import ReplicaSpec
from router.simulator.timing import EngineSpec
from router.simulator.transfer import LEASE, Bank, Connector, Links, asked_in
from router.simulator.vllm_api import ApiError
from tests.router.simulator.chatting import ask

ENGINE = EngineSpec(prefill_rate=1000.0)


def connector(bank: Bank) -> Connector:
    return Connector(bank, "e", ("127.0.0.1", 5600), 16)


def told(found: Mapping[str, object] | None) -> Mapping[str, object]:
    assert found is not None
    return found


def test_what_is_kept_is_fetched_once_within_its_lease() -> None:
    bank = Bank()
    there = told(connector(bank).kept(KEEP, "r", 33, 10.0))
    assert there["remote_block_ids"] == [[0, 1, 2]]
    assert connector(bank).received(there, 11.0) == 33
    with pytest.raises(ApiError) as error:
        connector(bank).received(there, 11.0)
    assert error.value.status == 500
    there = told(connector(bank).kept(KEEP, "r", 33, 10.0))
    with pytest.raises(ApiError):
        connector(bank).received(there, 10.1 + LEASE)


def test_nobody_keeps_or_fetches_what_is_not_asked_for() -> None:
    bank = Bank()
    assert connector(bank).kept({}, "r", 33, 0.0) is None
    assert connector(bank).received({}, 0.0) == 0
    assert len(bank) == 0


def test_params_are_an_object() -> None:
    assert asked_in(b'{"kv_transfer_params": null}') == {}
    with pytest.raises(ApiError):
        asked_in(b'{"kv_transfer_params": "x"}')


async def test_two_servers_and_one_without_a_connector(http: httpx.AsyncClient) -> None:
    spec = ReplicaSpec(transfers=True, engine=ENGINE)
    specs = {"p": spec, "d": spec, "plain": ReplicaSpec(speed=100.0)}
    async with SimulatedFleet(specs) as fleet:

        async def post(name: str, **more: object) -> httpx.Response:
            body = {**ask("word " * 400), **more}
            return await http.post(fleet[name].url + "/v1/chat/completions", json=body)

        first = await post("p", max_tokens=1, kv_transfer_params=dict(KEEP))
        there = first.json()["kv_transfer_params"]
        assert there["do_remote_prefill"] is True
        assert len(fleet.bank) == 1
        second = await post("d", max_tokens=2, kv_transfer_params=there)
        assert second.json()["kv_transfer_params"] is None
        alone = await post("d", max_tokens=2)
        said = [one.json()["choices"][0]["message"]["content"] for one in (second, alone)]
        assert said[0] == said[1]
        hits = fleet["d"].seen
        assert [hit.transfer for hit in hits] == ["fetched", ""]
        plain = await post("plain", max_tokens=1, kv_transfer_params=dict(KEEP))
        assert "kv_transfer_params" not in plain.json()
        again = await post("p", max_tokens=1, kv_transfer_params=dict(KEEP))
        fleet["p"].kill()
        gone = await post("d", kv_transfer_params=again.json()["kv_transfer_params"])
        assert (gone.status_code, fleet["d"].seen[-1].transfer) == (500, "lost")
        assert json.loads(gone.text)["error"]["type"] == "InternalServerError"


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.floats(0.1, 5)), max_size=9)
)
def test_a_link_carries_one_cache_after_the_other(caches: list[tuple[str, str, float]]) -> None:
    links, until = Links(), 0.0
    spans: dict[str, list[tuple[float, float]]] = {}
    for giver, taker, seconds in caches:
        ended = links.carry(giver, taker, seconds, 1.0)
        until = max(until, ended)
        for one in (giver, taker):
            assert all(ended - seconds >= end - 1e-9 for _, end in spans.get(one, ()))
            spans.setdefault(one, []).append((ended - seconds, ended))
    assert until <= 1.0 + sum(seconds for _, _, seconds in caches) + 1e-6
