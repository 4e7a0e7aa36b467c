from base64 import b64decode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.errors import NoteInvalid
from router.audit.note import (
    Signer,
    create_signing_key,
    load_signer,
    parse_checkpoint,
    read_public_key,
)
from router.audit.tree import EMPTY_ROOT


def signer(seed: int = 1, origin: str = "eu-1") -> Signer:
    return Signer(origin, Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


def test_the_vkey_of_the_signed_note_specification() -> None:
    text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    key = read_public_key(text)
    assert key.vkey("PeterNeumann") == text


def test_a_signed_note_of_the_specification() -> None:
    key = read_public_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    text = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
    )
    signature = b64decode(
        "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpR"
        "Zb6KE6RyyBwJnAM="
    )
    assert signature[:4] == key.key_hash("PeterNeumann")
    assert key.verifies(signature[4:], text.encode())


def test_a_checkpoint_reads_back_and_verifies() -> None:
    head = signer().checkpoint(0, EMPTY_ROOT)
    assert parse_checkpoint(head.text) == head
    assert head.text.startswith("eu-1\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 ")
    assert head.signed_by([signer(2).public, signer().public]) == signer().public
    assert head.signed_by([signer(2).public]) is None


def test_other_signatures_and_extension_lines_are_ignored() -> None:
    head = signer().checkpoint(3, EMPTY_ROOT)
    cosigned = head.text + signer(3, "witness").checkpoint(3, EMPTY_ROOT).text.split("\n\n")[1]
    assert parse_checkpoint(cosigned).signed_by([signer().public])


def test_a_signature_under_another_name_does_not_count() -> None:
    renamed = signer(1, "us-1").checkpoint(3, EMPTY_ROOT).text.replace("us-1\n", "eu-1\n", 1)
    assert parse_checkpoint(renamed).signed_by([signer().public]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "eu-1\n3\n",
        "eu-1\n03\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 AAAAAAAA\n",
        "eu-1\n-3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 AAAAAAAA\n",
        "\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 AAAAAAAA\n",
        "eu-1\n3\n47DE\n\n— eu-1 AAAAAAAA\n",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=\n\n— eu-1 AAAAAAAA\n",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n- eu-1 AAAAAAAA\n",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 AAAAAAAA",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu-1 ????\n",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu+1 AAAAAAAA\n",
        "eu-1\n3\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n— eu\u00a01 AAAAAAAA\n",
    ],
)
def test_what_is_no_checkpoint(text: str) -> None:
    with pytest.raises(NoteInvalid):
        parse_checkpoint(text)


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "log.key"
    public = create_signing_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_signer(path, "eu-1").public == public == read_public_key(path.read_text())
    with pytest.raises(FileExistsError):
        create_signing_key(path)


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN " + b"PRIVATE KEY-----\n"])
def test_unusable_key_files_are_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "log.key"
    path.write_bytes(content)
    with pytest.raises(NoteInvalid, match=r"log\.key"):
        load_signer(path, "eu-1")
    with pytest.raises(NoteInvalid):
        read_public_key(content.decode())


@pytest.mark.parametrize("origin", ["", "a b", "a\nb", "a+b", "-a", "ü"])
def test_origins_that_would_break_a_note(origin: str) -> None:
    with pytest.raises(NoteInvalid):
        signer(1, origin)
