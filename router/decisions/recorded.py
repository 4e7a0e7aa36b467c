"""Requests as a region log recorded them, to be decided again under another policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from policies.recorded import Known, Recorded
from router.audit.commands import run_show
from router.audit.errors import AuditError

_KINDS: Final = ("decision", "refusal")


class NotARequest(AuditError):
    """An entry that does not have the form this version writes."""


def recorded(folder: Path) -> Iterator[Recorded]:
    """Every request that was decided about, of all logs in a folder, refused ones too.

    Raises:
        UsageError: no log there. LineInvalid, NotARequest: an entry that can't be read.
    """
    for kind in _KINDS:
        for shown in run_show(folder, kind=kind):
            try:
                yield _request(shown.body)
            except (KeyError, TypeError, ValueError) as error:
                raise NotARequest(f"{shown.place}: `{shown.kind}` can't be read: {error}") from None


def _request(body: Mapping[str, object]) -> Recorded:
    who, attributes = _mapping(body["who"]), _mapping(body["attributes"])
    return Recorded(
        str(who["tenant"]),
        str(who["app"]) or None,
        str(who["model"]),
        str(who["purpose"]),
        str(_mapping(who["router"])["region"]),
        frozenset(_known(name, _mapping(one)) for name, one in attributes.items()),
    )


def _known(name: str, one: Mapping[str, object]) -> Known:
    said = one["from"]
    if not isinstance(said, list):
        raise TypeError(f"attribute `{name}` doesn't say who said it")
    # Sources may hold a colon (`classifier:pii`), values of closed vocabularies hold none.
    pairs = (str(text).partition(": ") for text in said)
    return Known(
        name, frozenset((value, source) for value, _, source in pairs), bool(one["closed"])
    )


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise TypeError("an object is expected")
    return value
