"""The event loop's side of a log: entries become lines and get their places.

Only the event loop touches this object. Index and segment of a line are fixed when it is encoded,
so a reference to an interned value is known before anything is written. What belongs to a closed
request is refused here, before it can reach the disk: a second decision under one id, an attempt
or outcome without an open decision, a decision whose snapshot is not stored.
"""

from collections.abc import Callable
from math import inf

from router.audit.entry import (
    NONCE_BYTES,
    Entry,
    Interned,
    Kind,
    SegmentStart,
    entry_line,
    intern_line,
    nonce_text,
    stand_in,
)
from router.audit.errors import EntryRefused
from router.audit.form import Filled, Form, Forms
from router.audit.recovery import Recovered
from router.audit.writer import Batch

_NONCES_DRAWN = 256
_SETTLING = ("outcome", "attempt")


class Intake:
    """Lines waiting for the writer, and everything needed to encode the next one."""

    def __init__(
        self,
        log: str,
        segment_bytes: int,
        entropy: Callable[[int], bytes],
        stored: Callable[[str], bool],
        state: Recovered,
        segment_seconds: float = inf,
    ) -> None:
        self._log = log
        self._limit = segment_bytes
        self._longest = segment_seconds
        self._since = state.segment_time
        self._entropy = entropy
        self._stored = stored
        self._stand_in = stand_in(self._reference)
        self._forms = Forms(self._reference, self._admit_form)
        self._nonces: list[bytes] = []
        self._next = state.frontier.size
        self._bytes = state.segment_bytes
        self._interned = state.interned
        self._lines: list[bytes] = []
        self._start: SegmentStart | None = None
        self.open = state.open
        self.newest = state.newest
        self.waiting_bytes = 0
        if state.segment is None:
            self._begin()

    def add(self, entry: Entry) -> int:
        """Encode one entry and return its index. Raises EntryRefused; nothing changes then,
        except that values it interned may already be waiting."""
        kind, body = entry.kind, entry.body
        if kind == "decision":
            if not entry.id or entry.id in self.open:
                raise EntryRefused(f"`{entry.id}` already has an open decision, or is empty")
        elif kind in _SETTLING and entry.id not in self.open:
            raise EntryRefused(f"`{entry.id}` has no open decision for an {kind}")
        if type(body) is Filled:
            nonces = self._nonces
            line = self._forms.line(entry, body, nonces.pop() if nonces else self._nonce())
        else:
            self._admit(kind, entry.get("snapshot"))
            line = entry_line(entry, self._nonce(), self._reference, self._stand_in)
        index = self._append(line)
        if kind == "decision":
            self.open[entry.id] = index
        elif kind == "outcome":
            del self.open[entry.id]
        self.newest = max(self.newest, entry.time)
        if not self._since:
            self._since = entry.time
        return index

    def take(self, *, publish: bool) -> Batch:
        """Everything waiting, for the writer. A segment that is full or old ends with it."""
        alone = self._start is None and not publish and self._alone()
        batch = Batch(self._lines, self._start, publish, alone)
        self._lines, self._start, self.waiting_bytes = [], None, 0
        if self._bytes >= self._limit or self.newest - self._since >= self._longest:
            self._begin()
        return batch

    def _alone(self) -> bool:
        """Whether no decision is open but one that is still to be written."""
        first = self._next - len(self._lines)
        return len(self.open) < 2 and all(index >= first for index in self.open.values())

    def _admit(self, kind: Kind, snapshot: object) -> None:
        if kind == "decision" and snapshot is not None and not self._stored(str(snapshot)):
            raise EntryRefused(f"store snapshot `{snapshot}` before a decision names it")

    def _admit_form(self, form: Form) -> None:
        """Once for each form and segment: what is stored stays so."""
        self._admit(form.kind, form.get("snapshot"))

    def _begin(self) -> None:
        self._start = SegmentStart(
            self._log, self._next, self.newest, tuple(self.open.items()), self._nonce()
        )
        self._next += 1
        self._bytes = 0
        self._since = self.newest
        self._interned = {}
        self._forms.clear()

    def _reference(self, value: Interned) -> int:
        index = self._interned.get(value.digest)
        if index is None:
            index = self._append(intern_line(self._next, value, self._nonce()))
            self._interned[value.digest] = index
        return index

    def _append(self, line: bytes) -> int:
        index = self._next
        self._lines.append(line)
        self._next = index + 1
        size = len(line) + 1
        self._bytes += size
        self.waiting_bytes += size
        return index

    def _nonce(self) -> bytes:
        if not self._nonces:
            drawn = self._entropy(NONCE_BYTES * _NONCES_DRAWN)
            self._nonces = [
                nonce_text(drawn[at : at + NONCE_BYTES]) for at in range(0, len(drawn), NONCE_BYTES)
            ]
        return self._nonces.pop()
