"""Step 8, fulfil: what each kind of obligation changes, and where it is enforced.

An obligation either removes endpoints (`policies.eligibility` does that, in the filter),
or changes the body that leaves, or constrains the record. A kind that stands in a policy
and has no enforcer here stops the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from classifiers.plain import Layered
from classifiers.redaction import redact
from policies.model import Policy
from policies.obligations import AnyObligation, RecordRetention, Redact
from router.config import ConfigError
from router.providers.bodies import anew

Body = Mapping[str, object]
Change = Callable[[AnyObligation, Body], Body]

FILTERED: Final = frozenset(
    {"zero_retention", "no_batch", "tier", "max_price", "in_region", "no_global"}
)
RECORDED: Final = frozenset({"record_retention"})
WHOLE: Final = frozenset({"model"})
"""Parameters that are never words. Any other may be: servers know more of them than we do."""
SCHEMAS: Final = frozenset({"tools", "functions", "response_format", "input", "arguments"})
"""Members below which a member's name is somebody's own, not a part's."""
MEDIA: Final = frozenset(
    {"image_url", "input_image", "image", "input_audio", "audio", "file", "input_file", "document",
     "video_url", "video", "audio_url", "image_embeds", "audio_embeds", "image_pil"}
)  # fmt: skip
"""Types of parts that are no text."""
UNTYPED: Final = frozenset(
    {"image_url", "input_audio", "audio_url", "video_url", "image_embeds", "audio_embeds",
     "image_pil"}
)  # fmt: skip
"""Members by which servers know such a part that does without its type."""
_ID: Final = re.compile(r"(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_.:-]{1,128}")
MAX_DEPTH: Final = 64


class CannotRedact(ValueError):
    """A request that can't be redacted as its policy demands, and so is not sent."""


def _no_store(obligation: AnyObligation, body: Body) -> Body:
    """Asking for storage is turned into asking for none."""
    return {**body, "store": False} if body.get("store") else body


def _redact(obligation: AnyObligation, body: Body) -> Body:
    """Identifiers are cut out of every text of the request, whatever it is called.

    Raises:
        CannotRedact: the request holds something that is no text.
    """
    kinds = obligation.identifiers if isinstance(obligation, Redact) else frozenset()
    return {
        name: value if name in WHOLE else _cut(value, kinds, 0, name not in SCHEMAS - {"input"})
        for name, value in body.items()
    }


def _cut(value: object, kinds: frozenset[str], depth: int, parts: bool) -> object:
    """`parts`: whether an object may be a part of a message."""
    if isinstance(value, str):
        return _redacted(value, kinds)
    if depth >= MAX_DEPTH:
        raise CannotRedact("it is nested too deeply")
    if isinstance(value, list):
        return [_cut(item, kinds, depth + 1, parts) for item in value]
    if isinstance(value, dict):
        untyped = parts and value.get("type") is None and not UNTYPED.isdisjoint(value)
        if untyped or value.get("type") in MEDIA:
            raise CannotRedact("it holds an image, a sound or a file")
        return {
            _redacted(key, kinds): item
            if _is_id(key, item)
            else _cut(item, kinds, depth + 1, parts and key not in SCHEMAS)
            for key, item in value.items()
        }
    return value


def _redacted(text: str, kinds: frozenset[str]) -> str:
    try:
        return redact(text, kinds)
    except Layered as error:
        raise CannotRedact(str(error)) from None


def _is_id(key: str, value: object) -> bool:
    """Whether a member binds a tool's answer to its call: cut, it would bind nothing."""
    return key in {"id", "tool_call_id"} and isinstance(value, str) and bool(_ID.fullmatch(value))


CHANGES: Final[Mapping[str, Change]] = MappingProxyType({"no_store": _no_store, "redact": _redact})


def enforced() -> frozenset[str]:
    """The kinds that have an enforcer."""
    return FILTERED | RECORDED | frozenset(CHANGES)


def check(policy: Policy, kept: tuple[float, float | None] | None) -> None:
    """Refuse a policy whose obligations can't be kept here.

    Args:
        kept: how long the log is kept, seconds at least and at most; `None` for a log that
            nothing ever deletes.

    Raises:
        ConfigError: an obligation without an enforcer, or a record kept too short or long.
    """
    for rule in policy.rules:
        for obligation in rule.obligations:
            where = f"{rule.mark}: " if rule.mark else ""
            if obligation.kind not in enforced():
                raise ConfigError(
                    f"{where}rule `{rule.name}`: obligation `{obligation.kind}` has no enforcer "
                    "in this router; remove it or upgrade"
                )
            if isinstance(obligation, RecordRetention):
                _check_record(f"{where}rule `{rule.name}`", obligation, kept)


def _check_record(
    rule: str, wanted: RecordRetention, kept: tuple[float, float | None] | None
) -> None:
    least, most = kept if kept is not None else (float("inf"), None)
    if least < wanted.least:
        raise ConfigError(f"{rule}: records must be kept longer than `log.seal.retain` says")
    if wanted.most is not None and (most is None or most > wanted.most):
        raise ConfigError(
            f"{rule}: records must be deleted in time; set `log.seal.retain` to at most that"
        )


def apply(obligations: Iterable[AnyObligation], body: Body) -> Body:
    """The body with every change that the obligations ask for; the same object if none."""
    for obligation in obligations:
        change = CHANGES.get(obligation.kind)
        if change is not None:
            body = change(obligation, body)
    return body


def encode(body: Body) -> bytes:
    """The bytes of a changed body. Raises RequestError as `anew` does."""
    return anew(body)
