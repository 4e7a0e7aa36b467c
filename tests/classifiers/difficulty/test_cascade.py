"""Which answers of the small model are not kept."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.difficulty.cascade import Answer, Wanted, escalates
from classifiers.difficulty.schema import fits

SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "age": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("Paris."), ""), (Answer("  "), "empty"), (Answer("", tool_calls=1), ""),
        (Answer("I'm sorry, but I can't help"), "refusal"),
        (Answer("Ich kann nicht ..."), "refusal"),
        (Answer("I can\u2019t help with that."), "refusal"),
        (Answer("I\u2019m sorry, I can\u2019t assist with that."), "refusal"),
        (Answer("Unfortunately, I am not able to do that."), "refusal"),
        (Answer("I'm sorry to hear that. Try a warm tea."), ""),
        (Answer("He said: I cannot."), ""), (Answer("Par", finish="length"), "cut"),
        (Answer("", finish="content_filter"), "filtered"),
        (Answer("x", logprobs=(-3.0, -2.0)), "unsure"), (Answer("x", logprobs=(-0.1,)), ""),
        (Answer("x", logprobs=(float("nan"),)), "unsure"),
    ],
)  # fmt: skip
def test_plain_answers(answer: Answer, reason: str) -> None:
    assert escalates(answer, Wanted()) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "x", "age": 3, "tags": ["a"]}', ""), ('{"name": "x", "age": null}', ""),
        ('{"name": "x"', "invalid_json"), ('{"name": "x"}', "schema"), ("[]", "schema"),
        ('{"name": 5, "age": 1}', "schema"), ('{"name": "x", "age": true}', "schema"),
        ('{"name": "x", "age": 1, "more": 1}', "schema"),
        ('{"name": "x", "age": 1, "tags": ["c"]}', "schema"), ("[" * 100_000, "invalid_json"),
        ('{"name": "x", "age": NaN}', "invalid_json"), ("-Infinity", "invalid_json"),
    ],
)  # fmt: skip
def test_json_of_a_schema(text: str, reason: str) -> None:
    assert escalates(Answer(text), Wanted(schema=SCHEMA)) == reason


@pytest.mark.parametrize(
    "text",
    [
        "Het spijt me, maar", "Przepraszam, ale nie mogę", "Jag kan inte hjälpa", "Λυπάμαι, αλλά",
        "抱歉，我无法", "申し訳ありません", "죄송합니다", "Извините, но я не могу", "عذراً",
        "Désolé, je ne peux pas", "Es tut mir leid", "Olen pahoillani", "Não posso ajudar",
    ],
)  # fmt: skip
def test_refusals_in_other_languages(text: str) -> None:
    assert escalates(Answer(text), Wanted()) == "refusal"


@pytest.mark.parametrize(
    "text", ["Ich kann Ihnen drei Wege zeigen", "En voici trois", "I canoe often", "Nu potrivit"]
)
def test_what_only_begins_like_one_is_none(text: str) -> None:
    assert escalates(Answer(text), Wanted()) == ""


def test_a_cut_that_was_asked_for_is_kept_and_its_form_not_judged() -> None:
    """A larger model is cut at the same place: its answer cost more and was no better."""
    wanted = Wanted(schema=SCHEMA)
    assert escalates(Answer('{"na', finish="length"), wanted, asked=True) == ""
    assert escalates(Answer('{"na', finish="length"), wanted) == "cut"
    assert escalates(Answer("I cannot", finish="length"), wanted, asked=True) == "refusal"
    assert escalates(Answer("", finish="length"), wanted, asked=True) == "empty"


def test_tools_called_with_no_json_and_told_refusals_are_not_kept() -> None:
    assert escalates(Answer("", "tool_calls", 1, broken=True), Wanted()) == "invalid_json"
    assert escalates(Answer("", refused=True), Wanted()) == "refusal"


def test_a_huge_answer_is_not_read_as_json() -> None:
    assert escalates(Answer("[" + "1," * (1 << 20)), Wanted(schema=SCHEMA)) == ""


def test_plain_json_must_be_an_object() -> None:
    assert escalates(Answer("{}"), Wanted(json_object=True)) == ""
    assert escalates(Answer("[]"), Wanted(json_object=True)) == "invalid_json"
    assert escalates(Answer("", tool_calls=1), Wanted(json_object=True)) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(value=JSON, schema=JSON)
def test_any_schema_is_judged_without_raising(value: object, schema: object) -> None:
    assert fits(value, schema) in (True, False)
    assert fits(value, {})
    assert escalates(Answer(json.dumps(value)), Wanted(schema={})) in ("", "refusal")
