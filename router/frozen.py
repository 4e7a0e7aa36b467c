"""How the values that steps hand to each other are made: in one place, because it costs.

Every request makes two dozen of them. A frozen dataclass sets each field through
`object.__setattr__` and takes four times as long to make as a plain one. Frozen they are all the
same: what was decided must not change on its way to where it is carried out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from typing_extensions import dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass."""
    return dataclass(frozen=True, slots=True)(cls)
