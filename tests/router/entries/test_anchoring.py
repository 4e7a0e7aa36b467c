"""Checkpoints go where the configuration says, are tried again, and their age is shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.app import Clocks, Router
from router.audit.anchors.keeper import AnchorKeeper
from router.audit.anchors.s3 import S3Client
from router.audit.anchors.witness import AnchorRefused, Answer, Witness
from router.audit.layout import Folder
from router.audit.note import Checkpoint, Signer, parse_checkpoint
from router.config import ConfigError
from router.entries import anchoring
from router.entries.anchoring import Anchoring, publishers
from router.providers.base import AwsKeys
from router.settings.config_log import AnchorSection
from router.settings.loading import log_settings
from router.transport.messages import OutboundRequest, OutboundResponse, Timeouts
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import Clock, LogBox
from tests.router.folders import AT, two_continents
from tests.router.reloading import never, well
from tests.router.scripted import Reply, ScriptedTransport, refused

SIGNER = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))


def head(size: int) -> Checkpoint:
    return SIGNER.checkpoint(size, bytes(32))


class Anchor:
    """Takes checkpoints, unless it is `broken`."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.tried = 0
        self.broken = False

    async def publish(self, one: Checkpoint) -> None:
        self.tried += 1
        if self.broken:
            raise AnchorRefused("gone")
        self.taken.append(one.size)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_checkpoint_is_offered_once() -> None:
    clock, anchor = Clock(), Anchor()
    offering = Anchoring(AnchorKeeper({"a": anchor.publish}, clock), clock)
    for given in (None, head(1), None, None, head(2), None):
        offering.tick(given)
        await settle()
        clock.now += 5
    assert anchor.taken == [1, 2]


async def test_a_failure_is_tried_again_with_growing_pauses_and_the_newest_head() -> None:
    clock, anchor = Clock(), Anchor()
    offering = Anchoring(AnchorKeeper({"a": anchor.publish}, clock), clock)
    anchor.broken = True
    start, tried = clock.now, list[float]()
    offering.tick(head(1))
    for _ in range(30):
        await settle()
        if anchor.tried > len(tried):
            tried.append(clock.now - start)
        clock.now += 5
        offering.tick(None)
    assert tried == [0, 5, 15, 35, 65, 95, 125]
    offering.tick(head(9))
    await settle()
    anchor.broken = False
    clock.now += 30
    offering.tick(None)
    await settle()
    assert anchor.taken == [9]
    assert [one.state for one in offering.keeper.health()] == ["ok"]


async def test_the_end_of_the_log_is_anchored_too_but_not_waited_for_long() -> None:
    clock, anchor = Clock(), Anchor()
    offering = Anchoring(AnchorKeeper({"a": anchor.publish}, clock), clock)
    await offering.close(head(7))
    assert anchor.taken == [7]

    async def silent(_: Checkpoint) -> None:
        await asyncio.Event().wait()

    stuck = Anchoring(AnchorKeeper({"a": silent}, clock, timeout=0.05), clock)
    stuck.tick(head(1))
    await stuck.close(head(2), limit=0.01)
    await asyncio.sleep(0.1)


class Wire:
    """A transport whose far side is a witness; or nothing, when `down`."""

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.down = False
        self.sent: list[OutboundRequest] = []

    async def send(self, request: OutboundRequest, timeouts: Timeouts) -> OutboundResponse:
        self.sent.append(request)
        if self.down:
            raise refused()
        answer: Answer = self.witness.add_checkpoint(request.body)
        return Reply(answer.status, (), [answer.body.encode()])


def clocks(clock: Clock) -> tuple[Clock, Clock]:
    return clock, clock


