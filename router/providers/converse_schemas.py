"""The schemas of tools, of which the translation keeps less than was given.

Of a schema's root it keeps four keywords and drops the others in silence, and it leaves every null
out. References it replaces by what they refer to, as the model behind may not follow them.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

Object = Mapping[str, object]

# Keywords that say what an object must be; others are remarks, or parts to refer to.
_CONSTRAINTS = frozenset(
    {
        "type", "properties", "required", "additionalProperties", "anyOf", "oneOf", "allOf", "not",
        "if", "then", "else", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "dependentRequired", "dependentSchemas", "dependencies", "enum", "const",
        "unevaluatedProperties",
    }
)  # fmt: skip
_KEPT = frozenset({"type", "properties", "required", "additionalProperties"})


def restore(tools: object, body: Object) -> None:
    """Put the properties of each tool of a translated body back as they were given, but for
    references: `enum: [x, null]` means another thing without the null."""
    for tool, block in zip(
        _listed(tools), _listed(inside(body, "toolConfig").get("tools")), strict=False
    ):
        given = inside(tool, "function", "parameters").get("properties")
        schema = inside(block, "toolSpec", "inputSchema").get("json")
        if isinstance(schema, dict) and isinstance(given, dict) and not _refers(given):
            schema["properties"] = given


def unkeepable(given: Object) -> tuple[str, str] | None:
    """The first thing of a tool's schema that no translation keeps: its place in it, and why.

    Known before one is made, so that an endpoint that takes it is asked instead.
    """
    if given.get("type", "object") not in (None, "object"):
        return ".type", "must be `object` here"
    for name in sorted((_CONSTRAINTS - _KEPT) & given.keys()):
        if _says(given[name]):
            return f".{name}", "can't be kept there by this model's provider"
    return None


def unkept(given: Object, sent: Object) -> tuple[str, str] | None:
    """The same of what was not kept by the translation that was made."""
    if sent.get("type") != "object":
        return ".type", "must be `object` here"
    refers = _refers(given)
    if refers and _refers(sent):
        return "", "refer to what holds itself, which can't be kept here; write it out"
    for name in sorted(_CONSTRAINTS & given.keys()):
        replaced = refers and name in ("properties", "additionalProperties")
        if _says(given[name]) and not replaced and sent.get(name) != given[name]:
            return f".{name}", "can't be kept there by this model's provider"
    return None


def _says(value: object) -> bool:
    """Nothing is enforced of a schema that isn't strict: that no more may come is a remark, and
    that more may come goes without saying."""
    return value is not None and not isinstance(value, bool) and value not in ([], {})


def _refers(schema: Object) -> bool:
    return b'"$ref"' in orjson.dumps(schema)


def _listed(value: object) -> list[Object]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def inside(body: Object, *names: str) -> Object:
    """The object under these names, one in another; an empty one where none is."""
    for name in names:
        found = body.get(name)
        body = found if isinstance(found, Mapping) else {}
    return body
