"""Messages that Converse can hold, and the place of each that it can't."""

import re
from typing import Any

import pytest

from router.errors import RequestError
from router.providers.converse_messages import messages_of

PNG = "data:image/png;base64,iVBORw0KGgo="


def call(**more: Any) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}", **more.pop("function", {})}
    return {"id": "c1", "type": "function", "function": function, **more}


def user(content: Any = "hi") -> dict[str, Any]:
    return {"role": "user", "content": content}


def image(url: str, **more: Any) -> dict[str, Any]:
    return user([{"type": "image_url", "image_url": {"url": url, **more}}])


def assistant(*calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_what_another_model_thought_stands_in_nobodys_way(name: str) -> None:
    """As vLLM's answers hold it, before one of Bedrock's endpoints goes on with the dialogue."""
    messages = [user(), {"role": "assistant", "content": "x", name: "hm"}, user()]
    assert messages_of(messages, tools_given=False)[1] == {"role": "assistant", "content": "x"}


def test_jpeg_by_its_other_name() -> None:
    """See NousResearch/hermes-agent#55429."""
    (made,) = messages_of([image("data:image/jpg;base64,iVBORw0KGgo=")], tools_given=False)
    assert made == image("data:image/jpeg;base64,iVBORw0KGgo=")


def test_an_ordinary_conversation() -> None:
    messages = [
        {"role": "developer", "content": "be brief"},
        image(PNG, detail="auto"),
        assistant(call(), refusal=None, annotations=[], audio=None, reasoning_content="hm"),
        {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "42"},
        user([{"type": "text", "text": "and?"}]),
    ]
    made = messages_of(messages, tools_given=True)
    assert [m["role"] for m in made] == ["system", "user", "assistant", "tool", "user"]
    assert set(made[2]) == {"role", "content", "tool_calls"}
    assert made[3] == {"role": "tool", "tool_call_id": "c1", "content": "42"}
    assert messages[0]["role"] == "developer"


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([], "messages"),
        ("hi", "messages"),
        (["hi"], "messages.0.role"),
        ([{"role": "function", "content": "x"}], "messages.0.role"),
        ([{"role": "system", "content": "x"}], "messages"),
        ([user(), {"role": "system", "content": "x"}], "messages.1.role"),
        ([{"role": "user", "content": None}], "messages.0.content"),
        ([{"role": "user", "content": 3}], "messages.0.content"),
        ([{**user(), "name": "bob"}], "messages.0.name"),
        ([{**user(), "cache_control": {"type": "ephemeral"}}], "messages.0.cache_control"),
        ([user([{"type": "guarded_text", "text": "x"}])], "messages.0.content.0"),
        ([user([{"type": "input_audio", "input_audio": {}}])], "messages.0.content.0"),
        ([user([{"type": "file", "file": {"file_id": "f"}}])], "messages.0.content.0"),
        ([user([{"type": "text", "text": "x", "cache_control": {}}])],
         "messages.0.content.0.cache_control"),
        ([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}],
         "messages.0.content.0"),
        ([image("https://example.com/a.png")], "messages.0.content.0.image_url.url"),
        ([image("https://example.com/base64,a.png")], "messages.0.content.0.image_url.url"),
        ([image("s3://bucket/a.png")], "messages.0.content.0.image_url.url"),
        ([image("data:image/svg+xml;base64,AAAA")], "messages.0.content.0.image_url.url"),
        ([image("data:application/pdf;base64,AAAA")], "messages.0.content.0.image_url.url"),
        ([image(PNG, format="application/pdf")], "messages.0.content.0.image_url.format"),
        ([image(PNG, detail="high")], "messages.0.content.0.image_url.detail"),
        ([user(), {"role": "tool", "content": "x"}], "messages.1.tool_call_id"),
        ([user(), assistant(call(function={"arguments": '{"a":'}))],
         "messages.1.tool_calls.0.function.arguments"),
        ([user(), assistant(call(function={"arguments": "{}{}"}))],
         "messages.1.tool_calls.0.function.arguments"),
        ([user(), assistant(call(function={"arguments": "[]"}))],
         "messages.1.tool_calls.0.function.arguments"),
        ([user(), assistant(call(function={"name": "a.b"}))],
         "messages.1.tool_calls.0.function.name"),
        ([user(), assistant(call(type="custom"))], "messages.1.tool_calls.0"),
        ([user(), assistant(thinking_blocks=["hm"])], "messages.1.thinking_blocks"),
        ([user(), {"role": "assistant", "content": "x"}, user(" ")], "messages.2.content"),
        ([user(), assistant(call(), call())], "messages.1"),
        ([user(), assistant(call()), {"role": "tool", "tool_call_id": "c1", "content": "1"},
          {"role": "tool", "tool_call_id": "c1", "content": "2"}], "messages.3"),
    ],
)  # fmt: skip
def test_what_can_not_be_held_is_named(messages: Any, place: str) -> None:
    with pytest.raises(RequestError) as caught:
        messages_of(messages, tools_given=True)
    assert caught.value.param == place
    assert caught.value.code == "parameter_not_allowed"


