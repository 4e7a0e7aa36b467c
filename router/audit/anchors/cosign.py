"""Cosignatures of C2SP tlog-cosignature, version 1, with Ed25519.

A witness that cosigns a checkpoint says: at this time, this was the largest tree of its log that I
have seen, and it contains every smaller one I cosigned.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.errors import NoteInvalid
from router.audit.note import Checkpoint, PublicKey, note_parts

_ALGORITHM: Final = b"\x04"


@dataclass(frozen=True, slots=True)
class WitnessKey:
    """A witness by name and public key."""

    name: str
    public: PublicKey

    @property
    def key_hash(self) -> bytes:
        """The 4 bytes that name this key in a note."""
        return sha256(self.name.encode() + b"\n" + _ALGORITHM + self.public.raw).digest()[:4]

    @property
    def vkey(self) -> str:
        """Verifier key text."""
        encoded = b64encode(_ALGORITHM + self.public.raw).decode()
        return f"{self.name}+{self.key_hash.hex()}+{encoded}"

    def cosigned_at(self, checkpoint: Checkpoint) -> int | None:
        """When this witness cosigned the checkpoint, seconds since 1970; None if it did not."""
        body, signatures = note_parts(checkpoint.text)
        for name, key_hash, payload in signatures:
            if (name, key_hash) == (self.name, self.key_hash) and len(payload) == 72:
                time = int.from_bytes(payload[:8], "big")
                if self.public.verifies(payload[8:], _message(time, body)):
                    return time
        return None


def read_witness_key(vkey: str) -> WitnessKey:
    """A witness by its verifier key text. Raises NoteInvalid."""
    try:
        name, stated, encoded = vkey.strip().split("+", 2)
        raw = b64decode(encoded, validate=True)
    except (ValueError, Base64Error) as error:
        raise NoteInvalid("a witness's key is a vkey, `name+hash+key`") from error
    if raw[:1] == b"\x01" or raw[:1] == b"\xff":
        raise NoteInvalid(
            f"`{name}` is a log's vkey, not a witness's: `audit witness key` prints that"
        )
    found = WitnessKey(name, PublicKey(raw[1:]))
    if raw[:1] != _ALGORITHM or len(raw) != 33 or found.key_hash.hex() != stated:
        raise NoteInvalid(f"the vkey of witness `{name}` does not match its own hash")
    return found


def cosign(name: str, key: Ed25519PrivateKey, checkpoint: Checkpoint, time: int) -> str:
    """The signature line of a witness for a checkpoint, newline included."""
    body, _ = note_parts(checkpoint.text)
    own = WitnessKey(name, PublicKey(key.public_key().public_bytes_raw()))
    payload = own.key_hash + time.to_bytes(8, "big") + key.sign(_message(time, body))
    return f"— {name} {b64encode(payload).decode()}\n"


def _message(time: int, body: bytes) -> bytes:
    return b"cosignature/v1\ntime %d\n" % time + body
