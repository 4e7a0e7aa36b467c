r"""Signed checkpoints in the form of C2SP signed-note and tlog-checkpoint.

    <origin>\n<tree size>\n<base64 root>\n
    \n
    — <key name> <base64(4-byte key hash || 64-byte Ed25519 signature)>\n

The key name is the origin, so one key that signs several logs has one key hash per log.

A head may be signed by a key that lives in one process for a day. Then one more signature line,
of the kind that signed-note leaves to others, says who certified that key:

    — <key name> <base64(4-byte hash || 32-byte key || begins || ends || 64-byte signature)>\n

begins and ends are seconds since 1970 in 8 bytes, big-endian, at most a day apart. The hash is of
`name\n`, 0xff, `domicile-certificate-v1` and the certifying key; the signature is that key's, over
`domicile-certificate-v1\n<key name>\n<key, hex>\n<begins>\n<ends>\n`. The certifying key is of
Ed25519 (32 bytes) or of P-256 (65 bytes: an uncompressed point; signatures are r || s).
"""

import os
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)

from router.audit.errors import NoteInvalid
from router.settings import bounded

_ALGORITHM = b"\x01"  # Ed25519 in signed-note
_STATEMENT = "domicile-certificate-v1"
_COSIGNS = b"\x04"  # a witness's Ed25519, see `anchors/cosign.py`
_CERTIFIES = b"\xff" + _STATEMENT.encode()  # a kind of signature of our own
_KEY_BYTES = 32
_POINT_BYTES = 65
_CERTIFICATE_BYTES = 4 + _KEY_BYTES + 8 + 8 + 64
LIFETIME = 86_400  # the longest that a certificate may last, in seconds
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_SIGNER = re.compile(r"[^\s+]+")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A raw public key: Ed25519 (32 bytes), or P-256, which certifies only (65 bytes)."""

    raw: bytes

    def key_hash(self, name: str) -> bytes:
        """The 4-byte hash that names this key's signatures in a note signed under `name`."""
        return sha256(name.encode() + b"\n" + _ALGORITHM + self.raw).digest()[:4]

    def certifier_hash(self, name: str) -> bytes:
        """The 4-byte hash that names the certificates this key gave for `name`."""
        return sha256(name.encode() + b"\n" + _CERTIFIES + self.raw).digest()[:4]

    def vkey(self, name: str) -> str:
        """Verifier key text: `name+hash+base64(algorithm || key)`."""
        signs = len(self.raw) == _KEY_BYTES
        key_hash = self.key_hash(name) if signs else self.certifier_hash(name)
        encoded = b64encode((_ALGORITHM if signs else _CERTIFIES) + self.raw).decode()
        return f"{name}+{key_hash.hex()}+{encoded}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` (64 bytes) is this key's over `message`."""
        try:
            if len(self.raw) == _KEY_BYTES:
                Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
            else:
                point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), self.raw)
                halves = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
                point.verify(encode_dss_signature(*halves), message, ec.ECDSA(SHA256()))
        except (InvalidSignature, ValueError):
            return False
        return len(signature) == 64


def read_public_key(text: str) -> PublicKey:
    """Read a PEM public key, a PEM private key's public half, or a vkey."""
    try:
        if "-----BEGIN" in text:
            return _read_pem(text.encode())
        name, stated, encoded = text.strip().split("+", 2)
        raw = b64decode(encoded, validate=True)
    except (ValueError, Base64Error) as error:
        raise NoteInvalid("the public key is neither PEM nor a vkey `name+hash+key`") from error
    if raw.startswith(_COSIGNS):
        raise NoteInvalid(f"`{name}` is a witness's vkey, not a log's: `audit vkey` prints that")
    kind = _CERTIFIES if raw.startswith(_CERTIFIES) else _ALGORITHM
    key = PublicKey(raw[len(kind) :])
    fits = len(key.raw) == (_KEY_BYTES if kind == _ALGORITHM else _POINT_BYTES)
    if not raw.startswith(kind) or not fits or not key.vkey(name).endswith(f"+{stated}+{encoded}"):
        raise NoteInvalid(f"the vkey of `{name}` does not match its own hash")
    return key


def _read_pem(pem: bytes) -> PublicKey:
    if b"PRIVATE" in pem:
        return _public_half(load_pem_private_key(pem, None))
    return _known_kind(load_pem_public_key(pem))


