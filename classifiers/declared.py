"""Attributes that a client declares: raw names and values, not yet checked against any policy.

Headers `x-domicile-attr-<name>: v1,v2`; body metadata keys `domicile-attr-<name>` with a string
(comma separated) or a list of strings. A declaration whose value cannot be read has no values:
the policy layer must refuse it, never ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

HEADER: Final = "x-domicile-attr-"
METADATA: Final = "domicile-attr-"


@dataclass(frozen=True, slots=True)
class Declared:
    """One declaration. `values` is empty if none was readable; repetitions stay separate."""

    name: str
    values: tuple[str, ...]
    origin: Literal["header", "metadata"]


def declared_in_headers(headers: Iterable[tuple[str, str]]) -> tuple[Declared, ...]:
    """Declarations in request headers, in order; header names may be in any case."""
    found = []
    for name, value in headers:
        lowered = name.lower()
        if lowered.startswith(HEADER):
            found.append(Declared(lowered[len(HEADER) :], _split(value), "header"))
    return tuple(found)


def declared_in_metadata(body: Mapping[str, object]) -> tuple[Declared, ...]:
    """Declarations in the `metadata` object of a parsed body, in order."""
    metadata = body.get("metadata")
    if metadata is None or not isinstance(metadata, Mapping):
        return ()
    return tuple(
        Declared(key[len(METADATA) :].lower(), _values(value), "metadata")
        for key, value in metadata.items()
        if isinstance(key, str) and key.lower().startswith(METADATA)
    )


def _values(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return _split(value)
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return tuple(member.strip() for member in value if member.strip())
    return ()


def _split(value: str) -> tuple[str, ...]:
    return tuple(member.strip() for member in value.split(",") if member.strip())
