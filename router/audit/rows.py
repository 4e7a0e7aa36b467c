"""A log as one row per request: what was asked, decided and done, side by side.

A decision is joined with its outcome; a refusal or a 421 is a row of its own. Rows come in the
order in which requests end; what is still open comes last, with the outcome `open`. Memory holds
only open requests. Names are as the log writes them; a value that an entry lacks is empty or 0.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from router.audit.bodies import Body, list_in, object_in, text_in, texts_in
from router.audit.layout import Folder, LogFolder
from router.audit.reading import LogReader, Shown

REQUESTS: Final = frozenset({"decision", "refusal", "misdirected"})
Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Row:
    """One request. `time` in microseconds; `cost` in millionths of a US dollar.

    `attributes` are `name=value`; `places` where it may have been processed, or the one place that
    was told; `outcome` is how it ended: an outcome's status, a refusal's code, `misdirected`.
    """

    log: str
    index: int
    time: int
    request: str
    kind: str
    tenant: str
    app: str
    key: str
    model: str
    surface: str
    purpose: str
    router: str
    router_region: str
    policy: str
    snapshot: str
    attributes: tuple[str, ...]
    rules: tuple[str, ...]
    dry_run: tuple[str, ...]
    plan: tuple[str, ...]
    outcome: str
    endpoint: str
    provider: str
    places: tuple[str, ...]
    retained: tuple[str, ...]
    place_told: str
    attempts: int
    tokens_in: int
    tokens_out: int
    cost: int
    millis: int


def rows(folder: Folder, progress: Progress = lambda _: None) -> Iterator[Row]:
    """Every request of every log. `progress` is told the bytes of each segment that is read.

    Raises LineInvalid at a line that can't be read.
    """
    for log in folder.logs:
        yield from joined(_entries(log, progress))


def size(folder: Folder) -> int:
    """All bytes that `rows` reads."""
    return sum(one.path.stat().st_size for log in folder.logs for one in log.segments())


def _entries(log: LogFolder, progress: Progress) -> Iterator[Shown]:
    reader = LogReader(log)
    for segment in log.segments():
        yield from reader.of(segment)
        progress(segment.path.stat().st_size)


@dataclass(frozen=True, slots=True)
class Request:
    """What began a request, how it ended, and the body of its outcome entry, empty without one."""

    began: Shown
    outcome: str
    ended: Body

    @property
    def row(self) -> Row:
        """It as a row."""
        return _row(self.began, self.outcome, self.ended)


@dataclass(slots=True)
class Joining:
    """Joins the entries of one log, given one by one. Memory holds only what is open."""

    opened: dict[str, Shown] = field(default_factory=dict)

    def add(self, shown: Shown) -> Request | None:
        """The request that ends with this entry, if one does."""
        if shown.kind == "decision":
            self.opened[shown.id] = shown
        elif shown.kind == "outcome":
            began = self.opened.pop(shown.id, None)
            if began is not None:
                return Request(began, str(shown.body.get("status", "")), shown.body)
        elif shown.kind == "refusal":
            return Request(shown, str(shown.body.get("code", "")), {})
        elif shown.kind == "misdirected":
            return Request(shown, "misdirected", {})
        return None

    def left(self) -> Iterator[Request]:
        """What is still open."""
        return (Request(began, "open", {}) for began in self.opened.values())


def joined(entries: Iterable[Shown]) -> Iterator[Row]:
    """The rows of one log's entries."""
    joining = Joining()
    for shown in entries:
        ended = joining.add(shown)
        if ended is not None:
            yield ended.row
    yield from (request.row for request in joining.left())


def _row(shown: Shown, outcome: str, ended: Body) -> Row:
    body = shown.body
    who, allowed, ran = object_in(body, "who"), object_in(body, "allowed"), object_in(ended, "ran")
    router = object_in(who, "router")
    tokens = [one for one in list_in(ended, "tokens") if isinstance(one, int)] or [0, 0]
    told = text_in(ended, "place")
    told = "" if told == "not observable" else told
    places = (told,) if told else texts_in(ran, "process")
    return Row(
        shown.place.log,
        shown.place.index,
        shown.time,
        shown.id,
        shown.kind,
        text_in(who, "tenant"),
        text_in(who, "app"),
        text_in(who, "key") or text_in(body, "key"),
        text_in(who, "model"),
        text_in(who, "surface"),
        text_in(who, "purpose"),
        text_in(router, "id"),
        text_in(router, "region"),
        text_in(who, "policy"),
        text_in(body, "snapshot"),
        tuple(_attributes(object_in(body, "attributes"))),
        tuple(
            text_in(rule, "rule") for rule in list_in(allowed, "rules") if isinstance(rule, dict)
        ),
        texts_in(allowed, "dry_run"),
        texts_in(body, "plan"),
        outcome,
        text_in(ended, "endpoint"),
        text_in(ran, "provider"),
        places,
        texts_in(ran, "retain"),
        told,
        len(list_in(ended, "attempts")),
        tokens[0],
        tokens[-1],
        _whole(ended, "cost"),
        _whole(ended, "millis"),
    )


def _attributes(attributes: Body) -> Iterator[str]:
    for name, state in attributes.items():
        if isinstance(state, dict):
            yield from (f"{name}={value}" for value in texts_in(state, "values"))


def _whole(value: Body, name: str) -> int:
    found = value.get(name)
    return found if isinstance(found, int) else 0
