"""Judges: what they say, and that they say nothing when they can't know."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.difficulty.cascade import Answer, Wanted
from router.judges import Pair, answer_of, judge, normalised, wanted_of

SCHEMA = {"type": "object", "required": ["a"]}


async def nobody(body: Mapping[str, object]) -> Answer | None:
    raise AssertionError("this judge asks nobody")


def pair(small: str, large: str, wanted: Wanted | None = None) -> Pair:
    return Pair("which one?", Answer(small), Answer(large), wanted or Wanted())


async def test_exact_compares_words() -> None:
    assert await judge("exact", pair("B.", " b"), nobody, False) == (1.0, 1.0)
    assert await judge("exact", pair("A", "B"), nobody, False) == (0.0, 1.0)


async def test_json_asks_for_the_form() -> None:
    wanted = Wanted(True, SCHEMA)
    assert await judge("json", pair('{"a": 1}', "{}", wanted), nobody, False) == (1.0, 0.0)
    assert await judge("json", pair("x", "y"), nobody, False) is None


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    ("word", "qualities"),
    [("A", (1.0, 0.0)), ("B", (0.0, 1.0)), ("TIE", (1.0, 1.0)), ("perhaps", None)],
)
async def test_a_model_judges_without_knowing_who_is_who(
    swap: bool, word: str, qualities: tuple[float, float] | None
) -> None:
    seen: list[str] = []

    async def ask(body: Mapping[str, object]) -> Answer | None:
        seen.append(str(body))
        return Answer(word)

    found = await judge("model:big", pair("SMALL", "LARGE"), ask, swap)
    assert (seen[0].index("LARGE") < seen[0].index("SMALL")) == swap
    if qualities is not None and swap:
        qualities = qualities[::-1]
    assert found == qualities


async def test_a_judge_that_does_not_answer_says_nothing() -> None:
    async def ask(body: Mapping[str, object]) -> Answer | None:
        return None

    assert await judge("model:big", pair("a", "b"), ask, False) is None


def test_the_wanted_form() -> None:
    def asked(form: object) -> Wanted:
        return wanted_of({"response_format": form})

    assert asked({"type": "json_schema", "json_schema": {"schema": SCHEMA}}).schema == SCHEMA
    assert asked({"type": "json_object"}) == Wanted(True)
    assert asked({"type": "text"}) == asked(None) == Wanted()


def test_an_answer_is_read() -> None:
    choice = {
        "message": {"content": "hi", "tool_calls": [{}]},
        "finish_reason": "length",
        "logprobs": {"content": [{"logprob": -1.5}, {"logprob": "x"}, None]},
    }
    found = answer_of(orjson.dumps({"choices": [choice]}))
    assert found == Answer("hi", "length", 1, (-1.5,))


@given(st.binary(max_size=60))
def test_anything_else_is_no_answer(body: bytes) -> None:
    assert answer_of(body) is None


@pytest.mark.parametrize("body", [b"{}", b'{"choices":[]}', b'{"choices":[{"message":null}]}'])
def test_a_broken_answer_is_none(body: bytes) -> None:
    assert answer_of(body) is None


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalised(text)
    assert normalised(" ".join(once)) == once or "ß" in text or not text.isascii()
