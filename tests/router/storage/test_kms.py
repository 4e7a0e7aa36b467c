"""The lasting key in KMS: ministack where it is installed, and a client that answers ill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.errors import KeyUnavailable, NoteInvalid
from router.audit.log import AuditLog
from router.audit.settings import LogSettings
from router.audit.verify import verify
from router.config import ConfigError
from router.settings.config_log import KmsSection
from router.storage.kms import KmsAuthority, kms_authority
from tests.ministack import ministack
from tests.router.audit.logbox import LogBox

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
DER = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


@dataclass(slots=True)
class Client:
    """Answers as KMS does for an Ed25519 key, but for what is `said` otherwise."""

    said: dict[str, object] = field(default_factory=dict)
    error: Exception | None = None
    asked: list[Mapping[str, object]] = field(default_factory=list)

    def get_public_key(self, **request: object) -> Mapping[str, object]:
        return self._answer(
            request,
            {"PublicKey": DER, "KeySpec": "ECC_NIST_EDWARDS25519", "KeyUsage": "SIGN_VERIFY"},
        )

    def sign(self, **request: object) -> Mapping[str, object]:
        message = request["Message"]
        assert isinstance(message, bytes)
        return self._answer(request, {"Signature": KEY.sign(message)})

    def _answer(self, request: Mapping[str, object], usual: dict[str, object]) -> dict[str, object]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return {**usual, **{name: value for name, value in self.said.items() if name in usual}}


def authority(**said: object) -> KmsAuthority:
    return KmsAuthority("arn", lambda: Client(dict(said)))


def test_an_ed25519_key_signs_what_it_is_given_as_it_is() -> None:
    client = Client()
    key = KmsAuthority("arn", lambda: client)
    assert key.public().verifies(key.sign(b"words"), b"words")
    key.sign(b"more")
    assert [one.get("SigningAlgorithm", "-") for one in client.asked] == [
        "-", "ED25519_SHA_512", "ED25519_SHA_512",
    ]  # fmt: skip
    assert {one.get("MessageType", "RAW") for one in client.asked} == {"RAW"}
    assert key.over("eu-1") is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"KeySpec": "RSA_2048"}, "RSA_2048"),
        ({"KeyUsage": "ENCRYPT_DECRYPT"}, "SIGN_VERIFY"),
        ({"Signature": None}, "no signature"),
    ],
)
def test_a_key_that_will_not_do_is_named(said: dict[str, object], words: str) -> None:
    with pytest.raises(KeyUnavailable, match=words):
        authority(**said).sign(b"words")


@pytest.mark.parametrize("der", [None, b"", b"junk"])
def test_a_public_half_that_is_none_is_refused(der: object) -> None:
    with pytest.raises(NoteInvalid, match="can't be read"):
        authority(PublicKey=der).public()


@pytest.mark.parametrize(
    "error",
    [
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "Sign"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
    ],
)
def test_kms_that_refuses_or_is_away_makes_the_key_unavailable(error: Exception) -> None:
    with pytest.raises(KeyUnavailable, match="KMS"):
        KmsAuthority("arn", lambda: Client(error=error)).public()


def test_credentials_that_are_no_aws_keys_are_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("just-a-token")
    with pytest.raises(ConfigError, match="no AWS keys"):
        kms_authority(
            "arn:aws:kms:eu-west-1:1:key/1", KmsSection(credentials="file:token"), {}, tmp_path
        )


@pytest.fixture(scope="module")
def emulator(
    tmp_path_factory: pytest.TempPathFactory, free_port: Callable[[], int]
) -> Iterator[str]:
    with ministack(tmp_path_factory.mktemp("kms"), free_port()) as server:
        yield server.url


def made(url: str, spec: str) -> str:
    """A new key in the emulator; gives its ARN."""
    client = cast(Any, boto3.client(
        "kms", endpoint_url=url, region_name="eu-west-1",
        aws_access_key_id="test", aws_secret_access_key="test",
    ))  # fmt: skip
    return str(client.create_key(KeySpec=spec, KeyUsage="SIGN_VERIFY")["KeyMetadata"]["Arn"])


async def test_a_log_whose_key_is_in_a_real_kms(emulator: str, tmp_path: Path) -> None:
    box = LogBox(tmp_path)
    (tmp_path / "aws").write_text('{"aws_access_key_id": "test", "aws_secret_access_key": "test"}')
    section = KmsSection(endpoint=emulator, credentials="file:aws")
    key = kms_authority(made(emulator, "ECC_NIST_P256"), section, {}, tmp_path)
    settings = LogSettings(box.folder, "eu-1", key)
    log = await AuditLog.open(settings, clock=box.clock, entropy=box.entropy.randbytes)
    receipts = await box.request(log)
    await log.close()
    verdict = verify(box.folder, against=receipts, public_keys=[key.public()])
    assert verdict.ok, verdict.all_findings
    assert len(key.public().raw) == 65
