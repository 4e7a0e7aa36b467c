"""Deterministic words, tokens and tool arguments: what a simulated model says.

The text depends only on (seed, model, prompt), so equal calls get equal answers and golden tests
are possible. It repeats nothing of the prompt: a canary that turns up elsewhere was leaked by
someone else.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import zlib
from collections.abc import Mapping, Sequence

VOCABULARY = 32_000
_PIECE = re.compile(r"\s?\w{1,6}|\s|[^\w\s]")
_WORDS = (
    "amber", "basin", "birch", "bridge", "canal", "cedar", "chalk", "cliff", "clover", "coast",
    "coral", "creek", "dawn", "delta", "dune", "ember", "fern", "field", "fjord", "forest",
    "garden", "glade", "gravel", "grove", "harbour", "hazel", "heath", "hill", "island", "ivy",
    "juniper", "lagoon", "lake", "lantern", "lichen", "maple", "marsh", "meadow", "mist",
    "moor", "moss", "naïve", "oak", "orchard", "pebble", "pine", "plain", "pond", "quarry",
    "reed", "reef", "ridge", "river", "sage", "shore", "slate", "spruce", "straße", "stream",
    "thistle", "tide", "valley", "Zürich", "willow", "東京", "🌲",
)  # fmt: skip


def tokenize(text: str) -> tuple[int, ...]:
    """Token ids of a text (stable across runs and machines; not any real tokenizer's)."""
    return tuple(zlib.crc32(piece.encode()) % VOCABULARY for piece in _PIECE.findall(text))


def generator(seed: int, *parts: str) -> random.Random:
    """A random source that depends on the seed and on every part."""
    digest = hashlib.blake2b(json.dumps([seed, *parts]).encode(), digest_size=16).digest()
    return random.Random(digest)


def words(rng: random.Random, count: int) -> list[str]:
    """`count` pieces of text, one per token: the first bare, the others with a leading space."""
    return [("" if number == 0 else " ") + rng.choice(_WORDS) for number in range(max(0, count))]


def arguments(rng: random.Random, schema: Mapping[str, object]) -> dict[str, object]:
    """An object that fits a tool's JSON schema (first-level properties, common types)."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {str(name): _value(rng, part) for name, part in properties.items()}


def _value(rng: random.Random, part: object) -> object:
    if not isinstance(part, Mapping):
        return rng.choice(_WORDS)
    choices = part.get("enum")
    if isinstance(choices, Sequence) and choices:
        return rng.choice(choices)
    match part.get("type"):
        case "integer":
            return rng.randrange(100)
        case "number":
            return rng.randrange(1000) / 10
        case "boolean":
            return rng.random() < 0.5
        case "array":
            return [_value(rng, part.get("items"))]
        case "object":
            return arguments(rng, part)
        case _:
            return rng.choice(_WORDS)


def wanted_tools(message: str, names: Sequence[str]) -> list[str]:
    """The tools a message asks for in so many words: `call NAME`, `use NAME and NAME`."""
    if re.search(r"\b(call|use)\b", message, re.IGNORECASE) is None:
        return []
    return [name for name in names if re.search(rf"\b{re.escape(name)}\b", message)]
