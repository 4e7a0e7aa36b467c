"""The lasting key of a log in AWS KMS, where it signs and nobody can copy it.

KMS is asked for its public half at the start, and for a signature once in 16 hours (and after each
start), over 180 bytes that hold nothing of any request. A key of `ECC_NIST_P256` or of
`ECC_NIST_EDWARDS25519` with the usage `SIGN_VERIFY` will do; the router needs `kms:GetPublicKey`
and `kms:Sign` on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol, cast

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from router.audit.certificate import Strength
from router.audit.errors import KeyUnavailable
from router.audit.note import PublicKey, Signer, read_der
from router.config import ConfigError
from router.providers.base import AwsKeys
from router.settings.config_log import KmsSection
from router.settings.credentials import credential
from router.storage.s3 import aws_client

ALGORITHMS: Final[Mapping[str, str]] = {
    "ECC_NIST_P256": "ECDSA_SHA_256",
    "ECC_NIST_EDWARDS25519": "ED25519_SHA_512",
}


class KmsClient(Protocol):
    """What is used of a boto3 client for KMS."""

    def get_public_key(self, **request: object) -> Mapping[str, object]:
        """DER, spec and usage of a key."""

    def sign(self, **request: object) -> Mapping[str, object]:
        """A signature; DER where it is ECDSA."""


class KmsAuthority:
    """A key in KMS by its ARN. `connect` makes the client, at the first use."""

    strength: Strength = "kms"

    def __init__(self, key: str, connect: Callable[[], KmsClient]) -> None:
        self._key = key
        self._connect = connect
        self._client: KmsClient | None = None
        self._public: PublicKey | None = None
        self._algorithm = ""

    def public(self) -> PublicKey:
        """See Authority."""
        if self._public is None:
            told = self._asked(lambda client: client.get_public_key(KeyId=self._key))
            spec, der = str(told.get("KeySpec")), told.get("PublicKey")
            if spec not in ALGORITHMS or told.get("KeyUsage") != "SIGN_VERIFY":
                raise KeyUnavailable(
                    f"the key `{self._key}` is of `{spec}`; use one of {', '.join(ALGORITHMS)} "
                    "made to SIGN_VERIFY"
                )
            self._public = read_der(der if isinstance(der, bytes) else b"")
            self._algorithm = ALGORITHMS[spec]
        return self._public

    def sign(self, message: bytes) -> bytes:
        """See Authority."""
        public = self.public()
        told = self._asked(
            lambda client: client.sign(
                KeyId=self._key,
                Message=message,
                MessageType="RAW",
                SigningAlgorithm=self._algorithm,
            )
        )
        signature = told.get("Signature")
        if not isinstance(signature, bytes):
            raise KeyUnavailable(f"the key `{self._key}` gave no signature")
        return signature if len(public.raw) == 32 else _halves(signature)

    def over(self, origin: str) -> Signer | None:
        """See Authority: KMS is not asked every minute."""
        return None

    def _asked(self, ask: Callable[[KmsClient], Mapping[str, object]]) -> Mapping[str, object]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            if self._client is None:
                self._client = self._connect()
            return ask(self._client)
        except (BotoCoreError, ClientError) as error:
            raise KeyUnavailable(f"KMS: {error}") from error


def _halves(der: bytes) -> bytes:
    """An ECDSA signature as r || s."""
    try:
        r, s = decode_dss_signature(der)
        return r.to_bytes(32) + s.to_bytes(32)
    except (ValueError, OverflowError) as error:
        raise KeyUnavailable("KMS gave a signature that is none of P-256") from error


def kms_authority(
    arn: str, section: KmsSection, environment: Mapping[str, str], base: Path
) -> KmsAuthority:
    """The key with an ARN, in the region that the ARN names; nothing is asked yet.

    Raises:
        ConfigError: credentials that can't be used.
    """
    keys = credential("`log.kms`", section.credentials, environment, base)
    if keys is not None and not isinstance(keys, AwsKeys):
        raise ConfigError("`log.kms.credentials` leads to no AWS keys")
    region = arn.split(":")[3]

    def connect() -> KmsClient:
        return cast("KmsClient", aws_client("kms", region, keys, section.endpoint))

    return KmsAuthority(arn, connect)
