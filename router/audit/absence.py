"""Lines that are not here: whether a log itself says that they were released, and where to.

The leaf hashes of released lines stay, so they count in the tree; what they say can't be judged.
Their absence is no finding when an entry says that just these lines were released, and a signed
head covers that entry: whoever only has the disk can't write one. Lines go oldest first, so an
entry stands for all before its own as well: what was said of those may itself have been released.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from router.audit.lines import Value
from router.audit.note import Certificate
from router.audit.reading import Place
from router.audit.verdict import Finding


@dataclass(slots=True)
class _Part:
    """Lines [first, end); `newest`, in microseconds, as the segment after them says."""

    place: Place
    first: int
    end: int
    newest: int = 0


class Absence:
    """What is not here of one log, in order, and what its entries say of that."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._said: list[tuple[int, Mapping[str, Value]]] = []

    @property
    def count(self) -> int:
        """How many lines are not here."""
        return sum(part.end - part.first for part in self._parts)

    def lines(self, place: Place, first: int, end: int) -> None:
        """These are not here."""
        self._parts.append(_Part(place, first, end))

    def followed(self, newest: int) -> None:
        """What comes next is here, and says so."""
        for part in self._parts:
            part.newest = part.newest or newest

    def released(self, index: int, body: Mapping[str, Value]) -> None:
        """An entry says that lines were released."""
        self._said.append((index, body))

    def hides(self, certificate: Certificate, size: int) -> bool:
        """Whether the entry of a certificate may be among what is not here."""
        return any(
            part.first < size and part.newest >= certificate.begins * 1_000_000
            for part in self._parts
        )

    def findings(self, covered: int) -> Iterator[Finding]:
        """What no entry below a signed head (`covered` lines) says was released."""
        for part in self._parts:
            if not any(index < covered and _tells(body, part) for index, body in self._said):
                detail = "its lines are not here, and no signed entry says that they were released"
                yield Finding("segment", part.place, detail)

    def notices(self) -> Iterator[str]:
        """Where they are, as the log says."""
        told = [body for _, body in self._said if any(_tells(body, part) for part in self._parts)]
        if told:
            folder = str(told[0].get("key")).rpartition("/")[0].rpartition("/")[0]
            yield (
                f"{self.count} lines are not here: released, and sealed below `{folder}/`"
                f"{_until(told)}; `audit restore` brings them, and judges what they say"
            )


def _tells(body: Mapping[str, Value], part: _Part) -> bool:
    """Whether an entry says that a part was released: it names it, or goes on after it."""
    first, end = body.get("first"), body.get("end")
    if type(first) is not int or type(end) is not int:
        return False
    return (first, end) == (part.first, part.end) or part.end <= first < end


def _until(told: Sequence[Mapping[str, Value]]) -> str:
    """How long the entries that are here say theirs are locked."""
    ends = [until for until in (body.get("until") for body in told) if type(until) is int]
    try:
        day = datetime.fromtimestamp(min(ends), UTC).date()
    except (ValueError, OverflowError, OSError):
        return ""
    return f" until {day} at least"
