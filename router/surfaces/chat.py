"""`/v1/chat/completions`: what the body must hold, and what the classifiers see of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from classifiers.view import PromptView, tokens_of_chat
from router.admission import optional_flag, require
from router.errors import RequestError
from router.surfaces.base import Asked

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
        if type(model) is str and 0 < len(model) <= MAX_MODEL and type(messages) is list:
            said = [type(one) is dict and type(one.get("role")) is str for one in messages]
            if said and all(said):
                return Asked(model, optional_flag(body, "stream"), expected_output(body))
        return self._read(body)

    def _read(self, body: Mapping[str, object]) -> Asked:
        model = require(body, "model", str, "a string")
        messages = require(body, "messages", list, "a list of messages")
        if not isinstance(messages, list) or not messages:
            raise RequestError("invalid_request", "`messages` is empty", param="messages")
        for index, message in enumerate(messages):
            if not isinstance(message, dict) or not isinstance(message.get("role"), str):
                param = f"messages.{index}"
                raise RequestError(
                    "invalid_request", f"`{param}` must be an object with a `role`", param=param
                )
        if not isinstance(model, str) or not 0 < len(model) <= MAX_MODEL:
            raise RequestError(
                "invalid_request", f"`model` must have 1 to {MAX_MODEL} characters", param="model"
            )
        return Asked(model, optional_flag(body, "stream"), expected_output(body))

    def tokens(self, body: Mapping[str, object]) -> int:
        """What `view` counts."""
        return tokens_of_chat(body)

    def view(self, body: Mapping[str, object]) -> PromptView:
        """What classifiers see."""
        return PromptView.of_chat(body)


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
            raise RequestError(
                "invalid_request", f"`{name}` must be a whole number above 0", param=name
            )
        return value
    return _EXPECTED
