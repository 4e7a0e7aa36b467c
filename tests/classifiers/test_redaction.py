"""Redaction: every identifier of the kinds asked for is gone, and the rest of the text is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.plain import Layered
from classifiers.redaction import CUTS, redact
from policies.obligations import IDENTIFIERS

ALL = frozenset(CUTS)
SAMPLES = {
    "email": ["anna.o+x@mail.example.com", "a@b.co"],
    "iban": ["DE89 3704 0044 0532 0130 00", "GB29NWBK60161331926819", "nl91abna0417164300"],
    "card": ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
    "passport": ["passport no. C01X00T47", "Reisepass: L898902C3"],
    "medical_record": ["MRN: 00123456", "patient id A-77812"],
    "national_id": ["078-05-1120", "943 476 5919", "44051401359", "12345678Z"],
    "ip_address": ["192.168.17.4", "2001:db8::8a2e:370:7334"],
    "phone": ["+49 30 901820", "+1 (415) 555-2671", "030/90182-0", "415-555-2671"],
}


def test_every_kind_of_the_policy_language_can_be_cut() -> None:
    assert frozenset(CUTS) == IDENTIFIERS == frozenset(SAMPLES)


@pytest.mark.parametrize(
    ("kind", "sample"), [(k, s) for k, samples in SAMPLES.items() for s in samples]
)
def test_an_identifier_is_cut_wherever_it_stands(kind: str, sample: str) -> None:
    for text in (sample, f"it is {sample}.", f"({sample}), thanks", f"a\n{sample}\nb"):
        cut = redact(text, frozenset({kind}))
        assert f"[{kind}]" in cut
        assert sample not in cut
        digits = "".join(c for c in sample if c.isdigit())
        assert len(digits) < 5 or digits not in "".join(c for c in cut if c.isdigit())


DISGUISED = {
    "email": [
        "anna\uff20example.com",
        "an\u200bna@exam\u00adple.com",
        r"anna\u0040example.com",
        r"anna\\u0040example.com",
        "anna&#64;example.com",
        "anna&commat;example&#x2e;com",
        "anna%40example.com",
        "anna [at] example (dot) com",
        r"anna\x40example.com",
        "anna%2540example.com",
        "\uff41nna@\U0001d41eexample\uff0ecom",
    ],
    "iban": ["DE89\u200d37040044053201\u206030 00", "\uff24\uff25\uff18\uff19370400440532013000"],
    "card": [
        "4111\u00a01111\u20091111\u202f1111",
        "4111\u20131111\u20131111\u20131111",
        "4111 - 1111 - 1111 - 1111",
        "4\u03361\u03361\u03361\u0336 1111 1111 1111",
        "\u0664\u0661\u0661\u0661" + " \u0661\u0661\u0661\u0661" * 3,
        "4111_1111_1111_1111",
    ],
    "phone": ["\uff0b49 30 901820", "+49\u200b30\u200b901820"],
    "ip_address": ["192\uff0e168.17.4", r"192\u002e168.17.4"],
    "national_id": ["078\u201105\u20111120", "\uff10\uff17\uff18-05-1120"],
}


@pytest.mark.parametrize(
    ("kind", "sample"), [(k, s) for k, samples in DISGUISED.items() for s in samples]
)
def test_a_disguised_identifier_is_cut_too(kind: str, sample: str) -> None:
    for text in (sample, f"it is {sample}.", f'{{"to": "{sample}"}}'):
        cut = redact(text, frozenset({kind}))
        assert f"[{kind}]" in cut, cut
        assert sample not in cut
    assert redact(f"it is {sample}.", frozenset()) == f"it is {sample}."


def test_text_without_a_disguised_identifier_stays_as_it_was_written() -> None:
    for text in ("\uff28\uff45llo \u200b 100%25 &amp; caf\u00e9", r"a \u0041 b", "\u0967\u0968"):
        assert redact(text, ALL) == text


def test_more_layers_than_anybody_writes_are_no_text() -> None:
    with pytest.raises(Layered):
        redact("%" + "25" * 40 + "40", ALL)
    assert redact("%" + "25" * 40 + "40", frozenset()) == "%" + "25" * 40 + "40"


@pytest.mark.parametrize("kind", sorted(SAMPLES))
def test_kinds_that_were_not_asked_for_stay(kind: str) -> None:
    text = f"id {SAMPLES[kind][0]} end"
    assert redact(text, frozenset()) == text


@pytest.mark.parametrize(
    "text",
    [
        "The treaty of 1648 ended a war of 30 years.",
        "Version 1.2.3 was released on 2026-11-29 at 10:45.",
        "x = [1, 2, 3]; y = {'a': 1.5e3}",
        "GDPR Art. 9 and 44",
        "",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text, ALL) == text


def test_an_unknown_kind_is_an_error_not_a_pass() -> None:
    with pytest.raises(KeyError):
        redact("text", frozenset({"shoe_size"}))


@given(st.text(max_size=400))
def test_any_text_and_twice_is_once(text: str) -> None:
    once = redact(text, ALL)
    assert redact(once, ALL) == once


@given(st.text("0123456789 -.@:+a", max_size=3000))
def test_no_blow_up(text: str) -> None:
    redact(text, ALL)
