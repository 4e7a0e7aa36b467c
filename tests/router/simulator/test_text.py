from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from router.simulator import text


def test_tokens_are_stable_and_local() -> None:
    assert text.tokenize("") == ()
    one, two = text.tokenize("hello world"), text.tokenize("hello there world")
    assert one == text.tokenize("hello world")
    assert one[0] == two[0]
    assert len(text.tokenize("naïve 東京 🌲, ok.")) > 5
    assert all(0 <= token < text.VOCABULARY for token in two)


def test_words_follow_the_seed_and_every_part() -> None:
    said = [
        "".join(text.words(text.generator(*args), 12))
        for args in ((1, "a", "b"), (1, "a", "b"), (2, "a", "b"), (1, "ab", ""), (1, "a", "c"))
    ]
    assert said[0] == said[1]
    assert len(set(said)) == 4
    assert len(said[0].split(" ")) == 12
    assert text.words(text.generator(1), 0) == []


def test_arguments_fit_the_schema() -> None:
    schema = {
        "properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
            "b": {"type": "boolean"}, "e": {"enum": ["x", "y"]}, "a": {"type": "array"},
            "o": {"type": "object", "properties": {"k": {"type": "integer"}}}, "free": True,
        }
    }  # fmt: skip
    found = text.arguments(text.generator(3), schema)
    assert found["e"] in {"x", "y"}
    types = {name: type(value) for name, value in found.items()}
    assert types == {
        "s": str, "i": int, "n": float, "b": bool, "e": str, "a": list, "o": dict, "free": str,
    }  # fmt: skip
    assert text.arguments(text.generator(3), {}) == {}


class Leaf(BaseModel):
    size: Literal["s", "m"]
    fixed: Literal["one"]


class Tree(BaseModel):
    leaf: Leaf
    leaves: list[Leaf]
    note: str | None
    below: list[Tree]
    number: float
    here: Leaf | int


def test_what_is_nested_in_a_schema_fits_too() -> None:
    """As pydantic writes models: parts in `$defs`, `anyOf`, trees that hold themselves."""
    schema = Tree.model_json_schema()
    for seed in range(20):
        Tree.model_validate(text.fitting(text.generator(seed), schema), strict=True)
    shut = {"$ref": "#/$defs/no"}
    assert isinstance(text.fitting(text.generator(1), shut), str)


def test_tools_are_wanted_only_when_asked_for_by_name() -> None:
    names = ["get_weather", "get_time"]
    assert text.wanted_tools("please call get_weather", names) == ["get_weather"]
    assert text.wanted_tools("Use get_time and get_weather!", names) == names
    assert text.wanted_tools("get_weather is a tool", names) == []
    assert text.wanted_tools("call get_weathers", names) == []
