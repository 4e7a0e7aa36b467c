"""Replicas of a service of Kubernetes: what is ready serves, and trouble empties nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regions.health import Standing
from router.transport.messages import Tls
from router.transport.names import NotFound
from router.watch.discover import Discoverer
from router.watch.kubernetes import Cluster, slices
from tests.cases.built import ENVIRONMENT, until
from tests.certificates import Paper
from tests.router.scripted import Reply, Scripted, refused
from tests.router.watch.fleets import Server, fleet, keys

CLUSTER = Paper.authority("cluster")
POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}


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


@pytest.mark.parametrize(
    "token", [b"", b"\n", "t\u00f6ken".encode(), b"\xff\xfe", b"a b", b"a\nb: c"]
)
async def test_a_token_that_cannot_be_sent_is_told(tmp_path: Path, token: bytes) -> None:
    """It ended the look, and said `UnicodeEncodeError` of no fleet in particular."""
    server = Server(listed(slice_of(("10.1.0.1", True))))
    async with pod(tmp_path, server) as (world, one):
        live = world.router.live
        await until(lambda: not live.starting)  # the router's own look, which is in no cluster
        (tmp_path / "account" / "token").write_bytes(token)
        await one.look()
        assert server.sent == []
        assert "holds no token" in live.notes["discover:fra"]


@pytest.mark.parametrize(
    ("host", "port", "authority"),
    [
        ("10.0.0.1", "6443", "10.0.0.1:6443"),
        ("fd00::1", "443", "[fd00::1]"),
        ("Kube.Internal", "443", "kube.internal"),
        ("10.0.0.1", "\u00b2", None),
        ("10.0.0.1", "70000", None),
        ("a b", "443", None),
        ("k\u00fcbe", "443", None),
    ],
)
def test_the_api_server_that_a_pod_is_told_of(
    tmp_path: Path, host: str, port: str, authority: str | None
) -> None:
    (tmp_path / "ca.crt").write_text(CLUSTER.pem)
    told = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    if authority is not None:
        assert Cluster.of(told, tmp_path).origin.authority == authority
        return
    with pytest.raises(NotFound, match="API server can't be asked"):
        Cluster.of(told, tmp_path)
