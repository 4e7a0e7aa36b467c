"""What the public listener answers beside inference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from router.config import Peer
from router.errors import ANSWERS
from router.live import Whole
from tests.router.house import KEYS, House, Plan, house


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path) as found:
        yield found


async def get(found: House, path: str, tenant: str | None = "eu") -> httpx.Response:
    headers = {"authorization": f"Bearer {KEYS[tenant]}"} if tenant else {}
    async with httpx.AsyncClient(base_url=found.url, timeout=20, trust_env=False) as client:
        return await client.get(path, headers=headers)


async def test_models_are_those_of_the_key(running: House) -> None:
    listed = (await get(running, "/v1/models")).json()
    assert [card["id"] for card in listed["data"]] == ["assistant"]
    assert (await get(running, "/v1/models/assistant")).json()["object"] == "model"
    other = await get(running, "/v1/models/org/other")
    assert (other.status_code, other.json()["error"]["code"]) == (404, "model_not_found")
    assert "other" not in other.text


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/assistant", "/domicile/v1/where"])
async def test_without_a_key_nothing_is_told(running: House, path: str) -> None:
    found = await get(running, path, None)
    assert (found.status_code, found.json()["error"]["code"]) == (401, "missing_api_key")


async def test_a_full_disk_is_known_before_a_write_fails(
    running: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.live.has_room", lambda folder: False)
    ready = await get(running, "/readyz", None)
    assert (ready.status_code, ready.json()["ready"]) == (503, False)
    assert ready.json()["log"] == "full: no room is left where it is written; make some"
    assert "log: no room is left where it is written; make some" in ready.json()["degraded"]
    # A process is worth keeping that serves again once there is room.
    assert (await get(running, "/healthz", None)).status_code == 200
    running.router.live.whole = Whole(True, 2)
    assert (await get(running, "/readyz", None)).status_code == 503, "a worker knows it too"
    monkeypatch.undo()
    assert (await get(running, "/readyz", None)).status_code == 200


async def test_strangers_are_told_what_is_degraded_and_not_whose(running: House) -> None:
    """It named tenants, keys and rules of files that don't load, and addresses of replicas."""
    live = running.router.live
    live.notes["reload"] = "the files on disk are not served: key `acme-1`: tenant `acme` is gone"
    live.notes["grading assistant"] = "alarm"
    live.whole = Whole(True, 2, ("worker 2 is down: tenant `acme` is gone",))
    ready = await get(running, "/readyz", None)
    assert {"reload", "grading", "worker 2 is down"} <= set(ready.json()["degraded"])
    for secret in ("acme", "assistant"):
        assert secret not in ready.text
        assert any(secret in one for one in live.degraded())


async def test_health_and_readiness(running: House) -> None:
    assert (await get(running, "/healthz", None)).json() == {"status": "ok"}
    ready = await get(running, "/readyz", None)
    assert (ready.status_code, ready.json()["ready"], ready.json()["log"]) == (200, True, "ok")
    running.router.live.log._failure = "disk full"
    ready = await get(running, "/readyz", None)
    assert (ready.status_code, ready.json()["ready"]) == (503, False)
    assert ready.json()["log"].startswith("failed: disk full; mend that and restart")
    alive = await get(running, "/healthz", None)
    assert (alive.status_code, alive.json()) == (
        503, {"status": "disk full; mend that and restart: this process writes it no more"},
    )  # fmt: skip
    running.router.live.log._failure = ""
    running.router.live.draining = True
    assert (await get(running, "/readyz", None)).status_code == 503
    assert (await get(running, "/healthz", None)).status_code == 200, "it ends by itself"


async def test_a_client_finds_home_first(tmp_path: Path) -> None:
    peers = (Peer(region="self:iad1", url="https://us.example.com"),)
    async with house(tmp_path, Plan(peers=peers)) as found:
        here, there, nowhere = await asyncio.gather(
            *(get(found, "/domicile/v1/where", tenant) for tenant in ("eu", "us", "nobody"))
        )
    assert here.json() == {"here": True, "region": "self:fra1", "url": None}
    url = "https://us.example.com"
    assert there.json() == {"here": False, "region": "self:iad1", "url": url}
    assert nowhere.json() == {"here": False, "region": None, "url": None}


@pytest.mark.parametrize(
    "path",
    [
        "/domicile/v1/records/eu-1/999999",
        "/domicile/v1/records/eu-1/-1",
        "/domicile/v1/records/other/0",
        "/domicile/v1/records/eu-1/" + "9" * 30,
    ],
)
async def test_a_record_that_is_not_there(running: House, path: str) -> None:
    found = await get(running, path)
    assert (found.status_code, found.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/nowhere", 404, "not_found"),
        ("/docs", 404, "not_found"),
        ("/redoc", 404, "not_found"),
        ("/v1/models/", 404, "model_not_found"),
        ("/metrics", 404, "not_found"),
        ("/status", 404, "not_found"),
        ("/domicile/v1/records/eu-1/one", 400, "invalid_request"),
    ],
)
async def test_errors_have_the_shape_of_openai(
    running: House, path: str, status: int, code: str
) -> None:
    found = await get(running, path)
    assert (found.status_code, found.json()["error"]["code"]) == (status, code)
    assert set(found.json()["error"]) >= {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/responses", "/chat/completions", "/v2"])
async def test_a_path_that_is_not_served_says_what_is(running: House, path: str) -> None:
    async with httpx.AsyncClient(base_url=running.url, trust_env=False) as client:
        found = await client.post(path, json={"model": "assistant", "input": "x"})
    assert found.status_code == 404
    said = found.json()["error"]["message"]
    assert "POST /v1/chat/completions" in said
    assert "GET /openapi.json" in said


async def test_another_method(running: House) -> None:
    async with httpx.AsyncClient(base_url=running.url, trust_env=False) as client:
        found = await client.delete("/v1/models")
    assert (found.status_code, found.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_an_unforeseen_error_is_counted_and_told_without_its_words(
    running: House, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def broken(*args: object) -> None:
        raise RuntimeError("canary-7f3a")

    monkeypatch.setattr("router.public.record_for", broken)
    found = await get(running, "/domicile/v1/records/eu-1/0")
    assert (found.status_code, found.json()["error"]["code"]) == (500, "internal")
    assert "canary-7f3a" not in found.text
    assert running.router.live.notes["internal"] == "RuntimeError"
    assert "canary-7f3a" not in "".join(capfd.readouterr())


async def test_the_document_lists_inference_and_everything_else(running: House) -> None:
    document = (await get(running, "/openapi.json", None)).json()
    assert document["openapi"].startswith("3.1")
    assert {"/v1/chat/completions", "/v1/models", "/readyz", "/domicile/v1/where"} <= set(
        document["paths"]
    )
    chat = document["paths"]["/v1/chat/completions"]["post"]
    assert set(chat["responses"]) == {"200", *(str(a.status) for a in ANSWERS.values())}
    assert chat["security"] == [{"key": []}]
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
