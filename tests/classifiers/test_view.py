"""The view is total: odd bodies become unknown parts, long ones are cut visibly."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers import view as module
from classifiers.view import (
    MAX_CHARACTERS,
    MAX_PARTS,
    PromptView,
    tokens_of_chat,
    tokens_of_texts,
)

Make = Callable[[Mapping[str, object]], PromptView]
SURFACES: tuple[Make, ...] = (
    PromptView.of_chat, PromptView.of_messages, PromptView.of_responses,
    PromptView.of_completions, PromptView.of_embeddings,
)  # fmt: skip

KEYS = st.sampled_from(
    ["role", "content", "type", "text", "tool_calls", "function", "arguments", "input", "output",
     "messages", "system", "prompt", "tools", "response_format", "image_url", "suffix"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["user", "system", "text", "image_url", "tool_use", "tool_result", "thinking", "\ud800", "",
     "json_schema", "message", "function_call", "naïve 你好"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.parametrize("of", SURFACES)
@settings(max_examples=150)
@given(body=st.dictionaries(KEYS, JSON, max_size=6))
def test_no_body_raises_and_counts_agree(of: Make, body: dict[str, object]) -> None:
    view = of(body)
    assert view.characters == sum(len(part.text) for part in view.parts)
    assert view.tokens >= 0
    assert isinstance(view.question, str)


def test_a_plain_chat() -> None:
    view = PromptView.of_chat(
        {
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "What is 2+2?"},
            ]
        }
    )
    assert [(p.role, p.text) for p in view.parts] == [
        ("system", "Be short."),
        ("user", "What is 2+2?"),
    ]
    assert (view.messages, view.turns, view.complete) == (2, 1, True)
    assert view.question == "What is 2+2?"


def test_the_question_is_the_whole_last_message_of_the_user() -> None:
    parts = [{"type": "text", "text": text} for text in ("First.", "Second.")]
    before, after = {"role": "user", "content": "Before."}, {"role": "assistant", "content": "Ah."}
    asked = {"role": "user", "content": parts}
    assert PromptView.of_chat({"messages": [before, asked]}).question == "First.\nSecond."
    assert PromptView.of_chat({"messages": [before, after, asked]}).question == "First.\nSecond."
    assert PromptView.of_chat({"messages": [asked, after]}).question == "First.\nSecond."
    assert PromptView.of_chat({"messages": [asked, before]}).question == "Before."
    image = {"role": "user", "content": [{"type": "image_url"}]}
    assert PromptView.of_chat({"messages": [asked, image]}).question == "First.\nSecond."


def test_parts_tools_images_and_schema() -> None:
    call = {"type": "function", "function": {"name": "f", "arguments": '{"iban": "DE89"}'}}
    view = PromptView.of_chat(
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "look"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                        {"type": "input_audio", "input_audio": {}},
                    ],
                },
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "42"},
            ],
            "tools": [call, call],
            "response_format": {"type": "json_schema", "json_schema": {}},
        }
    )
    assert [(p.role, p.text) for p in view.parts] == [
        ("user", "look"),
        ("tool_call", '{"iban": "DE89"}'),
        ("tool", "42"),
    ]
    assert (view.tools, view.images, view.media, view.json_schema) == (2, 1, 1, True)
    assert view.unknown == 0
    assert not view.complete


@pytest.mark.parametrize(
    "content", [7, {"text": "x"}, [7], [{"text": "untyped"}], [{"type": "new_kind"}], [{"type": 3}]]
)
def test_unreadable_content_is_unknown(content: object) -> None:
    view = PromptView.of_chat({"messages": [{"role": "user", "content": content}]})
    assert view.unknown == 1
    assert not view.complete


@pytest.mark.parametrize("messages", ["hello", {"role": "user"}, 5, [5], ["text"]])
def test_messages_of_a_wrong_type_are_unknown(messages: object) -> None:
    assert PromptView.of_chat({"messages": messages}).unknown == 1


def test_a_long_text_keeps_head_and_tail_and_says_so() -> None:
    text = "head " + "x" * (MAX_CHARACTERS + 10) + " tail"
    view = PromptView.of_text(text)
    assert view.truncated
    assert view.characters == MAX_CHARACTERS
    assert view.question.startswith("head ")
    assert view.question.endswith(" tail")


def test_too_many_messages_keep_the_newest() -> None:
    messages = [{"role": "user", "content": str(i)} for i in range(MAX_PARTS + 5)]
    view = PromptView.of_chat({"messages": messages})
    assert view.truncated
    assert view.messages == MAX_PARTS + 5
    assert view.question == str(MAX_PARTS + 4)


def test_deep_nesting_is_cut_not_followed() -> None:
    nested: object = "core"
    for _ in range(500):
        nested = [{"type": "tool_result", "content": nested}]
    view = PromptView.of_messages({"messages": [{"role": "user", "content": nested}]})
    assert view.truncated
    assert view.parts == ()


def test_messages_surface_reads_system_tool_use_and_results() -> None:
    view = PromptView.of_messages(
        {
            "system": [{"type": "text", "text": "rules"}],
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "name": "f", "input": {"a": ["x", 5, None]}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "content": "done"}]},
            ],
        }
    )
    assert [(p.role, p.text) for p in view.parts] == [
        ("system", "rules"), ("tool_call", "x"), ("tool_call", "5"), ("tool", "done"),
    ]  # fmt: skip


def test_responses_surface_reads_items_and_flags_stored_state() -> None:
    view = PromptView.of_responses(
        {
            "instructions": "rules",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "function_call_output", "output": "42"},
                {"type": "function_call", "arguments": "{}"},
            ],
            "previous_response_id": "resp_1",
        }
    )
    assert [(p.role, p.text) for p in view.parts] == [
        ("system", "rules"), ("user", "hi"), ("tool", "42"), ("tool_call", "{}"),
    ]  # fmt: skip
    assert view.unknown == 1
    assert PromptView.of_responses({"input": "plain"}).question == "plain"


def test_token_ids_are_unknown() -> None:
    assert PromptView.of_completions({"prompt": [1, 2]}).unknown == 2
    assert PromptView.of_embeddings({"input": ["a", "b"]}).turns == 2


def test_token_estimate_knows_wide_scripts() -> None:
    assert PromptView.of_text("word " * 100).tokens == 125
    assert PromptView.of_text("请把这句话翻译成德语" * 10).tokens == 100


def test_the_bound_is_a_million_characters() -> None:
    assert module.MAX_CHARACTERS == 1 << 20


_MESSAGES = st.fixed_dictionaries({"role": WORDS, "content": WORDS | JSON}) | JSON


@settings(max_examples=300)
@given(messages=st.lists(_MESSAGES, max_size=5) | JSON)
def test_tokens_alone_are_those_of_the_view(messages: object) -> None:
    body = {"messages": messages}
    assert tokens_of_chat(body) == PromptView.of_chat(body).tokens
    if isinstance(messages, list):
        assert PromptView.of_chat(body, tokens_of_texts(messages)) == PromptView.of_chat(body)
        plain = all(isinstance(m, dict) and m.keys() == {"role", "content"} for m in messages)
        texts = plain and all(type(text) is str for m in messages for text in m.values())
        assert tokens_of_texts(messages) == (tokens_of_chat(body) if texts else None)


@pytest.mark.parametrize(
    ("count", "length", "fits"),
    [
        (MAX_PARTS, 1, True),
        (MAX_PARTS + 1, 1, False),
        (1, MAX_CHARACTERS, True),
        (1, MAX_CHARACTERS + 1, False),
    ],
)
def test_texts_are_counted_alone_within_the_bounds(count: int, length: int, fits: bool) -> None:
    messages: list[object] = [{"role": "user", "content": "a" * length}] * count
    expected = tokens_of_chat({"messages": messages}) if fits else None
    assert tokens_of_texts(messages) == expected


@pytest.mark.parametrize(
    "messages",
    [
        [{"content": "a"}] * (MAX_PARTS + 1),
        [{"content": "a"}] * MAX_PARTS,
        [{"content": "é" * (MAX_CHARACTERS // 2)}] * 2,
        [{"content": "a" * MAX_CHARACTERS}, {"content": "b"}],
        [{"content": "a", "tool_calls": [{"function": {"arguments": "b" * 40}}]}],
        [{"content": "a", "function_call": {"arguments": "b" * 40}}],
    ],
)
def test_tokens_alone_keep_the_bounds(messages: list[object]) -> None:
    body = {"messages": messages}
    assert tokens_of_chat(body) == PromptView.of_chat(body).tokens


ROLES = st.sampled_from(["user", "User", "system", "assistant", "tool", "", "İ"])


@given(st.lists(st.tuples(ROLES, st.text(max_size=40)), max_size=6))
@settings(max_examples=300)
def test_roles_and_texts_alone_are_read_as_any_dialogue(said: list[tuple[str, str]]) -> None:
    _read_alike([{"role": role, "content": text} for role, text in said])


@pytest.mark.parametrize("first", [MAX_CHARACTERS - 1, MAX_CHARACTERS, MAX_CHARACTERS + 1])
@pytest.mark.parametrize("last", ["", "b", "é" * 3])
def test_and_so_up_to_the_bound(first: int, last: str) -> None:
    texts = ["a" * first, last]
    _read_alike([{"role": "user", "content": text} for text in texts])


@pytest.mark.parametrize("count", [MAX_PARTS, MAX_PARTS + 1])
def test_and_so_up_to_as_many_messages_as_are_read(count: int) -> None:
    _read_alike([{"role": "user", "content": str(at)} for at in range(count)])


def _read_alike(messages: list[dict[str, str]]) -> None:
    """An id, which is not read, makes a message one of more than role and text."""
    other = [{**message, "id": "m"} for message in messages]
    assert PromptView.of_chat({"messages": messages}) == PromptView.of_chat({"messages": other})
