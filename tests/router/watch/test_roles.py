"""The instance's and the container's role, from fake metadata services on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from router.providers.base import AwsKeys
from router.watch.renewal import NoRole
from router.watch.roles import FULL, RELATIVE, TOKEN, TOKEN_FILE, fetch

ENDS = "2026-11-29T18:00:00Z"
ENDS_AT = 1795975200.0
KEYS = {"Code": "Success", "AccessKeyId": "ASIAEXAMPLE", "SecretAccessKey": "secret",
        "Token": "session", "Expiration": ENDS}  # fmt: skip


@dataclass
class Metadata:
    """A metadata service, version 2, and a container's endpoint."""

    keys: object = field(default_factory=lambda: dict(KEYS))
    token: str = "imds-token"
    wanted: str | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        self.seen.append((method, path))
        if path == "/latest/api/token":
            return (200, self.token) if method == "PUT" and self.token else (403, "")
        if path.startswith("/latest/"):
            if headers.get("x-aws-ec2-metadata-token") != self.token:
                return 401, ""
            return 200, "role-a" if path.endswith("/") else json.dumps(self.keys)
        if self.wanted is not None and headers.get("authorization") != self.wanted:
            return 401, ""
        return 200, json.dumps(self.keys)


@pytest.fixture
def metadata() -> Iterator[Metadata]:
    service = Metadata()

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = service.answer(self.command, self.path, headers)
            body = text.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            self.do_GET()

        def log_message(self, *given: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    service.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield service
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_instance_s_role_by_version_2(metadata: Metadata) -> None:
    found = fetch({}, metadata.url)
    assert found.keys == AwsKeys("ASIAEXAMPLE", "secret", "session")
    assert found.expires == ENDS_AT
    assert metadata.seen[0] == ("PUT", "/latest/api/token")


def test_without_version_2_there_are_no_keys(metadata: Metadata) -> None:
    metadata.token = ""
    with pytest.raises(NoRole, match="metadata service"):
        fetch({}, metadata.url)
    assert [path for _, path in metadata.seen] == ["/latest/api/token"]


def test_nothing_else_in_the_environment_counts(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "other"),
        ("AWS_SECRET_ACCESS_KEY", "other"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("http_proxy", "http://127.0.0.1:1"),
        (RELATIVE, "/other"),
    ):
        monkeypatch.setenv(name, value)
    assert fetch({}, metadata.url).keys.access_key == "ASIAEXAMPLE"


def test_eks_pod_identity(metadata: Metadata, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("pod-token")
    metadata.wanted = "pod-token"
    given = {FULL: f"{metadata.url}v1/credentials", TOKEN_FILE: str(file)}
    assert fetch(given).keys.access_key == "ASIAEXAMPLE"
    assert metadata.seen == [("GET", "/v1/credentials")]
    file.write_text("rotated")
    metadata.wanted = "rotated"  # the file is read each time
    assert fetch(given).expires == ENDS_AT


def test_a_container_s_token_in_the_environment(metadata: Metadata) -> None:
    metadata.wanted = "tok"
    assert fetch({FULL: f"{metadata.url}v2", TOKEN: "tok"}).keys.secret_key == "secret"
    with pytest.raises(NoRole, match="container's endpoint"):
        fetch({FULL: f"{metadata.url}v2", TOKEN: "wrong"})


@pytest.mark.parametrize(
    "given",
    [
        {FULL: "http://example.com/keys"},
        {FULL: "http://10.0.0.1/keys"},
        {FULL: ""},
        {FULL: "http://127.0.0.1:1/", TOKEN: "a\nb"},
        {FULL: "http://127.0.0.1:1/", TOKEN_FILE: "/nowhere/token"},
        {FULL: "http://127.0.0.1:1/"},
    ],
)
def test_an_endpoint_that_may_not_be_or_is_not_there(
    given: Mapping[str, str], metadata: Metadata
) -> None:
    with pytest.raises(NoRole, match="container's endpoint"):
        fetch(given, metadata.url)
    assert metadata.seen == []  # a container's role never falls back to the instance's


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"Code": "Failed", "Message": "a secret story"},
        {**KEYS, "SecretAccessKey": ""},
        {**KEYS, "Expiration": "soon"},
        {**KEYS, "AccessKeyId": "with space"},
        {**KEYS, "Token": 3},
        [],
    ],
)
def test_keys_that_are_none(metadata: Metadata, keys: object) -> None:
    metadata.keys = keys
    for given in ({}, {FULL: f"{metadata.url}v1"}):
        with pytest.raises(NoRole) as caught:
            fetch(given, metadata.url)
        assert "secret" not in str(caught.value)
