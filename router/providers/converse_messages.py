"""The messages of a chat request, checked for what Converse can hold.

The translation would fetch image URLs, split or empty broken tool arguments, rename tools and
pass over parts that it doesn't know. Here each part is known or refused, by its place.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import orjson

from router.errors import RequestError

_IMAGE = re.compile(r"data:image/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")  # hardly a word of a prompt
_TOOL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
# Stands for a tool's blank result: Converse refuses those, and a call without its result.
_NOTHING = "(empty)"
# Members that carry nothing with these values; SDKs write them into assistant messages.
_EMPTY: tuple[object, ...] = (None, [], {})
_MEMBERS: Mapping[str, frozenset[str]] = {
    "system": frozenset({"role", "content"}),
    "developer": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "tool_calls", "thinking_blocks"}),
    "tool": frozenset({"role", "content", "tool_call_id"}),
}
# Said twice: reasoning, by either name, is repeated in `thinking_blocks`, which are signed, or is
# another model's; a tool's name in its call.
_REPEATED: Mapping[str, frozenset[str]] = {
    "assistant": frozenset({"reasoning_content", "reasoning"}),
    "tool": frozenset({"name"}),
}


def _refused(at: str, why: str) -> RequestError:
    return RequestError("parameter_not_allowed", f"`{at}` {why}", param=at)


def messages_of(messages: object, *, tools_given: bool) -> list[Mapping[str, object]]:
    """The messages to translate: new objects with known members only, without those that are blank.

    Raises:
        RequestError: names the place of what can't be held.
    """
    if not isinstance(messages, list) or not messages:
        raise _refused("messages", "must be a list that is not empty")
    made = [_message(f"messages.{i}", message) for i, message in enumerate(messages)]
    said = [message for message in made if _says(message)]
    if not any(message["role"] != "system" for message in said):
        raise _refused("messages", "hold no text; an empty message is not passed on here")
    if made[-1]["role"] == "user" and said[-1]["role"] == "assistant":
        # Without it the model would go on with its own last answer.
        raise _refused(f"messages.{len(made) - 1}.content", "is empty; an answer needs a question")
    _check_order(made, tools_given)
    _check_calls(made)
    return said


def _says(message: Mapping[str, object]) -> bool:
    """Whether it holds anything that Converse takes, which is no blank text."""
    content = message["content"]
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    said = any(part["type"] != "text" or str(part["text"] or "").strip() for part in parts)
    return said or message["role"] == "tool" or bool(message.get("tool_calls"))


def _message(at: str, message: object) -> Mapping[str, object]:
    role = message.get("role") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(role, str) or role not in _MEMBERS:
        raise _refused(f"{at}.role", f"must be one of {', '.join(_MEMBERS)}")
    made: dict[str, object] = {}
    for key, value in message.items():
        if key in _REPEATED.get(role, ()) or (value in _EMPTY and key != "content"):
            continue
        if key not in _MEMBERS[role]:
            place = key if _PLAIN.fullmatch(key) else "a field"
            raise _refused(f"{at}.{place}", "can't be expressed here; leave it out")
        made[key] = value
    made["role"] = "system" if role == "developer" else role
    made["content"] = _content(f"{at}.content", role, made.get("content"))
    if role == "assistant":
        _check_tool_calls(at, made)
        _keep_signed(at, made)
    if role == "tool":
        if not (isinstance(made.get("tool_call_id"), str) and made["tool_call_id"]):
            raise _refused(f"{at}.tool_call_id", "is missing")
        made["tool_call_id"] = _linking(str(made["tool_call_id"]))
    calls = made.get("tool_calls")
    if isinstance(calls, list):
        made["tool_calls"] = [{**call, "id": _linking(call["id"])} for call in calls]
    return made


def _linking(given: str) -> str:
    """The id of a tool call as Converse takes it. It links a result to its call, and says nothing
    more: other models' ids (`functions.search:0`) hold what is refused here."""
    if _ID.fullmatch(given):
        return given
    return f"call_{hashlib.sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _content(at: str, role: str, content: object) -> object:
    if content is None and role == "assistant":
        return None
    if not isinstance(content, str | list):
        raise _refused(at, "must be text or a list of parts")
    if isinstance(content, list):
        parts = [_content_part(f"{at}.{i}", role, part) for i, part in enumerate(content)]
        content = [part for part in parts if part["type"] != "text" or str(part["text"]).strip()]
    blank = not (content.strip() if isinstance(content, str) else content)
    return (_NOTHING if role == "tool" else "") if blank else content


