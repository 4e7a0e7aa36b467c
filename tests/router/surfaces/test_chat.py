"""What a chat body must hold for routing; the rest is the endpoint's to judge."""

from __future__ import annotations

import pytest

from router.errors import RequestError
from router.surfaces.base import Asked
from router.surfaces.chat import ChatCompletions

MESSAGES = [{"role": "user", "content": "hi"}]
SURFACE = ChatCompletions()


def test_a_plain_body() -> None:
    assert SURFACE.read({"model": "m", "messages": MESSAGES}) == Asked("m", False, 256)
    body = {"model": "m", "messages": MESSAGES, "stream": True, "max_completion_tokens": 7}
    assert SURFACE.read(body) == Asked("m", True, 7)
    assert SURFACE.view(body).question == "hi"


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": None}, "model"),
        ({"model": 3}, "model"),
        ({"model": ""}, "model"),
        ({"model": "x" * 300}, "model"),
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages.0"),
        ({"messages": [{"content": "hi"}]}, "messages.0"),
        ({"messages": [*MESSAGES, {"role": 3}]}, "messages.1"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
    ],
)
def test_what_is_refused_names_the_parameter(change: dict[str, object], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        SURFACE.read({"model": "m", "messages": MESSAGES, **change})
    assert (caught.value.status, caught.value.param) == (400, param)
