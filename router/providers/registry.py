"""Which file speaks to which kind of endpoint. Loaded by name: slow libraries only when used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from router.providers.base import Provider

PROVIDERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "vllm": ("router.providers.vllm", "Vllm"),
        "openai": ("router.providers.openai_compatible", "OpenAiCompatible"),
        "bedrock": ("router.providers.bedrock", "Bedrock"),
    }
)


def load(kind: str) -> Provider:
    """The provider of an endpoint kind; imports what it needs, so call it before ready.

    Raises:
        KeyError: no provider serves this kind.
    """
    module, name = PROVIDERS[kind]
    made: Provider = getattr(import_module(module), name)()
    return made
