"""vLLM: everything passes but what moves bytes."""

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import Ask, Misconfigured, Target
from router.providers.vllm import Vllm

THERE = Endpoint(name="e", kind="vllm", provider="self", model="tiny", self_operated=True)
TARGET = Target("http://127.0.0.1:8000")


def test_unknown_parameters_pass(ask: Callable[..., Ask]) -> None:
    asked = ask(guided_choice=["a", "b"], min_p=0.1, new_in_2027={"x": [1]}, api_base="x")
    sent = orjson.loads(Vllm().encode(asked, THERE, TARGET, 0).body)
    assert sent == {**asked.body, "model": "tiny"}


def test_the_cache_is_not_moved_by_clients(ask: Callable[..., Ask]) -> None:
    asked = ask(kv_transfer_params={"remote_host": "10.0.0.9"})
    with pytest.raises(RequestError, match="kv_transfer_params"):
        Vllm().encode(asked, THERE, TARGET, 0)


def test_how_an_engine_schedules_is_said_in_its_own_word() -> None:
    Vllm().check(replace(THERE, settings={"scheduling": "priority"}))
    with pytest.raises(Misconfigured, match="--scheduling-policy priority"):
        Vllm().check(replace(THERE, settings={"scheduling": "fair"}))


def test_our_own_word_on_the_cache_is_sent(ask: Callable[..., Ask]) -> None:
    there = {"do_remote_prefill": True, "remote_host": "10.0.0.7"}
    asked = replace(ask(temperature=0.5), transfer=there)
    sent = orjson.loads(Vllm().encode(asked, THERE, TARGET, 0).body)
    assert sent == {**asked.body, "model": "tiny", "kv_transfer_params": there}
