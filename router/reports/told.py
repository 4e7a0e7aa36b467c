"""Entries that are no request's, in words; and texts of any origin made fit to read."""

from __future__ import annotations

import unicodedata
from typing import Final

from router.audit.bodies import Body, text_in, texts_in
from router.audit.reading import Shown
from router.reports.figures import Event

LONGEST: Final = 200
_SPACE: Final = frozenset("\t\n\r ")


def readable(text: str) -> str:
    """The text in one line, without what moves other text about or can't be seen.

    Control and format characters (the direction overrides among them) become U+FFFD, so that no
    name can make a line read as another; long texts are cut, and say so.
    """
    clean = "".join(" " if c in _SPACE else "\ufffd" if _unseen(c) else c for c in text)
    return clean if len(clean) <= LONGEST else f"{clean[:LONGEST]}… ({len(clean)} characters)"


def _unseen(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or character in "\u2028\u2029"


def event(shown: Shown, tenant: str | None) -> Event:
    """What an entry says, to all or to one tenant: other tenants' names and reasons stay out."""
    body = shown.body
    record = f"{shown.place.log}/{shown.place.index}"
    what, who, detail = _WORDS.get(shown.kind, _plainly)(body, tenant)
    return Event(shown.time, record, shown.kind, readable(what), readable(who), readable(detail))


def _snapshot(body: Body, tenant: str | None) -> tuple[str, str, str]:
    signers = ", ".join(texts_in(body, "signers"))
    before = text_in(body, "from")[:16] or "none"
    change = f"{before} to {text_in(body, 'to')[:16]}"
    return (
        f"policy and catalog in force ({text_in(body, 'why')})",
        signers or "nobody signed",
        change,
    )


def _drift(body: Body, tenant: str | None) -> tuple[str, str, str]:
    concerned = [one for one in texts_in(body, "tenants") if tenant in (None, one)]
    parts = [
        f"more places: {', '.join(texts_in(body, 'added'))}" if texts_in(body, "added") else "",
        f"fewer: {', '.join(texts_in(body, 'removed'))}" if texts_in(body, "removed") else "",
        f"outside the grant of: {', '.join(concerned)}" if concerned else "",
    ]
    name = text_in(body, "endpoint") or text_in(body, "model")
    return f"`{name}` is not where it was expected", "drift watch", "; ".join(filter(None, parts))


def _veto(body: Body, tenant: str | None) -> tuple[str, str, str]:
    what, name = text_in(body, "what"), text_in(body, "name")
    # Keys belong to tenants, and a reason is free text of an operator: neither is for others.
    shown = f"{what} `{name}`" if tenant is None or what != "key" else f"a {what}"
    reason = text_in(body, "reason") if tenant is None else ""
    by = text_in(body, "by") if tenant is None else "operator"
    return f"{text_in(body, 'event')}: {shown}", by, reason


def _key(body: Body, tenant: str | None) -> tuple[str, str, str]:
    return (
        "another lasting key signs",
        "",
        f"{text_in(body, 'from')[:16]} to {text_in(body, 'to')[:16]}",
    )


def _recovery(body: Body, tenant: str | None) -> tuple[str, str, str]:
    detail = f"{body.get('settled', 0)} requests settled as unknown"
    return "recovery after a crash", "", f"{detail}; {body.get('torn_bytes', 0)} torn bytes cut"


def _administration(body: Body, tenant: str | None) -> tuple[str, str, str]:
    said = text_in(body, "event")
    if said in ("start", "stop"):
        return (
            f"process {said}",
            "",
            f"durability {text_in(body, 'durability')}" * (said == "start"),
        )
    if tenant is not None:
        return said, "operator", ""
    detail = ", ".join(
        f"{name}: {value}" for name, value in body.items()
        if name not in ("event", "by") and isinstance(value, str | int)
    )  # fmt: skip
    return said, text_in(body, "by"), detail


def _plainly(body: Body, tenant: str | None) -> tuple[str, str, str]:
    return text_in(body, "event"), "", ""


_WORDS: Final = {
    "snapshot": _snapshot,
    "drift": _drift,
    "veto": _veto,
    "key": _key,
    "recovery": _recovery,
    "administration": _administration,
}
