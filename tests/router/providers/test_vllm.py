"""vLLM: everything passes but what moves bytes."""

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from regions.model import Endpoint
from router.errors import RequestError
from router.providers.base import Ask, Target
from router.providers.openai_compatible import OpenAiCompatible
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


def test_our_own_word_on_the_cache_is_sent(ask: Callable[..., Ask]) -> None:
    there = {"do_remote_prefill": True, "remote_host": "10.0.0.7"}
    asked = replace(ask(temperature=0.5), transfer=there)
    sent = orjson.loads(Vllm().encode(asked, THERE, TARGET, 0).body)
    assert sent == {**asked.body, "model": "tiny", "kv_transfer_params": there}


@pytest.mark.parametrize("name", ["kv_transfer_params", "ec_transfer_params"])
def test_nor_under_another_name(ask: Callable[..., Ask], name: str) -> None:
    moved = {"remote_host": "10.0.0.9"}
    asked = ask(vllm_xargs={"mine": 1})
    # One that is declared as any server that speaks OpenAI's API is vLLM all the same.
    for provider in (Vllm(), OpenAiCompatible()):
        for asks in (ask(**{name: moved}), ask(vllm_xargs={"mine": 1, name: "10.0.0.9"})):
            with pytest.raises(RequestError, match=name) as caught:
                provider.encode(asks, THERE, TARGET, 0)
            assert caught.value.code == "parameter_changes_place"
            assert str(provider.refusal(asks, THERE)) == str(caught.value)
        sent = orjson.loads(provider.encode(asked, THERE, TARGET, 0).body)
        assert sent["vllm_xargs"] == {"mine": 1}
        assert provider.refusal(asked, THERE) is None


@pytest.mark.parametrize("stream", [False, True])
def test_each_tenant_has_a_cache_of_its_own(ask: Callable[..., Ask], stream: bool) -> None:
    asked = replace(ask(stream=stream, temperature=0.5), salt="ours")
    settings, features = {"cache": "tenant"}, frozenset({"stream_usage"})
    there = replace(THERE, settings=settings, features=features)
    sent = orjson.loads(Vllm().encode(asked, there, TARGET, 0).body)
    assert sent.pop("cache_salt") == "ours"
    sent.pop("stream_options", None)
    assert sent == {**asked.body, "model": "tiny"}


def test_a_shared_cache_is_told_nothing_and_no_client_names_its_salt(
    ask: Callable[..., Ask],
) -> None:
    shared = replace(THERE, settings={"cache": "shared"})
    asked = replace(ask(), salt="ours")
    assert b"cache_salt" not in Vllm().encode(asked, shared, TARGET, 0).body
    assert b"cache_salt" not in Vllm().encode(asked, THERE, TARGET, 0).body
    for salt, told in (("ours", "ours"), (None, None)):
        for endpoint in (THERE, shared, replace(THERE, settings={"cache": "tenant"})):
            asked = replace(ask(cache_salt="of another"), salt=salt)
            sent = orjson.loads(Vllm().encode(asked, endpoint, TARGET, 0).body)
            assert sent.get("cache_salt") == told
