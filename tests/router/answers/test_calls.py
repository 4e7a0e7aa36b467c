"""Pieces of tool calls get the numbers by which clients put them together."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.answers.calls import StreamedCalls, mend_whole

Piece = dict[str, Any]


def piece(arguments: str = "", **more: Any) -> Piece:
    """A piece of a call; `name` goes into its function."""
    function = {"arguments": arguments}
    if "name" in more:
        function["name"] = more.pop("name")
    return {**more, "function": function}


def numbered(*events: list[Piece], choice: int = 0) -> tuple[list[list[int]], bool]:
    """The numbers of every event's pieces, and whether any was changed."""
    calls, changed, numbers = StreamedCalls(), False, []
    for pieces in events:
        document: Any = {"choices": [{"index": choice, "delta": {"tool_calls": pieces}}]}
        changed = calls.mend(document) or changed
        numbers.append([one["index"] for one in pieces])
    return numbers, changed


@pytest.mark.parametrize(
    ("events", "numbers"),
    [
        # No number, ids that alternate.
        ([[piece(id="a", name="f")], [piece(id="b", name="g")], [piece("x", id="a")],
          [piece("y", id="b")]], [[0], [1], [0], [1]]),
        # No number, and an id only where a call begins.
        ([[piece(id="a", name="f")], [piece("x")], [piece(id="b", name="f")], [piece("y")]],
         [[0], [0], [1], [1]]),
        # Nothing but a name where a call begins.
        ([[piece("{}", name="f")], [piece("{}", name="f")]], [[0], [1]]),
        # No number, several in one event.
        ([[piece(id="a", name="f"), piece(id="b", name="f")], [piece("x"), piece("y")]],
         [[0, 1], [0, 1]]),
        # No number that is one.
        ([[piece(id="a", name="f", index=None)], [piece("x", index=None)]], [[0], [0]]),
        ([[piece(id="a", name="f", index=-1)], [piece("x", index=-1)]], [[0], [0]]),
        ([[piece(id="a", name="f", index=False)]], [[0]]),
        ([[piece(id="a", name="f", index="0")]], [[0]]),
        # Counted from one, or by blocks of which others are text.
        ([[piece(id="a", name="f", index=1)], [piece("x", index=1)],
          [piece(id="b", name="f", index=2)], [piece("y", index=2)]], [[0], [0], [1], [1]]),
        ([[piece(id="a", name="f", index=1)], [piece(id="b", name="f", index=3)]], [[0], [1]]),
        # All with one number.
        ([[piece(id="a", name="f", index=0)], [piece("x", index=0)],
          [piece(id="b", name="g", index=0)], [piece("y", index=0)], [piece("z", id="a", index=0)]],
         [[0], [0], [1], [1], [0]]),
        # A number from the second on.
        ([[piece(id="a", name="f")], [piece(id="b", name="g", index=1)]], [[0], [1]]),
    ],
)  # fmt: skip
def test_calls_count_from_zero_whatever_they_came_with(
    events: list[list[Piece]], numbers: list[list[int]]
) -> None:
    made, changed = numbered(*events)
    assert made == numbers
    assert changed


def test_each_piece_with_an_id_of_its_own_is_no_call_of_its_own() -> None:
    """As vLLM wrote them for a while."""
    pieces = [[piece(id="a", name="f", index=0)], [piece("x", id="b", index=0)]]
    assert numbered(*pieces) == ([[0], [0]], False)


def test_each_piece_with_an_id_and_a_name_is_no_call_of_its_own() -> None:
    """As vLLM wrote them where one function was to be called: vllm-project/vllm#14951."""
    texts = ['{"a":', ' {"b": "x"}', ', "c": 1}', ""]
    pieces = [[piece(text, id=f"c{n}", name="f", index=0)] for n, text in enumerate(texts)]
    calls, numbers = StreamedCalls(), []
    for event in pieces:
        last = None if event[0] is not pieces[-1][0] else "stop"
        document: Any = {"choices": [{"delta": {"tool_calls": event}, "finish_reason": last}]}
        assert not calls.mend(document)
        numbers.append(event[0]["index"])
    assert numbers == [0] * len(texts)


@pytest.mark.parametrize("begun", ["", "{", '{"x":2}'])
def test_two_calls_of_one_function_with_one_number_are_two(begun: str) -> None:
    """See InternLM/lmdeploy#3412."""
    events = [[piece("", id="a", name="f", index=0)], [piece('{"x":1} ', index=0)],
              [piece(begun, id="b", name="f", index=0)]]  # fmt: skip
    assert numbered(*events)[0] == [[0], [0], [1]]


def test_choices_count_by_themselves() -> None:
    calls = StreamedCalls()
    found: list[int] = []
    for choice in (0, 1, 0, 1):
        call = piece(name="f", id=f"{choice}{len(found)}")
        calls.mend({"choices": [{"index": choice, "delta": {"tool_calls": [call]}}]})
        found.append(call["index"])
    assert found == [0, 0, 1, 1]


ODD: list[Any] = [None, [], {}, [None], [{"delta": None}], [{"delta": {"tool_calls": {}}}],
                  [{"delta": {"tool_calls": [None]}}], [{"delta": {"tool_calls": []}}],
                  [{"index": 0, "delta": {"content": "x"}}], "x"]  # fmt: skip


@pytest.mark.parametrize("choices", ODD)
def test_what_holds_no_call_stays(choices: Any) -> None:
    document = {"choices": choices}
    before = copy.deepcopy(document)
    assert not StreamedCalls().mend(document)
    assert not mend_whole(document)
    assert document == before


@given(st.lists(st.lists(st.text(max_size=4), max_size=4), max_size=5), st.randoms())
def test_what_is_right_stays_as_it_came(calls: list[list[str]], order: Any) -> None:
    """Whatever the order of the pieces, after each call has begun."""
    begun = [[piece(id=f"c{n}", name="f", index=n)] for n in range(len(calls))]
    rest = [[piece(part, index=n)] for n, parts in enumerate(calls) for part in parts]
    order.shuffle(rest)
    events = begun + rest
    before = copy.deepcopy(events)
    _, changed = numbered(*events)
    assert not changed
    assert events == before


def test_arguments_are_texts() -> None:
    """llama.cpp wrote them as objects for a while: ggml-org/llama.cpp#20202."""
    call: Any = {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"a": "é"}}}
    whole: Any = {"choices": [{"message": {"tool_calls": [copy.deepcopy(call)]}}]}
    assert mend_whole(whole)
    (told,) = whole["choices"][0]["message"]["tool_calls"]
    assert told["function"]["arguments"] == '{"a":"é"}'
    assert not mend_whole(whole)
    document: Any = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
    assert StreamedCalls().mend(document)
    assert call["function"]["arguments"] == '{"a":"é"}'
