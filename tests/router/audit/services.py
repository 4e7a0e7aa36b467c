"""A key service for tests: a lasting key of P-256, as KMS has it."""

from dataclasses import dataclass, field

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from router.audit.certificate import Strength
from router.audit.errors import KeyUnavailable
from router.audit.note import PublicKey, Signer


@dataclass(slots=True)
class Service:
    """A key service with a key of P-256, that may be away."""

    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.derive_private_key(7, ec.SECP256R1())
    )
    away: bool = False
    asked: int = 0
    strength: Strength = "kms"

    def public(self) -> PublicKey:
        form = (Encoding.X962, PublicFormat.UncompressedPoint)
        return PublicKey(self.key.public_key().public_bytes(*form))

    def sign(self, message: bytes) -> bytes:
        self.asked += 1
        if self.away:
            raise KeyUnavailable("KMS: no answer")
        r, s = decode_dss_signature(self.key.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(32) + s.to_bytes(32)

    def over(self, origin: str) -> Signer | None:
        return None
