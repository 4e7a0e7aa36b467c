from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from router.audit.anchors.objects import ObjectAnchor
from router.audit.anchors.witness import AnchorRefused
from router.audit.note import Signer
from tests.router.audit.shelf import Shelf

SIGNER = Signer("eu-1", Ed25519PrivateKey.from_private_bytes(bytes(32)))
NOW = 1_800_000_000.0
UNTIL = datetime.fromtimestamp(NOW, UTC) + timedelta(days=30)


def anchor(shelf: Shelf) -> ObjectAnchor:
    return ObjectAnchor(shelf, "heads/", timedelta(days=30), lambda: NOW)


def test_a_checkpoint_is_stored_once_and_locked() -> None:
    shelf = Shelf()
    heads = [SIGNER.checkpoint(size, bytes([size]) * 32) for size in (9, 100)]
    for head in [*heads, heads[0]]:
        anchor(shelf).publish(head)
    assert list(anchor(shelf).checkpoints("eu-1")) == heads
    assert list(anchor(shelf).checkpoints("eu")) == []
    assert {until for _, until in shelf.objects.values()} == {UNTIL}


def test_a_second_head_of_one_size_is_a_split_view() -> None:
    shelf = Shelf()
    anchor(shelf).publish(SIGNER.checkpoint(9, bytes(32)))
    with pytest.raises(AnchorRefused, match="split view"):
        anchor(shelf).publish(SIGNER.checkpoint(9, b"\x01" * 32))


@pytest.mark.parametrize("mode", ["GOVERNANCE", ""])
def test_what_can_be_deleted_is_no_anchor(mode: str) -> None:
    shelf = Shelf(mode)
    for _ in range(2):  # asked again, as a router does, the object that is there is none either
        with pytest.raises(AnchorRefused, match="not immutable"):
            anchor(shelf).publish(SIGNER.checkpoint(9, bytes(32)))


def test_a_lock_shorter_than_asked_is_no_anchor() -> None:
    with pytest.raises(AnchorRefused, match="locked only until"):
        anchor(Shelf(shorter=timedelta(days=1))).publish(SIGNER.checkpoint(9, bytes(32)))
    shelf = Shelf(shorter=timedelta(days=2))
    for _ in range(2):
        with pytest.raises(AnchorRefused, match="locked only until"):
            anchor(shelf).publish(SIGNER.checkpoint(9, bytes(32)))
