"""Sensitivity claims: what is found, what is not, and measured on a labelled synthetic set."""

from __future__ import annotations

import sys
import unicodedata
from time import perf_counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bench import sensitive
from classifiers import patterns
from classifiers.patterns import KINDS, LIMIT, Patterns, kinds_in
from classifiers.suite import Suite
from classifiers.view import PromptView

AWS_KEY = "AKIA" + "IOSFODNN7EXAMPLE"
PLAIN = (
    "What is 2+2?", "Summarise the meeting of 12.03.2025 in three points.",
    "Order 12345678 ships on 2025-06-30 for 1,299.00 EUR.", "Use HTTP 404 or 500, port 8080.",
    "pi is 3.14159265358979", "ISBN 978-3-16-148410-0", "Translate: the weather is nice.",
    "commit 9f86d081884c7d659a2feaa0c55ad015", "The range is 10-20 and 30-40, step 0.001.",
    "Explain 192.168.0.1 and 127.0.0.1 and ::1.", "Python 3.11.7 against numpy 2.4.6",
    "sum(range(1000000000)) takes 0.5 s", "The user asked @here about sk- prefixes and gh_",
)  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_texts_claim_nothing(text: str) -> None:
    assert list(kinds_in(text)) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Pay to DE89 3704 0044 0532 0130 00 please", "bank_account"),
        ("gb82west12345698765432", "bank_account"), ("card 4111 1111 1111 1111", "card"),
        ("NHS number 943 476 5919", "national_id"), ("078-05-1120", "national_id"),
        ("meine Steuer-ID: 86 095 742 719", "national_id"), ("DNI 12345678Z", "national_id"),
        ("CF RSSMRA85T10A562S", "national_id"), ("131052-308T", "national_id"),
        ("USt-IdNr. DE136695976", "tax_id"), ("ATU13585627", "tax_id"),
        ("L898902C36UTO7408122F1204159ZE184226B<<<<<10", "passport"),
        ("write to anna.meier+x@mail.example.co.uk", "email"), ("+49 30 1234567", "phone"),
        ("call (415) 555-0132 now", "phone"), ("from 8.8.8.8", "ip"),
        ("2001:4860:4860::8888", "ip"), (AWS_KEY, "secret"),
        ("-----BEGIN RSA " + "PRIVATE KEY-----", "secret"), ("the patient has diabetes", "health"),
        ("Die Patientin ist schwanger", "health"), ("my 5-year-old won't sleep", "child"),
        ("unsere Tochter: mein kleiner Sohn", "child"), ("die\u00a0PATIENTIN\u2003hier", "health"),
        ("symptoms/diagnosis: none", "health"), ("une \u00c9L\u00c8VE de six ans", "child"),
    ],
)  # fmt: skip
def test_kinds(text: str, kind: str) -> None:
    assert kind in set(kinds_in(text))


def test_numbers_are_found_in_the_digits_of_every_script() -> None:
    zeros = [chr(one) for one in range(sys.maxunicode + 1) if unicodedata.decimal(chr(one), 1) == 0]
    assert len(zeros) > 60
    for zero in zeros:
        script = {ord("0") + n: chr(ord(zero) + n) for n in range(10)}
        text = "NHS number 943 476 5919".translate(script)
        assert set(kinds_in(text)) == {"national_id"}, unicodedata.name(zero)


def test_precision_and_recall_on_the_synthetic_set() -> None:
    found = sensitive.measured(sensitive.rows(each=20))
    assert {*found} == {*KINDS, "all"}
    for kind, numbers in found.items():
        assert numbers["recall"] >= 0.98, (kind, numbers)
        assert numbers["precision"] >= 0.93, (kind, numbers)
    assert found["all"]["precision"] >= 0.98


def test_every_row_of_the_set_is_labelled_and_half_of_its_forms_are_none() -> None:
    rows = sensitive.rows(each=1)
    assert {row.kind for row in rows} == {*KINDS, ""}
    assert 0.3 < sum(not row.kind for row in rows) / len(rows) < 0.6


@pytest.mark.parametrize(
    ("text", "claimed"),
    [
        ("upgrade to version 8.8.4.4 first", False), ("firmware 9.1.2.3", False),
        ("the resolver is 8.8.4.4 here", True), ("ISBN 9783161484100", False),
        ("ISBN 978-3-16-148410-0", False), ("BG 175074752", True), ("IE6433435OA", True),
        ("FRK7399859412", True), ("CHE-107.787.577 MWST", True), ("EL094259217", False),
    ],
)  # fmt: skip
def test_forms_that_only_context_or_a_check_tells_apart(text: str, claimed: bool) -> None:
    assert bool(list(kinds_in(text))) == claimed


def findings(classifier: Patterns, view: PromptView) -> tuple[set[str], frozenset[str]]:
    result = Suite([classifier], lambda: 0.0).run(view)
    return {finding.value for finding in result.findings}, result.opened


def test_each_kind_is_claimed_once_for_the_attribute() -> None:
    view = PromptView.of_text("a@b.example c@d.example +49 30 1234567")
    result = Suite([Patterns("holds")], lambda: 0.0).run(view)
    assert [(f.attribute, f.value, f.source) for f in result.findings] == [
        ("holds", "email", "patterns"),
        ("holds", "phone", "patterns"),
    ]
    assert result.opened == frozenset()


