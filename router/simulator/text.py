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
    """An object that fits a tool's JSON schema (see `fitting`)."""
    found = fitting(rng, {**schema, "type": "object"})
    return found if isinstance(found, dict) else {}


def fitting(rng: random.Random, schema: Mapping[str, object]) -> object:
    """A value that fits a JSON schema of common types, `enum`, `const`, `anyOf` and local `$ref`s.

    What holds itself in a list ends with an empty one after four levels, any other with null.
    """
    return _value(rng, schema, schema, 8)


def _value(rng: random.Random, part: object, root: Mapping[str, object], depth: int) -> object:
    part = _resolved(part, root)
    if not isinstance(part, Mapping):
        return rng.choice(_WORDS)
    if depth == 0:
        return None
    options = part.get("enum") or ([part["const"]] if "const" in part else None)
    if isinstance(options, Sequence):
        return rng.choice(options)
    if isinstance(any_of := part.get("anyOf"), Sequence) and any_of:
        return _value(rng, any_of[-1], root, depth - 1)
    match part.get("type"):
        case "array":
            return [_value(rng, part.get("items"), root, depth - 1)] if depth > 4 else []
        case "object":
            within = part.get("properties")
            named = within if isinstance(within, Mapping) else {}
            return {str(name): _value(rng, each, root, depth - 1) for name, each in named.items()}
        case plain:
            return _plain(rng, plain)


def _plain(rng: random.Random, kind: object) -> object:
    match kind:
        case "integer":
            return rng.randrange(100)
        case "number":
            return rng.randrange(1000) / 10
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
        case _:
            return rng.choice(_WORDS)


def _resolved(part: object, root: Mapping[str, object]) -> object:
    """What a `$ref` into the schema itself leads to; itself where it is none, or leads nowhere."""
    reference = part.get("$ref") if isinstance(part, Mapping) else None
    if not isinstance(reference, str) or not reference.startswith("#"):
        return part
    found: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        found = found.get(step) if isinstance(found, Mapping) else None
    return part if found is None else found


def wanted_tools(message: str, names: Sequence[str]) -> list[str]:
    """The tools a message asks for in so many words: `call NAME`, `use NAME and NAME`."""
    if re.search(r"\b(call|use)\b", message, re.IGNORECASE) is None:
        return []
    return [name for name in names if re.search(rf"\b{re.escape(name)}\b", message)]
