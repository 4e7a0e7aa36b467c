"""What stands in an entry's body, whoever wrote it: what has another type is not there."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from router.audit.lines import Value

Body: TypeAlias = Mapping[str, Value]

_EMPTY: Final[Body] = {}
_BESIDE: Final = ("call", "ms")


def object_in(body: Body, name: str) -> Body:
    """The object under a name, or an empty one."""
    found = body.get(name)
    return found if isinstance(found, dict) else _EMPTY


def list_in(body: Body, name: str) -> list[Value]:
    """The list under a name, or an empty one."""
    found = body.get(name)
    return found if isinstance(found, list) else []


def attempts_in(ended: Body) -> list[Body]:
    """The attempts of an outcome; what stands beside one that was all belongs to it."""
    found: list[Body] = [one for one in list_in(ended, "attempts") if isinstance(one, dict)]
    if len(found) != 1:
        return found
    return [{**{name: ended[name] for name in _BESIDE if name in ended}, **found[0]}]


def texts_in(body: Body, name: str) -> tuple[str, ...]:
    """The texts in the list under a name."""
    return tuple(one for one in list_in(body, name) if isinstance(one, str))


def text_in(body: Body, name: str) -> str:
    """The text under a name, or an empty one."""
    found = body.get(name)
    return found if isinstance(found, str) else ""
