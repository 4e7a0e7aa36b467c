"""Request ids: each is given once, though their randomness is drawn for many."""

from __future__ import annotations

import os
import random
from base64 import b32hexdecode
from uuid import RFC_4122, UUID

from router.ids import BYTES, DRAWN, Ids


def test_each_is_a_uuid_of_its_own_over_several_draws() -> None:
    drawn: list[int] = []

    def entropy(size: int) -> bytes:
        drawn.append(size)
        return os.urandom(size)

    ids = Ids(lambda: 1_800_000_000.0, entropy)
    made = [ids() for _ in range(3 * DRAWN)]
    assert drawn == [BYTES * DRAWN] * 3
    assert len(set(made)) == len(made)
    for one in made:
        uuid = _uuid(one)
        assert (uuid.version, uuid.variant) == (7, RFC_4122)
        assert int.from_bytes(uuid.bytes[:6]) == 1_800_000_000_000


def test_time_is_that_of_the_asking_not_of_the_draw() -> None:
    now = 1_800_000_000.0
    ids = Ids(lambda: now, random.Random(7).randbytes)
    made = []
    for _ in range(DRAWN + 5):
        made.append(ids())
        now += 0.001
    assert sorted(made) == made


def test_every_bit_that_is_not_fixed_is_the_drawn_ones() -> None:
    """With all bits drawn set, and with none, an id differs in exactly 74 places."""
    low, high = (Ids(lambda: 1.0, every.__mul__, 1)() for every in (b"\x00", b"\xff"))
    assert (_uuid(low).int ^ _uuid(high).int).bit_count() == 74


def _uuid(id_: str) -> UUID:
    return UUID(bytes=b32hexdecode(id_.upper() + "======"))
