"""KV caches that go from one simulated server to another: the wire shapes of vLLM's NIXL connector.

A server started with `--kv-transfer-config` keeps the cache of a prompt when it is asked to
(`do_remote_decode`), for as long as its lease, and says in its answer where it is. Another one that
is given that (`do_remote_prefill`) fetches it, once, instead of computing the prompt. What it can't
fetch fails its request, as `kv_load_failure_policy: fail` has it. The blocks themselves are numbers
here, handed over within the process: there is nobody else to fetch them.

Source: vLLM 0.32, `kv_connector/v1/nixl/pull_scheduler.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from router.simulator.vllm_api import ApiError, dumps

LEASE: Final = 30.0
"""Seconds for which a cache is kept for another server."""


@dataclass(frozen=True, slots=True)
class _Kept:
    tokens: int
    until: float


class Links:
    """Every server's link to the others, which carries one cache after the other."""

    def __init__(self) -> None:
        self._free: dict[str, float] = {}

    def carry(self, giver: str, taker: str, seconds: float, now: float) -> float:
        """When a cache has arrived that takes so long, and begins once both links are free."""
        began = max(now, self._free.get(giver, 0.0), self._free.get(taker, 0.0))
        self._free[giver] = self._free[taker] = began + seconds
        return began + seconds


class Bank:
    """Every cache that a fleet's servers keep for each other, by server and request."""

    def __init__(self) -> None:
        self.links = Links()
        self._kept: dict[tuple[str, str], _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, engine: str, request: str, tokens: int, until: float) -> None:
        """Keep so many tokens of a request until a time."""
        self._kept[engine, request] = _Kept(tokens, until)

    def fetch(self, engine: str, request: str, now: float) -> int | None:
        """Its tokens, once; `None` when they are gone."""
        found = self._kept.pop((engine, request), None)
        return None if found is None or found.until < now else found.tokens

    def forget(self, engine: str) -> None:
        """A server is gone, with all that it kept."""
        for key in [key for key in self._kept if key[0] == engine]:
            del self._kept[key]


@dataclass(frozen=True, slots=True)
class Connector:
    """One server's side of it; `address` is its side channel's host and port."""

    bank: Bank
    engine: str
    address: tuple[str, int]
    block_size: int

    def received(self, asked: Mapping[str, object], now: float) -> int:
        """Prompt tokens that are fetched for a request; 0 when it asks for none.

        Raises:
            ApiError: they are gone, and with them the request.
        """
        if asked.get("do_remote_prefill") is not True:
            return 0
        engine, request = asked.get("remote_engine_id"), asked.get("remote_request_id")
        found = self.bank.fetch(str(engine), str(request), now)
        if found is None:
            raise ApiError(500, "KV cache load failure", "InternalServerError")
        return found

    def until(self, asked: Mapping[str, object], seconds: float, now: float) -> float:
        """When what was fetched for a request is here, if its way alone takes so long."""
        return self.bank.links.carry(str(asked.get("remote_engine_id")), self.engine, seconds, now)

    def kept(
        self, asked: Mapping[str, object], request: str, tokens: int, now: float
    ) -> Mapping[str, object] | None:
        """Keep a finished prompt if asked to; what the answer says of it."""
        if asked.get("do_remote_decode") is not True:
            return None
        self.bank.keep(self.engine, request, tokens, now + LEASE)
        host, port = self.address
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [list(range(-(-tokens // self.block_size)))],
            "remote_engine_id": self.engine,
            "remote_request_id": request,
            "remote_host": host,
            "remote_port": port,
            "tp_size": 1,
            "remote_num_tokens": tokens,
            "transfer_mode": "pull",
        }


def asked_in(body: bytes) -> Mapping[str, object]:
    """A request's `kv_transfer_params`; empty without any.

    Raises:
        ApiError: they are no object.
    """
    found = json.loads(body).get("kv_transfer_params")
    if found is None:
        return {}
    if not isinstance(found, dict):
        message = "kv_transfer_params must be an object"
        raise ApiError(400, message, "BadRequestError", "kv_transfer_params")
    return found


def telling(body: bytes, params: Mapping[str, object] | None) -> bytes:
    """An answer that says where its prompt's cache is."""
    return dumps({**json.loads(body), "kv_transfer_params": params})
