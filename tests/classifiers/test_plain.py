"""The plain reading of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.plain import Layered, plain


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("plain words, 12 of them.", "plain words, 12 of them."),
        ("a\uff20b", "a@b"),
        ("a\u200bb\u00adc\ufeffd\U000e0041e", "abcde"),
        ("caf\u00e9 na\u0308h", "café näh"),
        ("4\u03361", "41"),
        ("\u0661\u0968", "12"),
        (r"a\u0040b\\u002ec\x2dd\u{40}", "a@b.c-d@"),
        ("a%40b%2Ec", "a@b.c"),
        ("a&#64;b&#x40;c&commat;d", "a@b@c@d"),
        ("a (at) b [dot] c", "a@b.c"),
        ("1 - 2\u2013\u20133", "1 2 3"),
        (r"say \u0022hi\u0022 \u000a", r"say \u0022hi\u0022 \u000a"),
        (r"\ud83d\ude00", r"\ud83d\ude00"),
        ("100% sure & done", "100% sure & done"),
    ],
)
def test_reading(text: str, read: str) -> None:
    assert plain(text) == read


def test_escapes_within_escapes_are_read_up_to_a_depth() -> None:
    assert plain("a%252540b") == "a@b"
    with pytest.raises(Layered, match="more than 5 times"):
        plain("%" + "25" * 20 + "40")


@given(st.text(max_size=300))
def test_any_text_is_read_and_a_reading_is_plain(text: str) -> None:
    try:
        read = plain(text)
    except Layered:
        return
    assert plain(read) == read


@given(st.text("\\u0%&#x4;20 -._(at)", max_size=2000))
def test_no_blow_up(text: str) -> None:
    try:
        plain(text)
    except Layered:
        return