def read_der(der: bytes) -> PublicKey:
    """Read a public key as key services give it (SubjectPublicKeyInfo). Raises NoteInvalid."""
    try:
        return _known_kind(load_der_public_key(der))
    except ValueError as error:
        raise NoteInvalid(f"the public key can't be read: {error}") from error


def _known_kind(public: object) -> PublicKey:
    if isinstance(public, Ed25519PublicKey):
        return PublicKey(public.public_bytes(Encoding.Raw, PublicFormat.Raw))
    if isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == "secp256r1":
        return PublicKey(public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
    raise ValueError("neither an Ed25519 nor a P-256 key")


def _public_half(private: object) -> PublicKey:
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    return PublicKey(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


@dataclass(frozen=True, slots=True)
class Certificate:
    """`key` may sign for log `origin` from `begins` to `ends`, seconds since 1970.

    `by` is the hash of the key that said so (`certifier_hash`), `signature` its 64 bytes.
    """

    origin: str
    key: PublicKey
    begins: int
    ends: int
    by: bytes
    signature: bytes

    @property
    def payload(self) -> str:
        """What stands in its signature line, base64."""
        times = self.begins.to_bytes(8) + self.ends.to_bytes(8)
        return b64encode(self.by + self.key.raw + times + self.signature).decode()

    @property
    def line(self) -> str:
        """Its signature line in a note, newline included."""
        return f"— {self.origin} {self.payload}\n"

    def granted_by(self, keys: Iterable[PublicKey]) -> PublicKey | None:
        """The one of `keys` that gave it; None too when it would last longer than a day."""
        if not 0 < self.ends - self.begins <= LIFETIME:
            return None
        said = statement(self.origin, self.key, self.begins, self.ends)
        for key in keys:
            if key.certifier_hash(self.origin) == self.by and key.verifies(self.signature, said):
                return key
        return None


def statement(origin: str, key: PublicKey, begins: int, ends: int) -> bytes:
    """What a certifying key signs."""
    return f"{_STATEMENT}\n{origin}\n{key.raw.hex()}\n{begins}\n{ends}\n".encode()


def read_certificate(origin: str, payload: str) -> Certificate:
    """Read what stands in a certificate's line. Raises NoteInvalid; no signature is checked."""
    raw = _base64(payload)
    if len(raw) != _CERTIFICATE_BYTES:
        raise NoteInvalid(f"a certificate has {_CERTIFICATE_BYTES} bytes")
    begins, ends = int.from_bytes(raw[36:44]), int.from_bytes(raw[44:52])
    return Certificate(origin, PublicKey(raw[4:36]), begins, ends, raw[:4], raw[52:])


@dataclass(frozen=True, slots=True)
class Signed:
    """Which known key stands behind a note, and the certificate it gave if it didn't sign."""

    by: PublicKey
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One signed tree head. `text` is the whole note, signatures included."""

    origin: str
    size: int
    root: bytes
    text: str

    def signed_by(self, keys: Iterable[PublicKey]) -> PublicKey | None:
        """The first of `keys` that stands behind this note, see `signed`."""
        signed = self.signed(keys)
        return None if signed is None else signed.by

    def signed(self, keys: Iterable[PublicKey]) -> Signed | None:
        """Who of `keys` signed this note, or certified who did; other signatures are ignored.

        What a certificate's times mean is the caller's to judge: a note has no time.
        """
        body, signatures = note_parts(self.text)
        known = tuple(keys)
        for key in known:
            if self._holds(key, body, signatures):
                return Signed(key)
        for name, key_hash, payload in signatures:
            if name == self.origin and len(key_hash + payload) == _CERTIFICATE_BYTES:
                encoded = b64encode(key_hash + payload).decode()
                certificate = read_certificate(self.origin, encoded)
                by = certificate.granted_by(known)
                if by is not None and self._holds(certificate.key, body, signatures):
                    return Signed(by, certificate)
        return None

    def _holds(
        self, key: PublicKey, body: bytes, signatures: Iterable[tuple[str, bytes, bytes]]
    ) -> bool:
        wanted = (self.origin, key.key_hash(self.origin))
        return any(
            (name, key_hash) == wanted and key.verifies(signature, body)
            for name, key_hash, signature in signatures
        )


def parse_checkpoint(text: str) -> Checkpoint:
    """Read a checkpoint note. Raises NoteInvalid; no signature is checked here."""
    body, _ = note_parts(text)
    lines = body.decode().split("\n")
    if len(lines) < 4 or not lines[0] or not _SIZE.fullmatch(lines[1]):
        raise NoteInvalid("a checkpoint starts with an origin, a tree size and a root hash")
    root = _base64(lines[2])
    if len(root) != 32:
        raise NoteInvalid("the root hash of a checkpoint has 32 bytes")
    return Checkpoint(lines[0], int(lines[1]), root, text)


def note_parts(text: str) -> tuple[bytes, list[tuple[str, bytes, bytes]]]:
    """The signed text of a note, and its signatures as (name, key hash, payload)."""
    body, separator, tail = text.rpartition("\n\n")
    if not separator or not tail.endswith("\n"):
        raise NoteInvalid("a signed note has a text, an empty line and signature lines")
    return (body + "\n").encode(), [_signature_line(line) for line in tail[:-1].split("\n")]


def _signature_line(line: str) -> tuple[str, bytes, bytes]:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    raw = _base64(encoded)
    if dash != "—" or not _SIGNER.fullmatch(name) or len(raw) < 5:
        raise NoteInvalid("a signature line is `— name base64`")
    return name, raw[:4], raw[4:]


def _base64(text: str) -> bytes:
    try:
        raw = b64decode(text, validate=True)
    except (ValueError, Base64Error) as error:
        raise NoteInvalid("base64 expected") from error
    if b64encode(raw).decode() != text:
        raise NoteInvalid("base64 is not in its canonical form")
    return raw


class Signer:
    """Signs tree heads and roster lines of one log with an Ed25519 key held in memory.

    `authority` is the lasting key, which gave the `certificate` if it isn't the one that signs.
    `over` signs what is published as well, for witnesses that know no certificates.
    """

    __slots__ = ("_hash", "_key", "_over", "_tail", "authority", "certificate", "origin", "public")

    def __init__(
        self,
        origin: str,
        key: Ed25519PrivateKey,
        granted: Signed | None = None,
        over: "Signer | None" = None,
    ) -> None:
        if not _NAME.fullmatch(origin):
            raise NoteInvalid(f"`{origin}` can't name a log: use letters, digits, `.`, `_`, `-`")
        self.origin = origin
        self.public = _public_half(key)
        self.authority = self.public if granted is None else granted.by
        self.certificate = None if granted is None else granted.certificate
        self._tail = "" if self.certificate is None else self.certificate.line
        self._over = over
        self._key = key
        self._hash = self.public.key_hash(origin)

    def sign(self, message: bytes) -> bytes:
        """Raw 64-byte signature."""
        return self._key.sign(message)

    def checkpoint(self, size: int, root: bytes) -> Checkpoint:
        """Sign one tree head."""
        body = f"{self.origin}\n{size}\n{b64encode(root).decode()}\n"
        return Checkpoint(
            self.origin, size, root, f"{body}\n{self.line(body.encode())}{self._tail}"
        )

    def published(self, head: Checkpoint) -> Checkpoint:
        """A head of this signer's, as it is published."""
        if self._over is None:
            return head
        body, _ = note_parts(head.text)
        text = head.text + self._over.line(body)
        return Checkpoint(head.origin, head.size, head.root, text)

    def line(self, body: bytes) -> str:
        """Its signature line under the text of a note."""
        encoded = b64encode(self._hash + self._key.sign(body)).decode()
        return f"— {self.origin} {encoded}\n"


def load_signer(path: Path, origin: str) -> Signer:
    """A signer with an Ed25519 private key in PEM (PKCS #8). Raises NoteInvalid."""
    return Signer(origin, read_private_key(path))


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Read an Ed25519 private key in PEM (PKCS #8). Raises NoteInvalid."""
    try:
        key = load_pem_private_key(bounded.read(path), None)
    except OSError as error:
        raise NoteInvalid(f"can't read the signing key `{path}`: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise NoteInvalid(
            f"can't read the signing key `{path}`: expected an unencrypted Ed25519 PEM file"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise NoteInvalid(f"the signing key `{path}` is not an Ed25519 key")
    return key


def create_signing_key(path: Path) -> PublicKey:
    """Write a new Ed25519 key, readable by its owner only. Never overwrites."""
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(pem)
    return _public_half(key)
