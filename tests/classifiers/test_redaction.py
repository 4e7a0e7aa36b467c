"""Redaction: every identifier of the kinds asked for is gone, and the rest of the text is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
