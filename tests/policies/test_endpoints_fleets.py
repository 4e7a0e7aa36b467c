"""What a fleet's configuration says: where replicas are, what they take, how they are probed."""

from __future__ import annotations

import pytest

from policies.endpoints import endpoint_from
from policies.files import EndpointConfig
from policies.written import Refused
from regions.catalog import Catalog, OwnRegion
from regions.model import Endpoint


def made(**more: object) -> Endpoint:
    written = {"kind": "vllm", "model": "m", "region": "self:fra1", "operate": ["DE"], **more}
    config = EndpointConfig.model_validate(written)
    atlas = Catalog.load({"self:fra1": OwnRegion("DE")}).atlas
    return endpoint_from("fra", config, ("endpoints", "fra"), atlas)


def test_capacity_and_probe_are_settings() -> None:
    found = made(capacity={"requests": "32", "tokens": "9000"}, probe="off").settings
    assert found == {"capacity_requests": "32", "capacity_tokens": "9000", "probe": "off"}


@pytest.mark.parametrize(
    "more",
    [{"capacity": {"requests": "0"}}, {"capacity": {"request": "1"}}, {"probe": "sometimes"}],
)
def test_what_means_nothing_is_refused(more: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"capacity|probe"):
        made(**more)


def test_replicas_are_found_in_one_way() -> None:
    assert made(replicas={"file": "a"}).settings == {"replicas": "file:a"}
    with pytest.raises(Refused):
        made(replicas={"file": "a", "kubernetes": "b/c"})


def test_networks_are_networks() -> None:
    found = made(replicas={"file": "a", "within": ["10.0.0.0/8", "fd00::/8"]})
    assert found.settings["replicas_within"] == "10.0.0.0/8 fd00::/8"
    with pytest.raises(Refused):
        made(replicas={"file": "a", "within": ["10.0.0.1/8"]})


def test_an_endpoint_hedges_by_itself() -> None:
    found = made(hedge={"after": "500ms", "at_most": "0.1"}).settings
    assert found == {"hedge_after": "0.5", "hedge_at_most": "0.1"}
    assert made(hedge={}).settings == {"hedge_after": "p95", "hedge_at_most": "0.05"}


@pytest.mark.parametrize(
    "hedge", [{"after": "p50"}, {"after": "500"}, {"at_most": "0"}, {"at_most": "0.6"}, {"x": "1"}]
)
def test_a_hedge_that_means_nothing(hedge: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="hedge"):
        made(hedge=hedge)


@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("dns", "fra"),
        ("dns", "fra:"),
        ("dns", ":8000"),
        ("dns", "http://fra:8000"),
        ("srv", ""),
        ("srv", "_http._tcp.x y"),
        ("srv", "_http._tcp.fra:8000"),
        ("srv", "http://fra"),
        ("srv", "_http._tcp.a..b"),
        ("srv", "_http._tcp." + "a" * 64),
        ("srv", ".".join(["a" * 60] * 5)),
        ("kubernetes", "llm"),
        ("kubernetes", "llm/a/b"),
        ("file", ""),
    ],
)
def test_what_can_never_be_found(way: str, what: str) -> None:
    with pytest.raises(Refused, match=f"`{what}` is no ") as caught:
        made(replicas={way: what})
    assert caught.value.path[-2:] == ("replicas", way)


@pytest.mark.parametrize(
    ("way", "what"),
    [
        ("dns", "fra.internal:8000"),
        ("srv", "web.service.consul"),
        ("srv", "_http._tcp.exämple."),
        ("kubernetes", "llm-1/large"),
        ("file", "my fleet.txt"),
    ],
)
def test_what_may_be_found(way: str, what: str) -> None:
    assert made(replicas={way: what}).settings == {"replicas": f"{way}:{what}"}


def test_srv_is_another_way() -> None:
    assert made(replicas={"srv": "_a._tcp.b"}).settings == {"replicas": "srv:_a._tcp.b"}
    with pytest.raises(Refused, match="srv"):
        made(replicas={"srv": "_a._tcp.b", "dns": "b:80"})


def test_a_pool_is_one_of_two_and_scheduling_is_a_setting() -> None:
    found = made(pool="throughput", scheduling="priority").settings
    assert found == {"pool": "throughput", "scheduling": "priority"}
    with pytest.raises(ValueError, match="pool"):
        made(pool="batch")


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"scheduling": "fair"}, "`scheduling: fair` can't be read; write `priority`"),
        ({"retry_unknown": "True"}, "`retry_unknown: True` can't be read; write `true` or `false`"),
        ({"retry_unknown": "yes"}, "write `true` or `false`"),
        (
            {"share": "0.5"},
            "unknown key `share` for kind `vllm`; ",
        ),
        ({"path": "/v2"}, "unknown key `path`"),
        ({"api_version": "2"}, "unknown key `api_version`"),
        ({"self_operated": "true"}, "unknown key `self_operated`"),
    ],
)
def test_a_setting_that_nobody_would_read_is_refused(said: dict[str, str], told: str) -> None:
    with pytest.raises(Refused) as raised:
        made(**said)
    assert told in str(raised.value)
