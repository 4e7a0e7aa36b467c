"""How the values that steps hand to each other are made: in one place, because it costs.

Every request makes two dozen of them. A frozen dataclass sets each field through
`object.__setattr__` and takes three times as long to make as a plain one. Frozen they are all the
same: what was decided must not change on its way to where it is carried out.

So a value is filled as an object of a plain class with the same slots, which nobody else ever
sees, and becomes one of the frozen class before it is handed out.

To call a class is itself dear: its arguments are packed and unpacked on the way to what fills the
value. `maker` gives that, a plain function, for where every request makes one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Final, ParamSpec, TypeVar

from typing_extensions import dataclass_transform

P = ParamSpec("P")
T = TypeVar("T")

FROM: Final = "from"
"""In a field's metadata: the path in the other fields under which its value is found once, as
`decided.classified`. For what is asked for dozens of times by every request."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A frozen, slotted dataclass without bases."""
    made: Any = dataclass(frozen=True, slots=True)(cls)
    if made.__mro__ != (made, object):
        raise TypeError(f"`{cls.__name__}` has bases: its slots are not known here")
    named = fields(made)
    plain = type(cls.__name__, (), {"__slots__": tuple(one.name for one in named)})
    given = tuple(one.name for one in named if one.init)
    made.__made__, made.__new__ = map(staticmethod, _filling(made, plain, named))
    del made.__init__
    made.__reduce__ = lambda self: (type(self), tuple(getattr(self, name) for name in given))
    found: type[T] = made
    return found


def maker(cls: Callable[P, T]) -> Callable[P, T]:
    """What makes the values of a frozen class: called as the class is, for two thirds of what
    that costs."""
    made: Callable[P, T] = cls.__made__  # type: ignore[attr-defined]
    return made


def _filling(
    made: type, plain: type, named: tuple[Field[Any], ...]
) -> tuple[Callable[..., object], Callable[..., object]]:
    """`maker`'s function and `__new__`, written out as `dataclass` writes `__init__`."""
    names: dict[str, object] = {"_plain": plain, "_unsaid": MISSING, "_cls": made}
    parameters, lines = [], ["_self = _plain()"]
    for one in named:
        value = one.name
        if not one.init:
            if FROM not in one.metadata:
                continue
            value = f"_self.{one.metadata[FROM]}"
        elif one.default is not MISSING:
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
    body = "\n ".join([*lines, "return _self"])
    for name, first in (("made", []), ("__new__", ["_type"])):
        exec(f"def {name}({', '.join(first + parameters)}):\n {body}", names)  # noqa: S102 - our own field names only
    found: list[Any] = [names["made"], names["__new__"]]
    for one, name in zip(found, ("made", "__new__"), strict=True):
        one.__qualname__ = f"{made.__qualname__}.{name}"
    return found[0], found[1]
