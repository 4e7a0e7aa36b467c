"""Who stands behind the keys that sign: a day's key per process, certified by a lasting one.

A signature of a key service costs milliseconds and money, and a log signs a head per commit
group. So every process makes an Ed25519 key that never leaves its memory, and the lasting key
certifies it for a day (`note.py` has the form). When a third of that day is left a new one is
certified; while that fails the old one goes on, the log says `degraded`, and the lasting key is
asked again every minute. A key whose certificate has ended signs nothing: the log refuses entries
until it is renewed.

The lasting key is in a key service (`router/storage/kms.py`), where nobody can copy it, or in a
file, which is weaker: who can read the file can sign for ever. The log says which it is.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.entry import Json
from router.audit.errors import KeyUnavailable
from router.audit.note import (
    LIFETIME,
    Certificate,
    PublicKey,
    Signed,
    Signer,
    read_private_key,
    statement,
)

RENEW_BEFORE: Final = LIFETIME / 3
ASK_AGAIN: Final = 60.0

Strength: TypeAlias = Literal["kms", "file"]


class Authority(Protocol):
    """The lasting key of a log. Both methods may block, and raise KeyUnavailable or NoteInvalid."""

    strength: Strength

    def public(self) -> PublicKey:
        """Its public half: what verifiers are given."""

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""

    def over(self, origin: str) -> Signer | None:
        """A signer of its own, where it can sign a head a minute as well."""


class FileAuthority:
    """A key in a PEM file, read once."""

    strength: Strength = "file"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: Ed25519PrivateKey | None = None

    def public(self) -> PublicKey:
        """See Authority."""
        return PublicKey(self._read().public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """See Authority."""
        return self._read().sign(message)

    def over(self, origin: str) -> Signer:
        """See Authority."""
        return Signer(origin, self._read())

    def _read(self) -> Ed25519PrivateKey:
        if self._key is None:
            self._key = read_private_key(self._path)
        return self._key


class Signing:
    """The key that signs now, and the next one in time. `entropy(n)` gives n random bytes."""

    def __init__(
        self, origin: str, authority: Authority, entropy: Callable[[int], bytes], now: float
    ) -> None:
        """Blocks. Raises KeyUnavailable, NoteInvalid."""
        self._origin = origin
        self._authority = authority
        self._entropy = entropy
        self._asked = now
        self.authority = authority.public()
        self.take(self._certified(now))

    @property
    def certificate(self) -> Certificate:
        """That of the key that signs."""
        certificate = self.signer.certificate
        if certificate is None:
            raise KeyUnavailable("the signing key has no certificate")
        return certificate

    def due(self, now: float) -> bool:
        """Whether to ask for the next key now; true once a minute at most."""
        waited = now - self._asked
        if now < self.ends - RENEW_BEFORE or 0 <= waited < ASK_AGAIN:
            return False
        self._asked = now
        return True

    def next(self, now: float) -> Signer:
        """The next signer; blocks. Raises KeyUnavailable, NoteInvalid."""
        return self._certified(now)

    def take(self, signer: Signer) -> None:
        """Sign with this one from here on."""
        self.signer = signer
        self.begins = float(self.certificate.begins)
        self.ends = float(self.certificate.ends)
        self.failing = ""

    def body(self) -> dict[str, Json]:
        """The `key` entry of the key that signs."""
        return {
            "authority": self.authority.raw.hex(),
            "certificate": self.certificate.payload,
            "key": self.signer.public.raw.hex(),
            "strength": self._authority.strength,
        }

    def _certified(self, now: float) -> Signer:
        key = Ed25519PrivateKey.from_private_bytes(self._entropy(32))
        public = PublicKey(key.public_key().public_bytes_raw())
        begins = int(now)
        ends = begins + LIFETIME
        signature = self._authority.sign(statement(self._origin, public, begins, ends))
        by = self.authority.certifier_hash(self._origin)
        certificate = Certificate(self._origin, public, begins, ends, by, signature)
        if certificate.granted_by([self.authority]) is None:
            raise KeyUnavailable("the lasting key signed something else than it was given")
        over = self._authority.over(self._origin)
        return Signer(self._origin, key, Signed(self.authority, certificate), over)