def _keep_signed(at: str, message: dict[str, object]) -> None:
    """Of reasoning what is signed: the translation would say any other as the answer's text."""
    blocks = message.get("thinking_blocks")
    if blocks is None:
        return
    if not isinstance(blocks, list) or not all(isinstance(one, Mapping) for one in blocks):
        raise _refused(f"{at}.thinking_blocks", "must be a list of blocks")
    message["thinking_blocks"] = [one for one in blocks if one.get("signature") or one.get("data")]


def _content_part(at: str, role: str, part: object) -> Mapping[str, object]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(part, Mapping) and kind == "text" and isinstance(part.get("text"), str):
        _only(at, part, ("type", "text"))
        return {"type": "text", "text": part["text"]}
    if isinstance(part, Mapping) and kind == "image_url" and role == "user":
        _only(at, part, ("type", "image_url"))
        return {"type": "image_url", "image_url": {"url": _image(at, part.get("image_url"))}}
    raise _refused(at, "can't be expressed here; send text, or images in user messages")


def _only(at: str, part: Mapping[str, object], members: Sequence[str]) -> None:
    for key, value in part.items():
        if key not in members and value is not None:
            place = key if _PLAIN.fullmatch(key) else "a field"
            raise _refused(f"{at}.{place}", "can't be expressed here; leave it out")


def _image(at: str, image: object) -> str:
    url = image.get("url") if isinstance(image, Mapping) else None
    if not isinstance(image, Mapping) or not isinstance(url, str):
        raise _refused(f"{at}.image_url.url", "is missing")
    if image.get("detail") not in (None, "auto"):
        raise _refused(f"{at}.image_url.detail", "can't be expressed here; leave it out")
    _only(f"{at}.image_url", image, ("url", "detail"))
    if not _IMAGE.match(url) or url.count(",") != 1:
        raise _refused(
            f"{at}.image_url.url",
            "must be a base64 `data:` URL of a png, jpeg, gif or webp image; urls are not fetched",
        )
    # Many call JPEG so, which isn't its name.
    return url.replace("data:image/jpg;", "data:image/jpeg;", 1)


def _check_tool_calls(at: str, message: Mapping[str, object]) -> None:
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise _refused(f"{at}.tool_calls", "must be a list")
    for index, call in enumerate(calls):
        _check_tool_call(f"{at}.tool_calls.{index}", call)


def _check_tool_call(at: str, call: object) -> None:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        raise _refused(f"{at}.function", "is missing")
    if call.get("type", "function") != "function" or not isinstance(call.get("id"), str):
        raise _refused(at, "must have type `function` and an id")
    name = function.get("name")
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise _refused(f"{at}.function.name", "must be the name of a tool")
    if not _is_object(function.get("arguments")):
        raise _refused(f"{at}.function.arguments", "must be the text of one JSON object")


def _is_object(arguments: object) -> bool:
    if not isinstance(arguments, str):
        return False
    if not arguments.strip():
        return True
    try:
        return isinstance(orjson.loads(arguments), dict)
    except orjson.JSONDecodeError:
        return False


def _check_order(messages: Sequence[Mapping[str, object]], tools_given: bool) -> None:
    """System messages first; tool messages only with `tools`, as Converse demands."""
    begun = False
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "system" and begun:
            raise _refused(f"messages.{index}.role", "can't be `system` after other messages here")
        begun = begun or role != "system"
        if not tools_given and (role == "tool" or message.get("tool_calls")):
            raise _refused("tools", "are needed while messages hold tool calls or results")
    if not begun:
        raise _refused("messages", "must hold a message that is not a system message")


def _check_calls(messages: Sequence[Mapping[str, object]]) -> None:
    """One id, one call: of calls and of results that stand together, a second would be dropped."""
    seen: set[tuple[object, object]] = set()
    before: object = None
    for index, message in enumerate(messages):
        role = message["role"]
        if role != before:
            seen.clear()
        before = role
        calls = message.get("tool_calls")
        ids = [call["id"] for call in calls] if isinstance(calls, list) else []
        if role == "tool":
            ids = [message["tool_call_id"]]
        for found in ids:
            if (role, found) in seen:
                raise _refused(f"messages.{index}", "repeats the id of a tool call")
            seen.add((role, found))
