"""Cascade: is the small model's answer good enough to keep, or does the request go on to large?

Only cheap signs that need no other model: nothing said, a refusal, a cut, JSON that does not fit
the asked schema, tokens the model itself was unsure of. Escalation stays inside the boundary:
the caller only asks for a larger tier of the same plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

LOGPROB: Final = -1.5
DEPTH: Final = 32
REFUSALS: Final = (
    "i can't", "i cannot", "i can not", "i'm unable", "i am unable", "i'm sorry, but i",
    "as an ai", "i don't have access", "ich kann nicht", "ich kann ihnen", "es tut mir leid",
    "je ne peux pas", "je suis désolé", "no puedo", "lo siento", "non posso", "mi dispiace",
)  # fmt: skip
_START: Final = 64
"""Characters that a refusal is looked for in."""
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,),
    "integer": (int,), "number": (int, float), "null": (type(None),),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """What the small model said. `logprobs` of its tokens if the upstream gave them."""

    text: str
    finish: str = "stop"
    tool_calls: int = 0
    logprobs: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: plain JSON, or JSON of a schema, or anything."""

    json_object: bool = False
    schema: Mapping[str, object] | None = None


@dataclass(slots=True)
class Ledger:
    """What the cascade cost: calls, escalations by reason, money and seconds spent twice."""

    calls: int = 0
    escalated: dict[str, int] = field(default_factory=dict)
    extra_cost: float = 0.0
    extra_seconds: float = 0.0

    def count(self, reason: str, cost: float, seconds: float) -> None:
        """Count one answer of small; with a reason, its cost and time were spent for nothing."""
        self.calls += 1
        if reason:
            self.escalated[reason] = self.escalated.get(reason, 0) + 1
            self.extra_cost += cost
            self.extra_seconds += seconds


def escalates(answer: Answer, wanted: Wanted, logprob: float = LOGPROB) -> str:
    """Why the answer is not kept, or an empty string. `logprob`: least accepted mean."""
    text = answer.text.strip()
    if answer.finish == "content_filter":
        return "filtered"
    if answer.finish == "length":
        return "cut"
    if not text:
        return "" if answer.tool_calls else "empty"
    # Many models write the typographic apostrophe.
    if text[:_START].lower().replace("\u2019", "'").startswith(REFUSALS):
        return "refusal"
    if (wanted.json_object or wanted.schema is not None) and not answer.tool_calls:
        wrong = _json(text, wanted.schema)
        if wrong:
            return wrong
    if answer.logprobs and not sum(answer.logprobs) / len(answer.logprobs) >= logprob:
        return "unsure"
    return ""


def fits(value: object, schema: object, depth: int = 0) -> bool:
    """True if `value` fits the parts of JSON Schema that structured output uses.

    Known: type, enum, const, required, properties, additionalProperties: false, items, anyOf.
    Others are not judged, and below DEPTH levels nothing is.
    """
    if not isinstance(schema, Mapping) or depth >= DEPTH:
        return schema is not False
    options = schema.get("anyOf")
    if isinstance(options, list) and not any(fits(value, one, depth + 1) for one in options):
        return False
    return (
        _typed(value, schema.get("type"))
        and ("enum" not in schema or value in _listed(schema["enum"]))
        and ("const" not in schema or value == schema["const"])
        and (not isinstance(value, dict) or _object(value, schema, depth))
        and (not isinstance(value, list) or _array(value, schema.get("items"), depth))
    )


def _json(text: str, schema: Mapping[str, object] | None) -> str:
    try:
        # Python takes NaN and Infinity for JSON; the client's parser does not.
        value: object = json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return "invalid_json"
    if schema is None:
        return "" if isinstance(value, dict) else "invalid_json"
    return "" if fits(value, schema) else "schema"


def _no_json(name: str) -> object:
    raise ValueError(name)


def _typed(value: object, wanted: object) -> bool:
    names = [wanted] if isinstance(wanted, str) else _listed(wanted)
    if not names:
        return True
    return any(
        isinstance(value, _TYPES.get(str(name), (object,)))
        and (not isinstance(value, bool) or name == "boolean" or str(name) not in _TYPES)
        for name in names
    )


def _object(value: Mapping[str, object], schema: Mapping[str, object], depth: int) -> bool:
    properties = schema.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    if any(name not in value for name in _listed(schema.get("required"))):
        return False
    if schema.get("additionalProperties") is False and not value.keys() <= known.keys():
        return False
    return all(fits(member, known.get(name), depth + 1) for name, member in value.items())


def _array(value: list[object], schema: object, depth: int) -> bool:
    return all(fits(member, schema, depth + 1) for member in value)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
