"""Keys for a day: certified, recorded, renewed in time, and silent when their day is over."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.bundle import ProofRefused, prove_request, verify_bundle
from router.audit.certificate import Authority, FileAuthority, Signing
from router.audit.commands import run_show
from router.audit.entry import Entry
from router.audit.errors import KeyUnavailable, LogUnavailable
from router.audit.layout import Folder
from router.audit.log import AuditLog
from router.audit.note import (
    LIFETIME,
    Certificate,
    PublicKey,
    Signed,
    Signer,
    parse_checkpoint,
    read_certificate,
    statement,
)
from router.audit.receipt import parse_receipt
from router.audit.recovery import recover
from router.audit.roster import append_roster, read_roster
from router.audit.settings import LogSettings
from router.audit.verify import verify
from tests.router.audit.faultydisk import QuickDisk
from tests.router.audit.logbox import START, LogBox
from tests.router.audit.services import Service

HOUR = 3600.0


async def opened(box: LogBox, service: Service) -> AuditLog:
    settings = LogSettings(box.folder, "eu-1", service)
    entropy = box.entropy.randbytes
    return await AuditLog.open(settings, clock=box.clock, entropy=entropy, disk=QuickDisk())


async def renewed(log: AuditLog) -> None:
    """Let a renewal that a tick began come to its end."""
    await log.tick()
    for _ in range(50):
        await asyncio.sleep(0.001)


def state(log: AuditLog) -> str:
    return log.health.state


def words(box: LogBox, *keys: PublicKey) -> list[str]:
    return [str(one) for one in verify(box.folder, public_keys=keys).all_findings]


async def test_a_head_is_signed_by_a_days_key_and_proved_by_the_lasting_one(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    receipt = (await box.request(log))[0]
    head = parse_checkpoint(receipt.checkpoint)
    signed = head.signed([service.public()])
    assert signed is not None
    assert signed.certificate is not None
    assert signed.certificate.key != service.public()
    assert signed.certificate.ends - signed.certificate.begins == LIFETIME
    assert head.signed([Service(ec.derive_private_key(8, ec.SECP256R1())).public()]) is None
    await log.close()
    held = parse_receipt(json.dumps({"record": receipt.record, "head": receipt.head}))
    assert verify(box.folder, against=[held], public_keys=[service.public()]).ok
    assert service.asked == 1
    (entry,) = run_show(box.folder, kind="key")
    assert entry.body["strength"] == "kms"
    assert entry.body["certificate"] == signed.certificate.payload
    lines, _ = read_roster(Folder(box.folder))
    assert {line.key for line in lines} == {service.public()}
    assert all(line.signed for line in lines)


async def test_what_a_file_key_publishes_satisfies_who_knows_no_certificates(box: LogBox) -> None:
    log = await box.open()
    receipt = (await box.request(log))[0]
    await log.close()
    private = parse_checkpoint(receipt.checkpoint).signed([box.key])
    public = parse_checkpoint((box.folder / "eu-1" / "checkpoint").read_text()).signed([box.key])
    assert private is not None
    assert private.certificate is not None
    assert public == Signed(box.key)
    assert {shown.body["strength"] for shown in run_show(box.folder, kind="key")} == {"file"}


async def test_the_next_key_comes_well_before_the_end_and_old_proofs_stay(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    receipts = await box.request(log)
    for _ in range(60):  # two days and a half
        box.clock.now += HOUR
        await renewed(log)
        receipts += await box.request(log)
    assert log.health.state == "ok"
    assert 3 <= service.asked <= 5
    await log.close()
    assert verify(box.folder, against=receipts, public_keys=[service.public()]).ok
    assert len(list(run_show(box.folder, kind="key"))) == service.asked
    bundle = prove_request(Folder(box.folder).log("eu-1"), "r0", parse_checkpoint(
        (box.folder / "eu-1" / "checkpoint").read_text()))  # fmt: skip
    assert verify_bundle(bundle.to_json(), [service.public()])


async def test_a_service_that_is_away_is_said_and_asked_again_each_minute(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    service.away = True
    box.clock.now += 17 * HOUR
    for _ in range(3):
        await renewed(log)
    assert service.asked == 2
    assert log.health.state == "degraded"
    assert "KMS: no answer" in log.health.reason
    await box.request(log)  # the old key is still good
    box.clock.now += 61
    service.away = False
    await renewed(log)
    assert (service.asked, log.health.state) == (3, "ok")
    await log.close()


async def test_after_the_end_nothing_is_recorded_until_it_is_renewed(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    service.away = True
    box.clock.now += 24 * HOUR
    await renewed(log)
    with pytest.raises(LogUnavailable, match=r"certificate of the signing key has ended: .*KMS"):
        await log.commit(box.decision(), None)
    assert await log.tick() is None
    assert state(log) == "failed"
    service.away = False
    box.clock.now += 61
    await renewed(log)
    await box.request(log)
    assert state(log) == "ok"
    await log.close()
    assert words(box, service.public()) == []


async def test_a_log_that_ends_without_a_key_can_be_opened_again(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    await log.commit(box.decision("left"), None)
    service.away = True
    box.clock.now += 25 * HOUR
    with pytest.raises(LogUnavailable):
        await log.close()
    with pytest.raises(KeyUnavailable):
        await opened(box, service)
    service.away = False
    again = await opened(box, service)
    await again.close()
    assert words(box, service.public()) == []
    outcomes = [
        shown.body["by"] for shown in run_show(box.folder, request_id="left", kind="outcome")
    ]
    assert outcomes == ["recovery"]


async def test_a_service_that_signs_something_else_is_not_believed(box: LogBox) -> None:
    class Wrong(Service):
        def sign(self, message: bytes) -> bytes:
            return super().sign(message + b"!")

    with pytest.raises(KeyUnavailable, match="something else"):
        await opened(box, Wrong())


@pytest.mark.parametrize("raw", [b"", b"x" * 63, b"x" * 64, b"x" * 65])
def test_what_is_no_signature_verifies_nothing(raw: bytes) -> None:
    assert not Service().public().verifies(raw, b"message")
    assert not PublicKey(bytes(32)).verifies(raw, b"message")


def granted(begins: int, ends: int, origin: str = "eu-1") -> tuple[Service, Certificate, Signer]:
    """A certificate that a service really gave, whatever its times."""
    service, key = Service(), Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = PublicKey(key.public_key().public_bytes_raw())
    signature = service.sign(statement(origin, public, begins, ends))
    by = service.public().certifier_hash(origin)
    certificate = Certificate(origin, public, begins, ends, by, signature)
    return service, certificate, Signer(origin, key, Signed(service.public(), certificate))


def test_a_certificate_lasts_a_day_at_most_and_is_for_one_log() -> None:
    service, good, signer = granted(10, 10 + LIFETIME)
    assert good.granted_by([service.public()]) == service.public()
    assert read_certificate("eu-1", good.payload) == good
    head = signer.checkpoint(5, bytes(32))
    assert head.signed_by([service.public()])
    for begins, ends in ((10, 11 + LIFETIME), (10, 10), (10, 9)):
        service, bad, signer = granted(begins, ends)
        assert bad.granted_by([service.public()]) is None
        assert signer.checkpoint(5, bytes(32)).signed_by([service.public()]) is None
    _, other, _ = granted(10, 10 + LIFETIME, "us-1")
    moved = read_certificate("eu-1", other.payload)
    assert moved.granted_by([service.public()]) is None


def test_a_certificate_on_anothers_head_helps_nobody() -> None:
    service, _, signer = granted(10, 10 + LIFETIME)
    thief = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(b"t" * 32))
    stolen = (
        thief.checkpoint(5, bytes(32)).text + signer.checkpoint(5, bytes(32)).text.split("\n")[-2]
    )
    assert parse_checkpoint(stolen + "\n").signed_by([service.public()]) is None


async def test_a_head_signed_after_the_end_or_never_recorded_is_found(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    await box.request(log)
    await log.close()
    late = Signing("eu-1", service, box.entropy.randbytes, START - 2 * LIFETIME).signer
    fresh = Signing("eu-1", service, box.entropy.randbytes, START).signer
    head = parse_checkpoint((box.folder / "eu-1" / "checkpoint").read_text())
    for signer, said in ((late, "had ended"), (fresh, "doesn't know")):
        forged = signer.checkpoint(head.size, head.root)
        found = verify(box.folder, against=[forged], public_keys=[service.public()]).all_findings
        assert [one.fault for one in found] == ["certificate"]
        assert said in found[0].detail


async def test_a_bundle_whose_key_had_ended_proves_nothing(box: LogBox, tmp_path: Path) -> None:
    log = await box.open()
    await log.commit(Entry("decision", "r9", START + 10, {"plan": []}), None)
    await log.close()
    folder = Folder(box.folder).log("eu-1")
    authority = FileAuthority(box.key_file)
    late = Signing("eu-1", authority, box.entropy.randbytes, START - 2 * LIFETIME).signer
    head = parse_checkpoint(folder.checkpoint.read_text())
    data = prove_request(folder, "r9", late.checkpoint(head.size, head.root)).to_json()
    with pytest.raises(ProofRefused, match="had ended"):
        verify_bundle(data, [box.key])


class Slow(Service):
    """Answers when the clock has been set back meanwhile."""

    def __init__(self, box: LogBox) -> None:
        super().__init__()
        self._box = box

    def sign(self, message: bytes) -> bytes:
        self._box.clock.now -= 90
        return super().sign(message)


async def test_a_clock_set_back_while_a_key_is_certified_is_no_alarm(box: LogBox) -> None:
    service = Slow(box)
    log = await opened(box, service)
    box.clock.now += 20 * HOUR
    await renewed(log)
    assert service.asked == 2
    await log.close()
    assert words(box, service.public()) == []


async def test_keys_certified_for_later_days_sign_nothing_today(
    box: LogBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may use the lasting key for a moment can't take signatures for years along."""

    class Hoarded(Signing):
        def __init__(
            self, origin: str, authority: Authority, entropy: Callable[[int], bytes], now: float
        ) -> None:
            super().__init__(origin, authority, entropy, now + 300 * LIFETIME)
            self.begins = 0.0

    service = Service()
    monkeypatch.setattr("router.audit.log.Signing", Hoarded)
    log = await opened(box, service)
    receipts = await box.request(log)
    await log.close()
    found = verify(box.folder, against=receipts, public_keys=[service.public()]).all_findings
    assert "certificate" in {one.fault for one in found}
    assert any("certified for a later day" in one.detail for one in found)


async def test_a_stop_signed_when_the_day_was_over_is_found(box: LogBox) -> None:
    service = Service()
    log = await opened(box, service)
    await box.request(log)
    box.copy(box.root / "crashed")
    await log.close()
    shutil.rmtree(box.folder)
    (box.root / "crashed").rename(box.folder)
    folder = Folder(box.folder)
    tree = recover(folder.log("eu-1"), "eu-1", QuickDisk()).frontier
    old = Signing("eu-1", service, box.entropy.randbytes, START - 2 * LIFETIME).signer
    append_roster(
        folder, QuickDisk(), old, "stop", tree.size, tree.root(), START - 2 * LIFETIME + 5
    )
    verdict = verify(box.folder, public_keys=[service.public()])
    assert [one.fault for one in verdict.all_findings] == ["certificate"]
    assert any("dated 1727" in one and "before one above it" in one for one in verdict.notices)
