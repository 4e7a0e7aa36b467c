"""Lines that are not here: whether a log itself says that they were released, and where to.

The leaf hashes of released lines stay, so they count in the tree; what they say can't be judged.
Their absence is no finding when an entry says that just these lines were released, and a signed
head covers that entry: whoever only has the disk can't write one.
"""

from collections.abc import Iterator, Mapping
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
        self._said: dict[tuple[Value, Value], tuple[int, Mapping[str, Value]]] = {}

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
        self._said.setdefault((body.get("first"), body.get("end")), (index, body))

    def hides(self, certificate: Certificate, size: int) -> bool:
        """Whether the entry of a certificate may be among what is not here."""
        return any(
            part.first < size and part.newest >= certificate.begins * 1_000_000
            for part in self._parts
        )

    def findings(self, covered: int) -> Iterator[Finding]:
        """What no entry below a signed head (`covered` lines) says was released."""
        for part in self._parts:
            at, _ = self._said.get((part.first, part.end), (covered, {}))
            if at >= covered:
                detail = "its lines are not here, and no signed entry says that they were released"
                yield Finding("segment", part.place, detail)

    def notices(self) -> Iterator[str]:
        """Where they are, as the log says."""
        found = [self._said.get((part.first, part.end)) for part in self._parts]
        said = [body for _, body in filter(None, found)]
        if said:
            until = min(one for one in (body.get("until") for body in said) if type(one) is int)
            day = datetime.fromtimestamp(until, UTC).date()
            folder = str(said[0].get("key")).rpartition("/")[0].rpartition("/")[0]
            yield (
                f"{self.count} lines are not here: released, and sealed below `{folder}/` until "
                f"{day} at least; `audit restore` brings them, and judges what they say"
            )
