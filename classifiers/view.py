"""What classifiers see of a request: a frozen, bounded view built once per call.

Building a view never raises: a part that cannot be read counts as `unknown`, and reading that
stops at a bound sets `truncated`, so that a classifier can say what it has not seen.
Texts are references into the parsed body, not copies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, cast

MAX_PARTS: Final = 2048
MAX_CHARACTERS: Final = 1 << 20
MAX_DEPTH: Final = 6
_SAMPLE: Final = 256

_TEXT_TYPES: Final = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
IMAGE_TYPES: Final = frozenset({"image_url", "input_image", "image"})
MEDIA_TYPES: Final = frozenset(
    {"input_audio", "audio", "file", "input_file", "document", "video_url", "container_upload"}
)
_CALL_TYPES: Final = frozenset({"tool_use", "function_call", "custom_tool_call"})
_RESULT_TYPES: Final = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_THOUGHT_TYPES: Final = frozenset({"thinking", "reasoning"})
# Members of a chat body and of its messages that are read as parts, or hold a closed word.
_CHAT: Final = frozenset({"model", "messages", "stream_options", "reasoning_effort", "modalities"})
_MESSAGE: Final = frozenset(
    {"role", "content", "tool_calls", "function_call", "tool_call_id", "type", "id"}
)
_NUMBERS: Final = range(1_000_000, 1 << 64)
_MADE: Final = tuple.__new__
"""What a NamedTuple calls to make itself, at half of its cost."""


class Part(NamedTuple):
    """One readable text of a request and the role that said it (lower case, `user` if unsaid)."""

    role: str
    text: str


class PromptView(NamedTuple):
    """All that classifiers see. Counts are of the whole request, `parts` of what was read.

    `characters`: code points in `parts`; `tokens`: a rough estimate; `turns`: user messages;
    `images`, `media`: parts that hold no text; `unknown`: parts that could not be read;
    `truncated`: a bound stopped the reading (see MAX_PARTS, MAX_CHARACTERS, MAX_DEPTH).
    `beside`: what a chat request says outside the dialogue (tools, metadata, any parameter a
    server may know), a line each: a model may read it, so who looks for data looks there too.
    `asked`: how many texts the last user message that has any is made of.
    """

    parts: tuple[Part, ...] = ()
    characters: int = 0
    tokens: int = 0
    messages: int = 0
    turns: int = 0
    tools: int = 0
    images: int = 0
    media: int = 0
    unknown: int = 0
    json_schema: bool = False
    truncated: bool = False
    beside: str = ""
    asked: int = 1

    @property
    def complete(self) -> bool:
        """True if every part was read as text: nothing unknown, cut, or in another medium."""
        return not (self.unknown or self.truncated or self.images or self.media)

    @property
    def question(self) -> str:
        """The last user message: its texts, a line each. Without one the last text of any role,
        or the empty string."""
        parts = self.parts
        if len(parts) == 1:
            return parts[0].text
        if self.asked > 1:
            return "\n".join([text for role, text in parts if role == "user"][-self.asked :])
        for part in reversed(parts):
            if part.role == "user":
                return part.text
        return parts[-1].text if parts else ""

    @staticmethod
    def of_text(text: str) -> PromptView:
        """A view of one user message."""
        walk = _Walk()
        walk.messages = walk.turns = 1
        walk.text("user", text)
        return walk.view(tools=0, json_schema=False)

    @staticmethod
    def of_chat(body: Mapping[str, object], texts: int | None = None) -> PromptView:
        """A view of a `/v1/chat/completions` body.

        Args:
            texts: what `tokens_of_texts` gives of its messages, if that is known.
        """
        walk = _Walk()
        messages = body.get("messages")
        if texts is None and type(messages) is list:
            texts = tokens_of_texts(messages)
        plain = texts is not None and walk.plain(cast("list[dict[str, str]]", messages), texts)
        if not plain:
            walk.dialogue(messages)
        walk.outside(body, plain)
        tools = _count(body.get("tools")) + _count(body.get("functions"))
        return walk.view(tools, _wants_json(body.get("response_format")))

    @staticmethod
    def of_messages(body: Mapping[str, object]) -> PromptView:
        """A view of a `/v1/messages` (Anthropic) body."""
        walk = _Walk()
        if body.get("system") is not None:
            walk.content("system", body.get("system"), 0)
        walk.dialogue(body.get("messages"))
        return walk.view(_count(body.get("tools")), _wants_json(body.get("output_format")))

    @staticmethod
    def of_responses(body: Mapping[str, object]) -> PromptView:
        """A view of a `/v1/responses` body. A stored conversation it names is not visible."""
        walk = _Walk()
        if body.get("instructions") is not None:
            walk.content("system", body.get("instructions"), 0)
        items = body.get("input")
        walk.dialogue([{"role": "user", "content": items}] if isinstance(items, str) else items)
        if body.get("previous_response_id") or body.get("conversation") or body.get("prompt"):
            walk.unknown += 1
        text = body.get("text")
        wanted = _wants_json(text.get("format")) if isinstance(text, dict) else False
        return walk.view(_count(body.get("tools")), wanted)

    @staticmethod
    def of_completions(body: Mapping[str, object]) -> PromptView:
        """A view of a `/v1/completions` body; token ids are unreadable and count as unknown."""
        return _of_strings(body.get("prompt"), body.get("suffix"))

    @staticmethod
    def of_embeddings(body: Mapping[str, object]) -> PromptView:
        """A view of a `/v1/embeddings` body; token ids are unreadable and count as unknown."""
        return _of_strings(body.get("input"), None)


def tokens_of_texts(messages: list[object]) -> int | None:
    """The tokens of a dialogue in which every message is a role and a text, and nothing else, as
    `tokens_of_chat` counts them; `None` for any other, and for one too long to be read whole."""
    tokens = characters = 0
    for message in messages:
        if type(message) is not dict or len(message) != 2:
            return None
        try:
            role, text = message["role"], message["content"]
        except KeyError:
            return None
        if type(text) is not str or type(role) is not str:
            return None
        length = len(text)
        characters += length
        tokens += (length + 3) // 4 if text.isascii() else _tokens(text)
    return tokens if characters <= MAX_CHARACTERS and len(messages) <= MAX_PARTS else None


def tokens_of_chat(body: Mapping[str, object]) -> int:
    """The tokens of `PromptView.of_chat`, counted without it where every message is one text."""
    messages = body.get("messages")
    tokens = characters = 0
    if type(messages) is list and len(messages) <= MAX_PARTS:
        for message in messages:
            text = message.get("content") if type(message) is dict else None
            if type(text) is not str or "tool_calls" in message or "function_call" in message:
                break
            length = len(text)
            characters += length
            tokens += (length + 3) // 4 if text.isascii() else _tokens(text)
        else:
            if characters <= MAX_CHARACTERS:
                return tokens
    return PromptView.of_chat(body).tokens


class _Walk:
    """Collects parts under the bounds; every method is total over parsed JSON."""

    __slots__ = (
        "asked", "beside", "characters", "images", "media", "messages", "parts", "tokens",
        "truncated", "turns", "unknown",
    )  # fmt: skip

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.beside: list[str] = []
        self.characters = self.tokens = self.messages = self.turns = 0
        self.images = self.media = self.unknown = 0
        self.asked = 1
        self.truncated = False

    def text(self, role: str, text: str) -> None:
        room = MAX_CHARACTERS - self.characters
        if room <= 0 or len(self.parts) >= MAX_PARTS:
            self.truncated = self.truncated or bool(text)
            return
        length = len(text)
        if length > room:
            # The end of a text often holds the question, so a cut keeps both ends.
            text = text[: room // 2] + text[length - (room - room // 2) :]
            length = room
            self.truncated = True
        self.parts.append(Part(role, text))
        self.characters += length
        self.tokens += (length + 3) // 4 if text.isascii() else _tokens(text)

    def outside(self, body: Mapping[str, object], plain: bool) -> None:
        """What a chat body holds beside its dialogue; a `plain` one holds nothing within it."""
        found = [value for name, value in body.items() if name not in _CHAT]
        messages = None if plain else body.get("messages")
        for message in messages[-MAX_PARTS:] if isinstance(messages, list) else ():
            if isinstance(message, dict) and not message.keys() <= _MESSAGE:
                found += [value for name, value in message.items() if name not in _MESSAGE]
        self.loose(found)

    def loose(self, left: list[object]) -> None:
        room = MAX_CHARACTERS
        while left:
            one = left.pop()
            if isinstance(one, dict):
                left += one.values()
                left += one
            elif isinstance(one, list):
                left += one
            elif isinstance(one, str) or (isinstance(one, int) and one in _NUMBERS):
                text = str(one)
                room -= len(text) + 1
                if room < 0:
                    self.truncated = True
                    return
                self.beside.append(text)

    def dialogue(self, messages: object) -> None:
        if messages is None:
            return
        if not isinstance(messages, list):
            self.unknown += 1
            return
        self.messages = len(messages)
        if len(messages) > MAX_PARTS:
            # The newest messages carry the question.
            messages = messages[-MAX_PARTS:]
            self.truncated = True
        for message in messages:
            self.message(message)

    def plain(self, messages: list[dict[str, str]], tokens: int) -> bool:
        """Take a dialogue of roles and texts alone, as `dialogue` would, in one go; whether that
        could be done. Else nothing is taken."""
        parts = [_MADE(Part, (one["role"].lower(), one["content"])) for one in messages]
        characters = sum([len(text) for _, text in parts])
        if characters >= MAX_CHARACTERS:  # then an empty text may be beyond the bound, and no part
            return False
        self.parts, self.characters, self.tokens = parts, characters, tokens
        self.messages, self.turns = len(parts), [role for role, _ in parts].count("user")
        return True

    def message(self, message: object) -> None:
        if not isinstance(message, dict):
            self.unknown += 1
            return
        said = message.get("role")
        role = said.lower() if isinstance(said, str) else "user"
        asks = role == "user" and message.get("type", "message") == "message"
        content = message.get("content")
        before = len(self.parts)
        if isinstance(content, str):
            self.text(role, content)
        elif content is None and "content" not in message and "type" in message:
            self.typed(role, message, 0)
            self.turns += asks
            return
        elif content is not None:
            self.content(role, content, 0)
        texts = [of for of, _ in self.parts[before:]].count("user") if role == "user" else 0
        self.asked = texts or self.asked
        self.turns += asks or texts > 0
        if "tool_calls" in message or "function_call" in message:
            self.calls(message)

    def calls(self, message: Mapping[str, object]) -> None:
        calls = message.get("tool_calls")
        for call in (
            calls if isinstance(calls, list) else [{"function": message.get("function_call")}]
        ):
            function = call.get("function") if isinstance(call, dict) else None
            arguments = function.get("arguments") if isinstance(function, dict) else None
            if isinstance(arguments, str):
                self.text("tool_call", arguments)
            elif function is not None or calls is not None:
                self.unknown += 1

    def content(self, role: str, content: object, depth: int) -> None:
        if isinstance(content, str):
            self.text(role, content)
        elif depth >= MAX_DEPTH:
            self.truncated = True
        elif isinstance(content, list):
            for item in content[:MAX_PARTS]:
                self.item(role, item, depth + 1)
            self.truncated = self.truncated or len(content) > MAX_PARTS
        else:
            self.unknown += 1

    def item(self, role: str, item: object, depth: int) -> None:
        if isinstance(item, str):
            self.text(role, item)
        elif isinstance(item, dict):
            self.typed(role, item, depth)
        else:
            self.unknown += 1

    def typed(self, role: str, item: Mapping[str, object], depth: int) -> None:
        kind = item.get("type")
        if not isinstance(kind, str):
            self.unknown += 1
        elif kind in IMAGE_TYPES:
            self.images += 1
        elif kind in MEDIA_TYPES:
            self.media += 1
        elif kind in _RESULT_TYPES:
            self.content("tool", item.get("content", item.get("output")), depth)
        elif kind in _CALL_TYPES:
            self.argument(item.get("arguments", item.get("input")), depth)
        elif kind in _THOUGHT_TYPES:
            self.content("assistant", item.get("thinking", item.get("summary")), depth)
        elif kind in _TEXT_TYPES:
            self.content(role, item.get("text", item.get("refusal")), MAX_DEPTH - 1)
        else:
            self.unknown += 1

    def argument(self, value: object, depth: int) -> None:
        """Strings inside the arguments of a tool call, which are JSON of any shape."""
        if isinstance(value, str):
            self.text("tool_call", value)
        elif depth >= MAX_DEPTH:
            self.truncated = True
        elif isinstance(value, dict | list):
            members = list(value.values() if isinstance(value, dict) else value)
            for member in members[:MAX_PARTS]:
                self.argument(member, depth + 1)
            self.truncated = self.truncated or len(members) > MAX_PARTS
        elif isinstance(value, int | float):
            self.text("tool_call", str(value))

    def view(self, tools: int, json_schema: bool) -> PromptView:
        return PromptView(
            tuple(self.parts), self.characters, self.tokens, self.messages, self.turns, tools,
            self.images, self.media, self.unknown, json_schema, self.truncated,
            "\n".join(self.beside), self.asked,
        )  # fmt: skip


def _of_strings(value: object, suffix: object) -> PromptView:
    walk = _Walk()
    if value is not None:
        walk.content("user", value, MAX_DEPTH - 1)
    if suffix is not None:
        walk.content("user", suffix, MAX_DEPTH - 1)
    walk.messages = walk.turns = len(walk.parts)
    return walk.view(tools=0, json_schema=False)


def _tokens(text: str) -> int:
    """About a quarter token per ASCII character, about one per CJK character."""
    length = len(text)
    if text.isascii():
        return (length + 3) // 4
    sample = text[:_SAMPLE]
    wide = len(sample.encode("utf-8", "surrogatepass")) - len(sample)
    return (length + 3) // 4 + (length * wide * 3) // (len(sample) * 8)


def _count(value: object) -> int:
    return len(value) if isinstance(value, list) else 0


def _wants_json(response_format: object) -> bool:
    if not isinstance(response_format, dict):
        return False
    return response_format.get("type") in ("json_schema", "json_object")
