"""A filled form's line is the line that its body has without a form, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.audit.entry import Entry, Interned, Joined, Json, entry_line, stand_in
from router.audit.errors import EntryRefused
from router.audit.form import INTERNED, NUMBER, TEXT, Filled, Form, Forms, Quoted, quoted, word

NONCE = b"A" * 22
SHARED = Interned({"who": {"tenant": "t%s"}, "policy": "9f"})
ALLOWED = Interned({"process": ["DE"], "%": "100 %"})
FORM = Form(
    "decision",
    {
        "allowed": ALLOWED, "graded": {"by": "%d \\ \"", "score": NUMBER}, "plan": INTERNED,
        "tried": [Joined(ALLOWED, {"ms": NUMBER})],  # type: ignore[dict-item]
        "until": 7, "user": TEXT,
    },
    SHARED,
)  # fmt: skip
PLANS = [Interned(("a", "b")), Interned(["%", "é"]), ALLOWED]
SOME = (1, PLANS[0], 2, Quoted(b"[]"))
NUMBERS = st.integers(0, (1 << 53) - 1)


def interning() -> Callable[[Interned], int]:
    known: dict[bytes, int] = {}
    return lambda value: known.setdefault(value.digest, len(known) + 3)


def filled(entry: Entry, forms: Forms) -> bytes:
    assert isinstance(entry.body, Filled)
    return forms.line(entry, entry.body, NONCE)


@given(
    NUMBERS, NUMBERS, st.sampled_from(PLANS), st.text(max_size=5), st.floats(0, 4e9), st.booleans()
)
def test_the_line_is_the_plain_entrys(
    score: int, millis: int, plan: Interned, user: str, time: float, twice: bool
) -> None:
    body: dict[str, Json] = {
        "allowed": ALLOWED, "graded": {"by": "%d \\ \"", "score": score}, "plan": plan,
        "tried": [Joined(ALLOWED, {"ms": millis})], "until": 7, "user": user,
    }  # fmt: skip
    reference = interning()
    forms = Forms(reference)
    if twice:
        filled(Entry("decision", "r-0", 1.0, Filled(FORM, SOME)), forms)
    values = (score, plan, millis, quoted(user))
    line = filled(Entry("decision", "r-1", time, Filled(FORM, values)), forms)
    # The references are asked for in another order; they are the same from then on.
    plain = Entry("decision", "r-1", time, body, SHARED)
    assert line == entry_line(plain, NONCE, reference, stand_in(reference))


def test_a_new_segment_has_its_own_references() -> None:
    segments = [interning()]
    forms = Forms(lambda value: segments[-1](value))
    entry = Entry("decision", "r-1", 1.0, Filled(FORM, SOME))
    first, again = filled(entry, forms), filled(entry, forms)
    other = interning()
    other(Interned("something else, written before"))
    segments.append(other)
    forms.clear()
    assert first == again != filled(entry, forms)


@pytest.mark.parametrize(
    "values",
    [(), (1,), (*SOME, 1), (True, *SOME[1:]), (1.0, *SOME[1:]), (-1, *SOME[1:]),
     (1 << 53, *SOME[1:]), (*SOME[:3], b"[]"), (*SOME[:3], "x"), (1, 5, *SOME[2:]),
     (Quoted(b"1"), *SOME[1:])],
)  # fmt: skip
def test_other_values_are_refused(values: tuple[int | Quoted, ...]) -> None:
    with pytest.raises(EntryRefused):
        filled(Entry("decision", "r-1", 1.0, Filled(FORM, values)), Forms(interning()))


def test_an_entry_of_another_kind_is_refused() -> None:
    form = Form("outcome", {"ms": NUMBER})
    with pytest.raises(EntryRefused, match="another kind"):
        filled(Entry("decision", "r-1", 1.0, Filled(form, (1,))), Forms(interning()))


@pytest.mark.parametrize(("id_", "time"), [("a b", 1.0), ("r-1", -1.0), ("r-1", float("nan"))])
def test_an_id_and_a_time_are_looked_at_as_ever(id_: str, time: float) -> None:
    entry = Entry("decision", id_, time, Filled(FORM, SOME))
    with pytest.raises(EntryRefused):
        filled(entry, Forms(interning()))


@pytest.mark.parametrize(
    "body", [{"a": 1.5}, {"@": 1}, {"ü": 1}, {"policy": 1}, {"a": {"b": object()}}]
)
def test_a_form_is_checked_as_a_body_is(body: dict[str, object]) -> None:
    with pytest.raises(EntryRefused):
        Form("decision", body, SHARED)


def test_a_text_that_looks_like_a_hole_is_refused() -> None:
    form = Form("decision", {"a": "\0", "b": NUMBER})
    with pytest.raises(EntryRefused, match="null"):
        filled(Entry("decision", "r-1", 1.0, Filled(form, (1,))), Forms(interning()))


def test_fields_are_found_as_in_an_entry() -> None:
    entry = Entry("decision", "r-1", 1.0, Filled(FORM, SOME))
    assert entry.get("policy") == "9f"
    assert entry.get("allowed") == ALLOWED.value
    assert entry.get("snapshot") is None


def test_quoted_is_what_a_line_holds() -> None:
    assert quoted("é\n") == b'"\xc3\xa9\\n"'
    assert word("aB_-9") == quoted("aB_-9")
    with pytest.raises(EntryRefused):
        quoted(1.5)  # type: ignore[arg-type]
    for text in ("", 'a"', "a b", "é", "a\n"):
        with pytest.raises(EntryRefused):
            word(text)
