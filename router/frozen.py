"""How the values that steps hand to each other are made: in one place, because it costs.

Every request makes two dozen of them. A frozen dataclass sets each field through
`object.__setattr__` and takes three times as long to make as a plain one. Frozen they are all the
same: what was decided must not change on its way to where it is carried out.

So a value is filled as an object of a plain class with the same slots, which nobody else ever
sees, and becomes one of the frozen class before it is handed out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar

from typing_extensions import dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass without bases."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    if made.__mro__ != (made, object):
        raise TypeError(f"`{cls.__name__}` has bases: its slots are not known here")
    named = fields(made)
    plain = type(cls.__name__, (), {"__slots__": tuple(one.name for one in named)})
    given = tuple(one.name for one in named if one.init)
    made.__new__ = staticmethod(_new(made, plain, [one for one in named if one.init]))
    del made.__init__
    made.__reduce__ = lambda self: (type(self), tuple(getattr(self, name) for name in given))
    found: type[T] = made
    return found


def _new(made: type, plain: type, given: list[Field[Any]]) -> Callable[..., object]:
    """`__new__` written out, as `dataclass` writes `__init__`."""
    names: dict[str, object] = {"_plain": plain, "_unsaid": MISSING}
    parameters, lines = ["_cls"], ["_self = _plain()"]
    for one in given:
        value = one.name
        if one.default is not MISSING:
            names[f"_{one.name}"] = one.default
            parameters.append(f"{one.name}=_{one.name}")
        elif one.default_factory is not MISSING:
            names[f"_{one.name}"] = one.default_factory
            parameters.append(f"{one.name}=_unsaid")
            value = f"_{one.name}() if {one.name} is _unsaid else {one.name}"
        else:
            parameters.append(one.name)
        lines.append(f"_self.{one.name} = {value}")
    lines.append("_self.__class__ = _cls")
    if hasattr(made, "__post_init__"):
        lines.append("_self.__post_init__()")
    text = f"def __new__({', '.join(parameters)}):\n " + "\n ".join([*lines, "return _self"])
    exec(text, names)  # noqa: S102 - our own field names only
    new: Any = names["__new__"]
    new.__qualname__ = f"{made.__qualname__}.__new__"
    found: Callable[..., object] = new
    return found
