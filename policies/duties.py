"""Obligations as people write them: `[zero_retention, {redact: [email, iban]}]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from policies.attributes import nearest
from policies.measures import duration
from policies.obligations import (
    IDENTIFIERS,
    AnyObligation,
    InRegion,
    MaxPrice,
    NoBatch,
    NoGlobal,
    NoStore,
    RecordRetention,
    Redact,
    TierRange,
    ZeroRetention,
)
from policies.written import Refused
from regions.document import Path
from regions.model import Tier

KNOWN_ASSURANCES: Final = frozenset({"baa", "dpa", "scc", "zdr"})
PLAIN: Final[Mapping[str, Callable[[], AnyObligation]]] = {
    "zero_retention": ZeroRetention,
    "no_batch": NoBatch,
    "no_store": NoStore,
    "in_region": InRegion,
    "no_global": NoGlobal,
}


def read_obligations(written: object, path: Path) -> tuple[AnyObligation, ...]:
    """The obligations written at `path`: a word, a mapping, or a list of these.

    Raises:
        Refused: an unknown kind or setting.
    """
    items = written if isinstance(written, list) else [written]
    found: list[AnyObligation] = []
    for n, item in enumerate(items):
        at = (*path, n) if isinstance(written, list) else path
        if isinstance(item, str):
            found.append(_plain(item, at))
        elif isinstance(item, dict) and item:
            found.extend(_with_settings(kind, value, (*at, kind)) for kind, value in item.items())
        else:
            raise Refused(at, "an obligation is a word or `{KIND: SETTINGS}`")
    return tuple(found)


def _plain(kind: str, path: Path) -> AnyObligation:
    make = PLAIN.get(kind)
    if make is not None:
        return make()
    if kind in SETTINGS:
        raise Refused(path, f"obligation `{kind}` needs settings, as `{{{kind}: …}}`")
    raise Refused(path, f"obligation `{kind}` is not known{nearest(kind, {*PLAIN, *SETTINGS})}")


def _with_settings(kind: str, value: object, path: Path) -> AnyObligation:
    read = SETTINGS.get(kind)
    if read is not None:
        return read(value, path)
    if kind in PLAIN:
        raise Refused(path, f"obligation `{kind}` has no settings; write the word alone")
    raise Refused(path, f"obligation `{kind}` is not known{nearest(kind, {*PLAIN, *SETTINGS})}")


def _redact(value: object, path: Path) -> Redact:
    kinds = [value] if isinstance(value, str) else value
    if not isinstance(kinds, list) or not kinds:
        raise Refused(path, "`redact` needs kinds of identifiers, as `[email, iban]`")
    for kind in kinds:
        if kind not in IDENTIFIERS:
            hint = nearest(str(kind), IDENTIFIERS)
            raise Refused(path, f"identifiers `{kind}` can't be redacted{hint}")
    return Redact(frozenset(str(kind) for kind in kinds))


def _tier(value: object, path: Path) -> TierRange:
    settings = _mapping(value, ("floor", "ceiling"), path)
    try:
        floor = Tier.named(settings.get("floor", "small"))
        ceiling = Tier.named(settings.get("ceiling", "large"))
    except ValueError as problem:
        raise Refused(path, str(problem)) from None
    if floor > ceiling:
        raise Refused(path, "the floor is above the ceiling; no tier satisfies both")
    return TierRange(floor, ceiling)


def _max_price(value: object, path: Path) -> MaxPrice:
    settings = _mapping(value, ("input", "output"), path)
    try:
        costs = {key: float(text) for key, text in settings.items()}
    except ValueError:
        raise Refused(path, "a price is US dollars per million tokens, as `3.00`") from None
    if any(not cost >= 0 for cost in costs.values()):
        raise Refused(path, "a price is not negative")
    return MaxPrice(costs.get("input"), costs.get("output"))


def _record_retention(value: object, path: Path) -> RecordRetention:
    settings = _mapping(value, ("min", "max"), path)
    try:
        least = duration(settings["min"]) if "min" in settings else 0.0
        most = duration(settings["max"]) if "max" in settings else None
    except ValueError as problem:
        raise Refused(path, str(problem)) from None
    if most is not None and least > most:
        raise Refused(path, "the minimum is above the maximum")
    return RecordRetention(least, most)


def _mapping(value: object, known: tuple[str, ...], path: Path) -> Mapping[str, str]:
    if not isinstance(value, dict) or not value:
        raise Refused(path, f"it needs {' or '.join(f'`{k}`' for k in known)}")
    for key, one in value.items():
        if key not in known:
            raise Refused((*path, key), f"`{key}` is not expected here{nearest(key, known)}")
        if not isinstance(one, str):
            raise Refused((*path, key), f"`{key}` is a single value")
    return value


SETTINGS: Final[Mapping[str, Callable[[object, Path], AnyObligation]]] = {
    "redact": _redact,
    "tier": _tier,
    "max_price": _max_price,
    "record_retention": _record_retention,
}
