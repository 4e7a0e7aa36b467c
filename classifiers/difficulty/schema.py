"""Whether a value fits a JSON Schema: the parts of it that structured output uses.

Never raises, whatever the schema: it is a client's. What is not known is not judged, and the work
is bounded, since references may lead in circles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPTH: Final = 32
STEPS: Final = 20_000
"""Values looked at; after so many, and below DEPTH levels, nothing more is judged."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int, float), "number": (int, float), "null": (type(None),),
}  # fmt: skip


def fits(value: object, schema: object) -> bool:
    """True if `value` fits, as far as it is judged.

    Known: type, enum, const, required, properties, additionalProperties: false, items, anyOf,
    oneOf, allOf, and $ref to a place in the same schema.
    """
    return _Check(schema).fits(value, schema, 0)


class _Check:
    """One judgement; `root` is what references start from."""

    __slots__ = ("_left", "_root")

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = STEPS

    def fits(self, value: object, schema: object, depth: int) -> bool:
        self._left -= 1
        if not isinstance(schema, Mapping) or depth >= DEPTH or self._left < 0:
            return schema is not False
        return (
            _typed(value, schema.get("type"))
            and ("enum" not in schema or _among(value, _listed(schema["enum"])))
            and ("const" not in schema or _among(value, [schema["const"]]))
            and self._combined(value, schema, depth)
            and (not isinstance(value, dict) or self._object(value, schema, depth))
            and (not isinstance(value, list) or self._array(value, schema, depth))
        )

    def _combined(self, value: object, schema: Mapping[str, object], depth: int) -> bool:
        named = schema.get("$ref")
        if isinstance(named, str) and not self.fits(value, self._at(named), depth + 1):
            return False
        if not all(self.fits(value, one, depth + 1) for one in _listed(schema.get("allOf"))):
            return False
        # Of `oneOf` exactly one is to fit; what is judged in part may fit another in part.
        either = (schema.get("anyOf"), schema.get("oneOf"))
        return all(
            any(self.fits(value, one, depth + 1) for one in options)
            for options in either
            if isinstance(options, list)
        )

    def _at(self, named: str) -> object:
        """Where `#/$defs/name` leads; a schema that takes everything when it leads nowhere."""
        if named != "#" and not named.startswith("#/"):
            return {}
        found = self._root
        for part in named.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            found = found.get(key, {}) if isinstance(found, Mapping) else {}
        return found

    def _object(
        self, value: Mapping[str, object], schema: Mapping[str, object], depth: int
    ) -> bool:
        properties = schema.get("properties")
        known = properties if isinstance(properties, Mapping) else {}
        if any(name not in value for name in _listed(schema.get("required"))):
            return False
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        if closed and not value.keys() <= known.keys():
            return False
        return all(self.fits(one, known.get(name), depth + 1) for name, one in value.items())

    def _array(self, value: list[object], schema: Mapping[str, object], depth: int) -> bool:
        first = len(_listed(schema.get("prefixItems")))
        return all(self.fits(one, schema.get("items"), depth + 1) for one in value[first:])


def _typed(value: object, wanted: object) -> bool:
    names = [wanted] if isinstance(wanted, str) else _listed(wanted)
    return not names or any(_is(value, str(name)) for name in names)


def _is(value: object, name: str) -> bool:
    if name not in _TYPES:
        return True
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _among(value: object, options: list[object]) -> bool:
    """JSON's equality: `true` is no 1."""
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in options)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
