from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.witness import Answer, Witness, WitnessAnchor
from router.audit.layout import Folder
from router.audit.note import parse_checkpoint
from router.audit.reading import LogReader
from router.witness import MAX_BODY, Message, witness_app
from tests.router.audit.faultydisk import FaultyDisk, fails
from tests.router.audit.logbox import LogBox


class Site:
    """A log, a witness behind HTTP, and a disk of the witness that can fail."""

    def __init__(self, root: Path) -> None:
        self.box = LogBox(root)
        self.disk = FaultyDisk()
        key = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
        logs = {"eu-1": [self.box.key]}
        self.witness = Witness("w.example", key, logs, root / "seen", self.disk, self.box.clock)
        transport = httpx.ASGITransport(cast(Any, witness_app(self.witness)))
        self.client = httpx.AsyncClient(transport=transport, base_url="http://w.example")

    async def send(self, body: bytes) -> Answer:
        answer = await self.client.post("/add-checkpoint", content=body)
        return Answer(answer.status_code, answer.text)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path)
    await site.box.refill(3)
    async with site.client:
        yield site


async def test_a_checkpoint_is_cosigned_over_http(site: Site) -> None:
    folder = Folder(site.box.folder).log("eu-1")
    head = parse_checkpoint(folder.checkpoint.read_text())
    for _ in range(2):  # the second does not know what the witness has seen
        anchor = WitnessAnchor(site.witness.key, LogReader(folder), site.send)
        cosigned = await anchor.publish(head)
        assert site.witness.key.cosigned_at(cosigned)
    conflict = await site.client.post("/add-checkpoint", content=f"old 0\n\n{head.text}")
    assert (conflict.status_code, conflict.text) == (409, f"{head.size}\n")
    assert conflict.headers["content-type"] == "text/x.tlog.size"


async def test_other_requests_are_refused(site: Site) -> None:
    post = site.client.post
    assert (await post("/add-checkpoint", content=b"nonsense")).status_code == 400
    assert (await post("/add-checkpoint", content=b"x" * (MAX_BODY + 1))).status_code == 413
    assert (await post("/elsewhere")).status_code == 404
    assert (await site.client.get("/add-checkpoint")).status_code == 405


async def test_a_witness_that_can_not_store_does_not_cosign(site: Site) -> None:
    site.disk.fault = fails("replace", 28)
    head = (site.box.folder / "eu-1" / "checkpoint").read_text()
    proofless = await site.client.post("/add-checkpoint", content=f"old 0\n\n{head}")
    assert proofless.status_code == 503
    assert site.witness.seen("eu-1") is None


async def test_the_server_may_start_and_stop_it(site: Site) -> None:
    asked = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    said: list[object] = []

    async def receive() -> Message:
        return dict(next(asked))

    async def send(message: Message) -> None:
        said.append(message["type"])

    await witness_app(site.witness)({"type": "lifespan"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
