"""Values and sections as configuration files write them: sizes, times, references to secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_SIZES: Final = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_TIMES: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "y": 31557600.0}
_KMS_KEY: Final = re.compile(r"kms:arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[\w/-]+")
_NUMBER_UNIT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")


def size(text: str) -> int:
    """Bytes of `20MiB`, `512KiB`, `100b`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return int(_measure(text, _SIZES, "20MiB"))


def duration(text: str) -> float:
    """Seconds of `300s`, `250ms`, `10m`, `2h`, `90d`, `3y`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return _measure(text, _TIMES, "300s")


def _measure(text: str, units: Mapping[str, float], example: str) -> float:
    found = _NUMBER_UNIT.fullmatch(str(text).strip())
    unit = units.get(found.group(2).lower()) if found else None
    if found is None or unit is None:
        raise ValueError(f"`{text}` needs a number and a unit of {', '.join(units)}, as {example}")
    measured = float(found.group(1)) * unit
    if not isfinite(measured):
        raise ValueError(f"a number of {len(found.group(1))} digits is too large to count with")
    return measured


def _reference(text: str) -> str:
    if not text.startswith(("env:", "file:", "aws-secret:")):
        raise ValueError("a secret stands here only by reference: `env:NAME` or `file:PATH`")
    return text


def _lasting_key(text: str) -> str:
    if not text.startswith("file:") and not _KMS_KEY.fullmatch(text):
        raise ValueError(
            "the key stands here only by reference: `file:PATH`, or `kms:` and the ARN of a key, "
            "as `kms:arn:aws:kms:eu-central-1:111122223333:key/…`"
        )
    return text


Duration = Annotated[float, BeforeValidator(duration), Field(gt=0)]
Size = Annotated[int, BeforeValidator(size), Field(gt=0)]
Secret = Annotated[str, AfterValidator(_reference)]
LastingKey = Annotated[str, AfterValidator(_lasting_key)]


class Strict(BaseModel):
    """Unknown keys are errors: a setting read nowhere must not look as if it worked."""

    model_config = ConfigDict(extra="forbid", frozen=True)