def test_an_id_may_come_again_in_a_later_turn() -> None:
    turn = [assistant(call()), {"role": "tool", "tool_call_id": "c1", "content": "1"}]
    assert len(messages_of([user(), *turn, user(), *turn], tools_given=True)) == 6


def test_tool_calls_need_tools() -> None:
    with pytest.raises(RequestError) as caught:
        messages_of([user(), assistant(call())], tools_given=False)
    assert caught.value.param == "tools"


@pytest.mark.parametrize("where", ["key", "part", "url", "arguments"])
def test_refusals_repeat_nothing(where: str, canary: str) -> None:
    made = {
        "key": {**user(), f"{canary} x": 1},
        "part": user([{"type": canary, "text": canary}]),
        "url": image(f"https://{canary}"),
        "arguments": assistant(call(function={"arguments": canary})),
    }
    with pytest.raises(RequestError) as caught:
        messages_of([user(), made[where]], tools_given=True)
    assert canary not in f"{caught.value!r} {caught.value} {caught.value.param}"


@pytest.mark.parametrize("said", ["functions.search:0", "call é", "c" * 65, "\ud800", "a.b"])
def test_an_id_of_another_model_still_links(said: str) -> None:
    """A conversation that began elsewhere goes on here: its ids are links, and nothing more."""
    messages = [
        user(),
        assistant(call(id=said), call(id="c2")),
        {"role": "tool", "tool_call_id": "c2", "content": "2"},
        {"role": "tool", "tool_call_id": said, "content": "1"},
    ]
    made: list[Any] = list(messages_of(messages, tools_given=True))
    first, second = (one["id"] for one in made[1]["tool_calls"])
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", first)
    assert (second, made[2]["tool_call_id"], made[3]["tool_call_id"]) == ("c2", "c2", first)
    assert messages[1]["tool_calls"][0]["id"] == said  # the client's own body stays as it is


BLANK: list[Any] = ["", " \n", [], [{"type": "text", "text": ""}]]


@pytest.mark.parametrize("content", BLANK)
def test_nobody_is_asked_nothing(content: Any) -> None:
    """Converse takes no empty texts: what was asked would be no message at all."""
    with pytest.raises(RequestError, match="hold no text") as caught:
        messages_of([{"role": "system", "content": "be brief"}, user(content)], tools_given=False)
    assert caught.value.param == "messages"
    for more in (user("x"), image(PNG), {"role": "assistant", "content": "x"}):
        alone = messages_of([more], tools_given=False)
        assert messages_of([user(content), more], tools_given=False) == alone


@pytest.mark.parametrize("content", BLANK)
def test_a_blank_text_stands_in_nobodys_way(content: Any) -> None:
    """Converse refuses it, though it says nothing: a tool that returned nothing ended the dialogue.

    See NousResearch/hermes-agent#55092, langchain-ai/langchain-aws#403.
    """
    turn = [user(), assistant(call()), {"role": "tool", "tool_call_id": "c1", "content": content}]
    made: list[Any] = list(messages_of(turn, tools_given=True))
    assert made[2]["content"] == "(empty)"
    for role in ("system", "user", "assistant"):
        blank = {"role": role, "content": content}
        assert messages_of([blank, user()], tools_given=False) == [user()]
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": " "}]
    (kept,) = messages_of([user(parts)], tools_given=False)
    assert kept["content"] == parts[:1]


def test_of_what_was_thought_the_signed_goes_back() -> None:
    """A model that thinks wants it beside its calls (spring-projects/spring-ai#6413), also without
    a text (strands-agents/harness-sdk#2704). What nobody signed would be said as text."""
    signed = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "redacted_thinking", "data": "QUJD"},
    ]
    blocks = [{"type": "thinking", "thinking": "hm"}, *signed]
    made = messages_of([user(), assistant(call(), thinking_blocks=blocks)], tools_given=True)
    assert made[1]["thinking_blocks"] == signed
