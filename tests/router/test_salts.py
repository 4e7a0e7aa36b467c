"""A tenant's salt: nobody else's to find or to ask for, and what its clients may divide further."""

from __future__ import annotations

import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from router.salts import Salts

TEXTS = st.text(max_size=40)
SAID = st.none() | TEXTS
FORM = re.compile(r"[A-Za-z0-9_-]{43}")
"""What vLLM takes: not longer than 128, without `@`, `/` and backslashes."""


@given(st.binary(max_size=40), TEXTS, SAID, TEXTS, SAID)
def test_equal_salts_are_of_one_tenant_and_one_word(
    secret: bytes, one: str, mine: str | None, other: str, theirs: str | None
) -> None:
    salts = Salts(secret)
    same = (one, mine or None) == (other, theirs or None)
    assert (salts.of(one, mine) == salts.of(other, theirs)) == same
    assert FORM.fullmatch(salts.of(one, mine))


@given(SAID)
def test_a_clients_word_is_never_a_salt_itself(said: str | None) -> None:
    salts = Salts(b"s" * 32)
    aimed = salts.of("bank", said)
    assert salts.of("clinic", aimed) != aimed
    assert salts.of("bank", aimed) != aimed


def test_without_the_key_nobody_finds_it() -> None:
    keyed, other = Salts(b"a" * 32), Salts(b"b" * 32)
    assert keyed.of("bank") != other.of("bank") != Salts().of("bank")
    assert "aaaa" not in repr(keyed)
    own = Salts(own={"bank": b"k" * 32, "clinic": b"l" * 32})
    assert own.of("bank") != Salts().of("bank")
    assert "kkkk" not in repr(own)
    assert own.of("bank") == Salts(own={"bank": b"k" * 32}).of("bank")


def test_what_is_no_text_says_nothing() -> None:
    salts = Salts(hashlib.sha256(b"x").digest())
    said: tuple[object, ...] = (None, "", 5, ["a"], {})
    assert {salts.of("bank", one) for one in said} == {salts.of("bank")}
