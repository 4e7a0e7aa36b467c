"""Numbers with a unit, as people write them in files, options and headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from math import isfinite
from types import MappingProxyType
from typing import Final

TIMES: Final[Mapping[str, float]] = MappingProxyType(
    {
        "ms": 0.001,
        "s": 1.0,
        "m": 60.0,
        "min": 60.0,
        "h": 3600.0,
        "d": 86400.0,
        "w": 604800.0,
        "y": 31557600.0,
    }
)
_NUMBER_UNIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)", re.ASCII)
_RATE: Final = re.compile(r"(\d+(?:\.\d+)?)([kM]?)/(s|min|m|h|d)", re.ASCII)
_SCALES: Final[Mapping[str, int]] = MappingProxyType({"": 1, "k": 1_000, "M": 1_000_000})
_PERIODS: Final = frozenset({"h", "d"})


def duration(text: object) -> float:
    """Seconds of `250ms`, `300s`, `24h`, `90d`, `3y`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return measure(text, TIMES, "30s or 90d")


def rate(text: object) -> tuple[int, float]:
    """Amount and seconds of `600/min`, `400k/min`, `2M/h`.

    Raises:
        ValueError: another form, an amount below one, at which no request would ever fit, or one
            that is not whole: what is counted comes in ones, and rounding would be silent.
    """
    found = _RATE.fullmatch(str(text).replace(" ", ""))
    if found is None:
        raise ValueError("write an amount per time, as 600/min or 400k/min")
    scale = _SCALES[found.group(2)]
    if _finite(found.group(1), scale) < 1:
        raise ValueError("an amount per time is 1 or more: write 0.5/min as 30/h")
    amount = Fraction(found.group(1)) * scale
    if amount.denominator != 1:
        raise ValueError("an amount per time is a whole number: write 1.5/min as 90/h")
    return amount.numerator, TIMES[found.group(3)]


def spending(text: object, unit: int, example: str) -> tuple[int, float]:
    """Amount in parts of which `unit` make one, and seconds, of `20/h`, `2.50/d` or `400k/d`.

    Raises:
        ValueError: another form, another time than an hour or a day, or less than one part.
    """
    found = _RATE.fullmatch(str(text).replace(" ", ""))
    if found is None or found.group(3) not in _PERIODS:
        raise ValueError(f"write an amount per hour or day, as {example}")
    amount = round(_finite(found.group(1), _SCALES[found.group(2)] * unit))
    if amount < 1:
        raise ValueError("nothing could ever be spent of that; write more, or take it out")
    return amount, TIMES[found.group(3)]


def measure(text: object, units: Mapping[str, float], example: str) -> float:
    """A number times its unit, whose name may be in capitals.

    Raises:
        ValueError: not a number and one of the units.
    """
    found = _NUMBER_UNIT.fullmatch(str(text).strip())
    unit = units.get(found.group(2).lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"`{text}` needs a number and a unit of {', '.join(units)}, as {example}")
    return _finite(found.group(1), unit)


def _finite(digits: str, unit: float) -> float:
    found = float(digits) * unit
    if not isfinite(found):
        raise ValueError(f"a number of {len(digits)} digits is too large to count with")
    return found
