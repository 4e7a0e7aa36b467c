"""What a surface is: one API shape that clients speak."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from classifiers.view import PromptView
from router.frozen import frozen, maker


@frozen
class Asked:
    """What routing needs of a body: the model's public name, whether the answer is a
    stream, and how many output tokens to expect.

    `texts`: the prompt's tokens, where it was seen to be messages of a role and a text each.
    """

    model: str
    stream: bool
    output_tokens: int
    texts: int | None = field(default=None, compare=False)


make_asked = maker(Asked)


class Surface(Protocol):
    """One API shape: its name in policies and logs, its path, and how its bodies are read."""

    @property
    def name(self) -> str:
        """The name in policies, logs and metrics."""
        ...

    @property
    def path(self) -> str:
        """The route it answers."""
        ...

    def read(self, body: Mapping[str, object]) -> Asked:
        """Check what routing relies on. Raises RequestError."""
        ...

    def tokens(self, body: Mapping[str, object]) -> int:
        """The tokens that `view` counts, for when nobody needs the rest. Never raises."""
        ...

    def view(self, body: Mapping[str, object], texts: int | None = None) -> PromptView:
        """What classifiers see of the body; `texts` is what `read` said. Never raises."""
        ...
