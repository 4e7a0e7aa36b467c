from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from policies.gathered import PolicyFile
from policies.signatures import ComplianceKey, NotSigned, message, require_signed, sign

KEYS = [Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32) for n in range(3)]
FILES = [PolicyFile("baseline/a.yaml", b"tenants: {}\n"), PolicyFile("baseline/b.yaml", b"\n")]


def public(key: Ed25519PrivateKey, pem: bool = True) -> ComplianceKey:
    if pem:
        text = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        return ComplianceKey.read(text)
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return ComplianceKey.read(b64encode(raw))


PUBLIC = [public(key) for key in KEYS]


def test_signed_by_enough() -> None:
    signatures = [sign(FILES, KEYS[0]), sign(FILES, KEYS[2])]
    assert require_signed(FILES, signatures, PUBLIC, needed=2) == tuple(
        sorted((PUBLIC[0].id, PUBLIC[2].id))
    )
    # the folder may move, and the order of files doesn't matter
    moved = [PolicyFile(f"elsewhere/{f.name[9:]}", f.content) for f in reversed(FILES)]
    assert require_signed(moved, signatures, PUBLIC, needed=2)


def test_raw_and_pem_keys_are_the_same() -> None:
    assert public(KEYS[0], pem=False).id == PUBLIC[0].id


def test_the_same_key_twice_counts_once() -> None:
    signature = sign(FILES, KEYS[0])
    with pytest.raises(NotSigned, match="needs 2 signatures"):
        require_signed(FILES, [signature, signature], [*PUBLIC, PUBLIC[0]], needed=2)


@pytest.mark.parametrize(
    "files",
    [
        FILES[:1],
        [*FILES, PolicyFile("c.yaml", b"")],
        [FILES[0], PolicyFile("baseline/b.yaml", b"\n\n")],
        [FILES[0], PolicyFile("baseline/c.yaml", b"\n")],
        [
            PolicyFile("baseline/a.yaml", FILES[1].content),
            PolicyFile("baseline/b.yaml", FILES[0].content),
        ],
    ],
    ids=["dropped", "added", "changed", "renamed", "swapped"],
)
def test_any_change_of_the_set_needs_a_new_signature(files: list[PolicyFile]) -> None:
    with pytest.raises(NotSigned):
        require_signed(files, [sign(FILES, KEYS[0])], PUBLIC)


def test_every_flipped_bit_breaks_it() -> None:
    raw = b64decode(sign(FILES, KEYS[0]))
    for n in range(len(raw) * 8):
        bad = bytearray(raw)
        bad[n // 8] ^= 1 << n % 8
        with pytest.raises(NotSigned):
            require_signed(FILES, [b64encode(bytes(bad))], PUBLIC)


def test_rubbish_beside_a_good_signature_does_not_stop_it() -> None:
    signatures = [b"\xff\xfe", b"", b64encode(b"short"), sign(FILES, KEYS[1])]
    assert require_signed(FILES, signatures, PUBLIC) == (PUBLIC[1].id,)


def test_a_stranger_does_not_count() -> None:
    stranger = Ed25519PrivateKey.from_private_bytes(b"\x77" * 32)
    with pytest.raises(NotSigned, match="has 0"):
        require_signed(FILES, [sign(FILES, stranger)], PUBLIC)


@pytest.mark.parametrize("needed", [0, 4])
def test_m_of_n_must_make_sense(needed: int) -> None:
    with pytest.raises(NotSigned, match="correct `policies`"):
        require_signed(FILES, [], PUBLIC, needed)


def test_two_files_of_one_name_cannot_be_signed() -> None:
    with pytest.raises(ValueError, match="two baseline files"):
        message([PolicyFile("x/a.yaml", b""), PolicyFile("y/a.yaml", b"")])


def test_other_keys_are_refused() -> None:
    other = generate_private_key(SECP256R1()).public_key()
    text = other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with pytest.raises(ValueError, match="Ed25519"):
        ComplianceKey.read(text)
    with pytest.raises(ValueError, match="base64 of 32 bytes"):
        ComplianceKey.read(b"AAAA")
