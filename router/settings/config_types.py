"""Values and sections as configuration files write them: sizes, times, references to secrets."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from policies.measures import duration, measure
from regions.document import PLACEHOLDER

_SIZES: Final = {"b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
UNFILLED: Final = re.compile(rf"{PLACEHOLDER}|^~(?=/|$)")
"""The same, and a home that a shell would have put there."""
_KMS_KEY: Final = re.compile(r"kms:arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/[\w/-]+")


def size(text: str) -> int:
    """Bytes of `20MiB`, `512KiB`, `100b`.

    Raises:
        ValueError: not a number and one of the units.
    """
    return int(measure(text, _SIZES, "20MiB"))


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

    @field_validator("*", mode="before")
    @classmethod
    def _nameable(cls, value: object) -> object:
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(one, str) and "\0" in one for one in texts):
            raise ValueError("a NUL character names no file and no place: take it out")
        if any(isinstance(one, str) and UNFILLED.search(one) for one in texts):
            raise ValueError(
                "nothing is filled in here, so `${…}`, `{{…}}` and `~` would be taken as they "
                "stand: write the value, or `env:NAME` where a secret stands"
            )
        return value
