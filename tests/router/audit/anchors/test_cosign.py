from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.cosign import WitnessKey, cosign
from router.audit.note import PublicKey, Signer, parse_checkpoint

LOG = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
PRIVATE = Ed25519PrivateKey.from_private_bytes(b"w" * 32)
KEY = WitnessKey("witness.example", PublicKey(PRIVATE.public_key().public_bytes_raw()))


def test_a_cosignature_states_its_time_and_leaves_the_log_signature() -> None:
    head = LOG.checkpoint(5, bytes(32))
    both = parse_checkpoint(head.text + cosign(KEY.name, PRIVATE, head, 1_800_000_000))
    assert KEY.cosigned_at(both) == 1_800_000_000
    assert both.signed_by([LOG.public]) == LOG.public
    assert KEY.cosigned_at(head) is None


def test_a_cosignature_is_of_one_checkpoint_and_one_witness() -> None:
    head, other = LOG.checkpoint(5, bytes(32)), LOG.checkpoint(6, bytes(32))
    line = cosign(KEY.name, PRIVATE, head, 7)
    assert KEY.cosigned_at(parse_checkpoint(other.text + line)) is None
    renamed = WitnessKey("other.example", KEY.public)
    assert renamed.cosigned_at(parse_checkpoint(head.text + line)) is None


def test_key_hashes_name_the_kind_of_signature() -> None:
    assert KEY.key_hash != KEY.public.key_hash(KEY.name)
    assert KEY.vkey.startswith(f"witness.example+{KEY.key_hash.hex()}+B")
