"""Signatures over the baseline as a whole: m of n compliance keys must have signed it.

What can widen lives in baseline files, so a file that is missing, added or exchanged must
be noticed as well as one that is changed: the signed message covers the names and contents
of all baseline files at once, and those of the files that they name and that can widen as well. A
signature is detached: base64 of 64 bytes, in a `.sig` file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from policies.gathered import PolicyFile

PREFIX: Final = b"domicile baseline v1\n"


class NotSigned(ValueError):
    """The baseline has fewer valid signatures than it needs; it does not load."""


@dataclass(frozen=True, slots=True)
class ComplianceKey:
    """A public key that may sign a baseline. `id` is the SHA-256 (hex, 16) of the raw key."""

    id: str
    key: Ed25519PublicKey

    @property
    def text(self) -> str:
        """The raw key in base64, as `read` takes it."""
        raw = self.key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return base64.b64encode(raw).decode()

    @classmethod
    def read(cls, text: bytes) -> ComplianceKey:
        """The key in a PEM file, or 32 raw bytes in base64.

        Raises:
            ValueError: neither, or no Ed25519 key.
        """
        if text.lstrip().startswith(b"-----BEGIN"):
            key = load_pem_public_key(text)
            if not isinstance(key, Ed25519PublicKey):
                raise ValueError("a compliance key is an Ed25519 public key")
        else:
            key = Ed25519PublicKey.from_public_bytes(_decoded(text, 32, "a compliance key"))
        raw = key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return cls(hashlib.sha256(raw).hexdigest()[:16], key)


def message(baseline: Iterable[PolicyFile]) -> bytes:
    """What is signed: every baseline file's base name and SHA-256, in the order of names.

    Raises:
        ValueError: two files have one base name.
    """
    lines: dict[str, str] = {}
    for file in baseline:
        name = PurePath(file.name).name
        if name in lines:
            raise ValueError(f"two baseline files are called `{name}`; rename one to sign them")
        lines[name] = hashlib.sha256(file.content).hexdigest()
    listed = "".join(f"{digest}  {name}\n" for name, digest in sorted(lines.items()))
    return PREFIX + listed.encode()


def sign(baseline: Iterable[PolicyFile], key: Ed25519PrivateKey) -> bytes:
    """The content of a `.sig` file."""
    return base64.b64encode(key.sign(message(baseline))) + b"\n"


def require_signed(
    baseline: Sequence[PolicyFile],
    signatures: Iterable[bytes],
    keys: Sequence[ComplianceKey],
    needed: int = 1,
) -> tuple[str, ...]:
    """The ids of the keys that signed the baseline as it is.

    Args:
        signatures: contents of the `.sig` files found beside the baseline.
        keys: compliance keys as configured; each counts once.
        needed: how many of them must have signed (m of n).

    Raises:
        NotSigned: fewer valid signatures than needed, or more needed than there are keys.
        ValueError: two files have one base name.
    """
    unique = {key.id: key for key in keys}
    if not 1 <= needed <= len(unique):
        raise NotSigned(f"{needed} signatures are needed of {len(unique)} keys; correct `policies`")
    text = message(baseline)
    found = [_signature(one) for one in signatures]
    signers = tuple(sorted(i for i, key in unique.items() if _signed(key, found, text)))
    if len(signers) < needed:
        have = ", ".join(signers) or "none"
        raise NotSigned(
            f"the baseline needs {needed} signatures of its compliance keys and has {len(signers)} "
            f"({have}); sign it as it is now with `domicile policy sign`"
        )
    return signers


def _signed(key: ComplianceKey, signatures: Iterable[bytes | None], text: bytes) -> bool:
    return any(one is not None and _verifies(key, one, text) for one in signatures)


def _verifies(key: ComplianceKey, signature: bytes, text: bytes) -> bool:
    try:
        key.key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _signature(text: bytes) -> bytes | None:
    """A file that holds no signature signs nothing, and stops nobody else's from counting."""
    try:
        return _decoded(text, 64, "a signature")
    except ValueError:
        return None


def _decoded(text: bytes, length: int, what: str) -> bytes:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except binascii.Error:
        raise ValueError(f"{what} is base64 of {length} bytes") from None
    if len(raw) != length:
        raise ValueError(f"{what} is base64 of {length} bytes, not of {len(raw)}")
    return raw