async def test_a_witness_cosigns_and_the_cosigned_note_is_kept(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    await box.refill(3)
    key = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
    logs = {"eu-1": [box.key]}
    witness = Witness("w.example/1", key, logs, tmp_path / "seen", QuickDisk(), box.clock)
    wire = Wire(witness)
    (tmp_path / "w.vkey").write_text(witness.key.vkey + "\n")
    section = AnchorSection(witness="https://w.example/api/", key="file:w.vkey")
    made = publishers(section, box.settings(), wire, clocks(box.clock), {}, tmp_path)
    assert list(made) == ["w.example/1"]
    folder = Folder(box.folder).log("eu-1")
    newest = parse_checkpoint(folder.checkpoint.read_text())
    await made["w.example/1"](newest)
    assert (wire.sent[0].target, wire.sent[0].origin.host) == ("/api/add-checkpoint", "w.example")
    kept = parse_checkpoint((folder.path / "cosigned" / "w.example%2F1.note").read_text())
    assert witness.key.cosigned_at(kept) is not None
    wire.down = True
    with pytest.raises(AnchorRefused, match=r"w\.example"):
        await made["w.example/1"](newest)


async def test_a_bucket_is_asked_in_its_region_with_its_own_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, AwsKeys | None, str | None]] = []

    def client(region: str, keys: AwsKeys | None, endpoint: str | None) -> S3Client:
        asked.append((region, keys, endpoint))
        raise AnchorRefused("no bucket here")

    monkeypatch.setattr(anchoring, "s3_client", client)
    (tmp_path / "keys").write_text('{"aws_access_key_id": "a", "aws_secret_access_key": "b"}')
    section = AnchorSection(s3="acme", region="aws:eu-west-1", credentials="file:keys")
    box = LogBox(tmp_path)
    nowhere = Wire.__new__(Wire)
    made = publishers(section, box.settings(), nowhere, clocks(box.clock), {}, tmp_path)
    with pytest.raises(AnchorRefused, match="no bucket here"):
        await made["s3://acme"](head(1))
    assert asked == [("aws:eu-west-1", AwsKeys("a", "b"), None)]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"witness": "http://w.example", "key": "KEY"}, "is not `https://"),
        ({"witness": "https://u:p@w.example", "key": "KEY"}, "user name"),
        ({"witness": "https://w.example", "key": "nonsense"}, "vkey"),
        ({"witness": "https://w.example", "key": "file:gone"}, "can't read"),
        ({"s3": "b", "region": "aws:eu-west-1", "credentials": "env:T"}, "no AWS keys"),
    ],
)
def test_what_can_not_be_used_is_said_at_start(
    tmp_path: Path, given: Mapping[str, str], told: str
) -> None:
    box = LogBox(tmp_path)
    key = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
    witness = Witness("w", key, {}, tmp_path, QuickDisk(), box.clock)
    named = {k: v.replace("KEY", witness.key.vkey) for k, v in given.items()}
    section = AnchorSection.model_validate(named)
    with pytest.raises(ConfigError, match=told):
        publishers(section, box.settings(), Wire(witness), clocks(box.clock), {"T": "x"}, tmp_path)


def test_without_a_section_there_is_no_anchor(tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    wire = Wire.__new__(Wire)
    assert publishers(None, box.settings(), wire, clocks(box.clock), {}, tmp_path) == {}


async def test_a_router_anchors_its_log_to_the_last_entry(tmp_path: Path) -> None:
    box, anchor, wall = two_continents(tmp_path), Anchor(), [AT]
    snapshot = box.snapshot()
    times = Clocks(lambda: wall[0], asyncio.get_running_loop().time, os.urandom, never)
    router = await Router.open(
        snapshot, log_settings(snapshot.config, tmp_path), times, ScriptedTransport(well),
        anchors={"a": anchor.publish},
    )  # fmt: skip
    live = router.live
    assert [(one.name, one.state) for one in live.anchored()] == [("a", "late")]
    assert "anchor a: late" in live.degraded()
    live.refresh_gauges()
    assert live.metrics.value("domicile_anchor_age_seconds", ("a",)) == float("inf")
    await router.close(0)
    newest = (Folder(tmp_path / "log").log(live.log_name)).checkpoint.read_text()
    assert anchor.taken == [parse_checkpoint(newest).size]
    wall[0] += 7
    live.refresh_gauges()
    assert live.metrics.value("domicile_anchor_age_seconds", ("a",)) == 7
    assert live.metrics.value("domicile_anchor_size", ("a",)) == anchor.taken[0]
