r"""Signed checkpoints in the form of C2SP signed-note and tlog-checkpoint.

    <origin>\n<tree size>\n<base64 root>\n
    \n
    — <key name> <base64(4-byte key hash || 64-byte Ed25519 signature)>\n

The key name is the origin, so one key that signs several logs has one key hash per log.
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
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from router.audit.errors import NoteInvalid

_ALGORITHM = b"\x01"  # Ed25519 in signed-note
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A raw Ed25519 public key (32 bytes)."""

    raw: bytes

    def key_hash(self, name: str) -> bytes:
        """The 4-byte hash that names this key in a note signed under `name`."""
        return sha256(name.encode() + b"\n" + _ALGORITHM + self.raw).digest()[:4]

    def vkey(self, name: str) -> str:
        """Verifier key text: `name+hash+base64(algorithm || key)`."""
        encoded = b64encode(_ALGORITHM + self.raw).decode()
        return f"{name}+{self.key_hash(name).hex()}+{encoded}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether `signature` is this key's over `message`."""
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except InvalidSignature:
            return False
        return True


def read_public_key(text: str) -> PublicKey:
    """Read a PEM public key, a PEM private key's public half, or a vkey."""
    try:
        if "-----BEGIN" in text:
            return _read_pem(text.encode())
        name, stated, encoded = text.strip().split("+", 2)
        raw = b64decode(encoded, validate=True)
    except (ValueError, Base64Error) as error:
        raise NoteInvalid("the public key is neither PEM nor a vkey `name+hash+key`") from error
    key = PublicKey(raw[1:])
    if raw[:1] != _ALGORITHM or len(raw) != 33 or key.key_hash(name).hex() != stated:
        raise NoteInvalid(f"the vkey of `{name}` does not match its own hash")
    return key


def _read_pem(pem: bytes) -> PublicKey:
    if b"PRIVATE" in pem:
        return _public_half(load_pem_private_key(pem, None))
    public = load_pem_public_key(pem)
    if not isinstance(public, Ed25519PublicKey):
        raise ValueError("not an Ed25519 key")
    return PublicKey(public.public_bytes(Encoding.Raw, PublicFormat.Raw))


def _public_half(private: object) -> PublicKey:
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    return PublicKey(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One signed tree head. `text` is the whole note, signatures included."""

    origin: str
    size: int
    root: bytes
    text: str

    def signed_by(self, keys: Iterable[PublicKey]) -> PublicKey | None:
        """The first of `keys` with a valid signature on this note; other signatures are ignored."""
        body, signatures = note_parts(self.text)
        for key in keys:
            wanted = (self.origin, key.key_hash(self.origin))
            for name, key_hash, signature in signatures:
                if (name, key_hash) == wanted and key.verifies(signature, body):
                    return key
        return None


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
    if dash != "—" or not name or len(raw) < 5:
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
    """Signs tree heads and roster lines of one log with an Ed25519 key held in memory."""

    __slots__ = ("_hash", "_key", "origin", "public")

    def __init__(self, origin: str, key: Ed25519PrivateKey) -> None:
        if not _NAME.fullmatch(origin):
            raise NoteInvalid(f"`{origin}` can't name a log: use letters, digits, `.`, `_`, `-`")
        self.origin = origin
        self.public = _public_half(key)
        self._key = key
        self._hash = self.public.key_hash(origin)

    def sign(self, message: bytes) -> bytes:
        """Raw 64-byte signature."""
        return self._key.sign(message)

    def checkpoint(self, size: int, root: bytes) -> Checkpoint:
        """Sign one tree head."""
        body = f"{self.origin}\n{size}\n{b64encode(root).decode()}\n"
        signature = b64encode(self._hash + self._key.sign(body.encode())).decode()
        return Checkpoint(self.origin, size, root, f"{body}\n— {self.origin} {signature}\n")


def load_signer(path: Path, origin: str) -> Signer:
    """A signer with an Ed25519 private key in PEM (PKCS #8). Raises NoteInvalid."""
    return Signer(origin, read_private_key(path))


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Read an Ed25519 private key in PEM (PKCS #8). Raises NoteInvalid."""
    try:
        key = load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
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
