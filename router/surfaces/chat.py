"""`/v1/chat/completions`: what the body must hold, and what the classifiers see of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from classifiers.view import PromptView, tokens_of_chat, tokens_of_texts
from router.admission import optional_flag, require
from router.errors import RequestError
from router.surfaces.base import Asked, make_asked

NAME: Final = "chat.completions"
PATH: Final = "/v1/chat/completions"
MAX_MODEL: Final = 256
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
_EXPECTED: Final = 256


class ChatCompletions:
    """The surface as OpenAI documents it."""

    name = NAME
    path = PATH

    def read(self, body: Mapping[str, object]) -> Asked:
        """Check what routing relies on; every other field is the endpoint's to judge.

        Raises:
            RequestError: a missing or mistyped field.
        """
        model, messages = body.get("model"), body.get("messages")
        if type(model) is not str or not 0 < len(model) <= MAX_MODEL:
            require(body, "model", str, "a string")
            raise _refused("model", f"must have 1 to {MAX_MODEL} characters")
        if type(messages) is not list or not messages:
            require(body, "messages", list, "a list of messages")
            raise _refused("messages", "is empty")
        texts = tokens_of_texts(messages)
        if texts is None:
            said = [type(one) is dict and type(one.get("role")) is str for one in messages]
            if not all(said):
                raise _refused(f"messages.{said.index(False)}", "must be an object with a `role`")
        return make_asked(model, optional_flag(body, "stream"), expected_output(body), texts)

    def tokens(self, body: Mapping[str, object]) -> int:
        """What `view` counts."""
        return tokens_of_chat(body)

    def view(self, body: Mapping[str, object], texts: int | None = None) -> PromptView:
        """What classifiers see."""
        return PromptView.of_chat(body, texts)


def expected_output(body: Mapping[str, object]) -> int:
    """Output tokens to reserve: the client's limit, else a usual answer.

    Raises:
        RequestError: a limit that is no positive whole number.
    """
    for name in _LIMITS:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _refused(name, "must be a whole number above 0")
        return value
    return _EXPECTED


def _refused(name: str, what: str) -> RequestError:
    return RequestError("invalid_request", f"`{name}` {what}", param=name)
