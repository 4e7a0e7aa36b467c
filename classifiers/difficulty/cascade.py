"""Cascade: is the small model's answer good enough to keep, or does the request go on to large?

Only cheap signs that need no other model: nothing said, a refusal, a cut, JSON that does not fit
the asked schema, tokens the model itself was unsure of. Escalation stays inside the boundary:
the caller only asks for a larger tier of the same plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from classifiers.difficulty.schema import fits

LOGPROB: Final = -1.5
LONGEST: Final = 1 << 20
"""Characters of an answer that are read as JSON: longer ones would hold up all other requests."""
REFUSALS: Final = (
    "i can't", "i cannot", "i can not", "i'm unable", "i am unable", "i'm sorry, but", "i won't ",
    "i am sorry, but", "sorry, but i", "i'm not able", "i am not able", "as an ai",
    "i don't have access", "i'm sorry, i can", "i am sorry, i can", "i'm sorry, i am",
    "i'm sorry, i'm", "sorry, i can", "i apologize, but", "i apologise, but", "i must decline",
    "unfortunately, i can", "unfortunately, i am", "unfortunately, i'm", "i'm afraid i can",
    "ich kann nicht", "ich kann ihnen nicht", "ich kann ihnen leider", "ich kann ihnen dabei nicht",
    "ich kann dir nicht", "ich kann dir leider", "ich kann dabei nicht", "ich kann leider",
    "leider kann ich", "es tut mir leid", "tut mir leid", "entschuldigung, aber",
    "je ne peux pas", "je ne suis pas en mesure", "je suis désolé", "désolé", "no puedo",
    "lo siento", "non posso", "mi dispiace", "não posso", "desculpe", "lamento", "sinto muito",
    "het spijt me", "ik kan niet", "ik kan je niet", "ik kan u niet", "helaas kan ik",
    "przepraszam", "przykro mi", "nie mogę", "omlouvám se", "nemohu", "je mi líto", "ľutujem",
    "prepáčte", "nemôžem", "sajnálom", "nem tudok", "îmi pare rău", "nu pot ", "съжалявам",
    "не мога ", "žao mi je", "ne mogu ", "oprostite", "žal ne morem", "atsiprašau", "negaliu",
    "atvainojiet", "es nevaru", "vabandust", "ma ei saa", "jag kan inte", "tyvärr kan jag",
    "jag är ledsen", "jeg kan ikke", "beklager", "desværre kan jeg", "en voi ", "olen pahoillani",
    "λυπάμαι", "δεν μπορώ", "ik ben bang dat", "jiddispjaċini", "tá brón orm",
    "извините", "простите", "я не могу", "к сожалению, я не", "вибачте", "я не можу",
    "üzgünüm", "maalesef", "抱歉", "很抱歉", "对不起", "對不起", "我无法", "我無法", "我不能",
    "申し訳", "すみません", "죄송", "آسف", "عذر", "لا أستطيع", "मुझे खेद", "क्षमा करें",
)  # fmt: skip
_START: Final = 64
"""Characters that a refusal is looked for in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the small model said. `logprobs` of its tokens if the upstream gave them.

    `refused`: the upstream itself says so. `broken`: a tool is called with what is no JSON.
    """

    text: str
    finish: str = "stop"
    tool_calls: int = 0
    logprobs: Sequence[float] = ()
    refused: bool = False
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: plain JSON, or JSON of a schema, or anything."""

    json_object: bool = False
    schema: Mapping[str, object] | None = None


def escalates(answer: Answer, wanted: Wanted, logprob: float = LOGPROB, asked: bool = False) -> str:
    """Why the answer is not kept, or an empty string.

    Args:
        logprob: least accepted mean.
        asked: a cut is what was asked for, as `max_tokens`: a larger model is cut there too.
    """
    text, cut = answer.text.strip(), answer.finish == "length"
    if answer.finish == "content_filter":
        return "filtered"
    if cut and not asked:
        return "cut"
    # Many models write the typographic apostrophe.
    start = text[:_START].lower().replace("\u2019", "'")
    if answer.refused or start.startswith(REFUSALS):
        return "refusal"
    if not text and not answer.broken:
        return "" if answer.tool_calls else "empty"
    # Of what was cut as asked nothing is whole.
    wrong = "" if cut else _form(answer, text, wanted)
    if wrong:
        return wrong
    if answer.logprobs and not sum(answer.logprobs) / len(answer.logprobs) >= logprob:
        return "unsure"
    return ""


def _form(answer: Answer, text: str, wanted: Wanted) -> str:
    if answer.tool_calls:
        return "invalid_json" if answer.broken else ""
    if (not wanted.json_object and wanted.schema is None) or len(text) > LONGEST:
        return ""
    return _json(text, wanted.schema)


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