def test_tool_arguments_are_read_too() -> None:
    call = {"function": {"name": "f", "arguments": '{"to": "a@b.example"}'}}
    body = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    assert findings(Patterns(), PromptView.of_chat(body)) == ({"email"}, frozenset())


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "a@b.example"}, {"type": "image_url"}],
        [{"type": "text", "text": "a@b.example"}, {"type": "never seen"}],
        "a@b.example" + " x" * LIMIT,
    ],
)
def test_what_was_not_read_opens_and_keeps_what_was_found(content: object) -> None:
    view = PromptView.of_chat({"messages": [{"role": "user", "content": content}]})
    assert findings(Patterns(), view) == ({"email"}, frozenset({"contains"}))


def test_only_the_asked_kinds() -> None:
    view = PromptView.of_text("a@b.example +49 30 1234567")
    assert findings(Patterns(kinds=frozenset({"phone"})), view) == ({"phone"}, frozenset())
    with pytest.raises(ValueError, match="unknown kind `emale`"):
        Patterns(kinds=frozenset({"emale"}))


@settings(max_examples=200)
@given(st.text(st.characters(), max_size=300) | st.text("0123456789 -+.@:AZaz<", max_size=300))
def test_total_and_only_known_kinds(text: str) -> None:
    assert set(kinds_in(text)) <= set(KINDS)


@pytest.mark.parametrize(
    "text",
    ["1" * 60_000, "1 " * 30_000, "a@" * 30_000, "a." * 30_000, "A" * 60_000, ":" * 60_000,
     "1." * 30_000, "+1-" * 20_000, "-----BEGIN " * 5_000, "eyJ" * 20_000, "DE11 " * 12_000],
)  # fmt: skip
def test_no_blow_up_on_repeated_text(text: str) -> None:
    started = perf_counter()
    list(kinds_in(text))
    assert perf_counter() - started < 2.0


@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "function", "function": {"name": "f", "description": "a@b.com"}}]},
        {"metadata": {"a@b.com": "x"}},
        {"user": "a@b.com"},
        {"documents": [{"text": "a@b.com"}]},
        {"prediction": {"type": "content", "content": "a@b.com"}},
        {"messages": [{"role": "user", "content": "x", "name": "a@b.com"}]},
        {"messages": [{"role": "assistant", "content": "x", "reasoning_content": "a@b.com"}]},
    ],
)
def test_what_stands_beside_the_dialogue_is_looked_at(more: dict[str, object]) -> None:
    """Else silence would close the attribute though a model reads it: law 4."""
    view = PromptView.of_chat({"messages": [{"role": "user", "content": "x"}], **more})
    assert findings(Patterns(), view) == ({"email"}, frozenset())


def test_a_number_beside_the_dialogue_is_looked_at_and_too_much_is_not_read() -> None:
    card = PromptView.of_chat({"messages": [], "documents": [{"n": 4111111111111111}]})
    assert findings(Patterns(), card) == ({"card"}, frozenset())
    much = PromptView.of_chat({"messages": [], "documents": ["x" * (1 << 20)]})
    assert findings(Patterns(), much) == (set(), frozenset({"contains"}))


UNSEEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u034f\u180e\ufe0f\U000e0061"
ON_A_LETTER = "\u0301\u0308\u0332\u0336\u20dd"
AROUND = "'`\u2019\u2018\u201c\u201d\u00ab\u00bb\u2014\u2026\u02bc\u00b4\uff07\u3002"
WORDS = st.sampled_from(sorted(word.decode() for word in patterns._HEALTH | patterns._CHILD))


def kind_of(word: str) -> str:
    return "health" if word.encode() in patterns._HEALTH else "child"


@given(word=WORDS, mark=st.sampled_from(UNSEEN + ON_A_LETTER), data=st.data())
def test_a_mark_inside_a_word_hides_it_not(word: str, mark: str, data: st.DataObject) -> None:
    least = 1 if mark in ON_A_LETTER else 0  # it stands on the letter before it
    at = data.draw(st.integers(least, len(word)))
    assume(mark in UNSEEN or word.isascii())  # else it is read without its own accents too
    assert kind_of(word) in kinds_in(f"The {word[:at]}{mark}{word[at:]} of him")


@given(word=WORDS, form=st.sampled_from(("NFC", "NFD", "NFKC", "NFKD")), capital=st.booleans())
def test_a_word_is_found_in_every_form_of_unicode(word: str, form: str, capital: bool) -> None:
    shown = word.capitalize() if capital else word
    text = f"Nota \u00e9 {shown} ok"
    assert kind_of(word) in kinds_in(unicodedata.normalize(form, text))  # type: ignore[arg-type]


@given(word=WORDS, left=st.sampled_from(AROUND), right=st.sampled_from(AROUND))
def test_signs_around_a_word_hide_it_not(word: str, left: str, right: str) -> None:
    assert kind_of(word) in kinds_in(f"so l{left}{word}{right}s it is")


def test_marks_hide_no_child_either() -> None:
    for text in (
        "My dau\u00adghter is ill",
        "mon petit fi\u200bls",
        "my\u200bson",
        "l\u2019\u00e9le\u0300ve",
        "she is 9\u2011year\u2011old",
        "a 9 ye\u00adar old",
    ):
        assert "child" in kinds_in(text), text


MARKED = st.sampled_from([*(UNSEEN + ON_A_LETTER + AROUND), "e", "Σ", "İ", "\u3099", "\u00b2", " "])


@settings(max_examples=300)
@given(text=st.text(st.characters() | MARKED, max_size=60))
def test_looking_only_at_what_is_beyond_ascii_reads_the_same(text: str) -> None:
    lowered = text.lower()
    whole = patterns._composed(lowered) if patterns._ODD.search(lowered) else lowered
    assert patterns._unmarked(text) == (lowered, whole)
