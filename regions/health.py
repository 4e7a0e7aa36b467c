"""Health of replicas, learned from what happens to requests. Pure: time is passed in.

Every bad mark is a lease that ends by itself; a missing signal means unknown, not ill. A
429 is load, not illness. A client's own 4xx never counts. After a mark ends, one request
at a time is let through as a trial, and a replica that recovers is given load in steps.

A quota of tokens that has no room for a large request often has some for small ones: what is less
than half of what was refused goes on, until one of that size is refused as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Final


class Sign(IntEnum):
    """What one attempt said about a replica."""

    OK = 0
    """Content came."""
    CLIENT = 1
    """The client's own mistake, or the client left: says nothing."""
    LOAD = 2
    """429 and the like: full or limited, not ill."""
    ILL = 3
    """5xx, or a broken answer."""
    DEAD = 4
    """Refused, unreachable, or silent past its time."""
    BROKE = 5
    """A stream that began and was cut."""
    WHOLE = 6
    """An answer that began and came to its end."""


class Standing(IntEnum):
    """How a replica stands now; lower goes first."""

    GOOD = 0
    TRIAL = 1
    LOADED = 2
    MARKED = 3

    @property
    def turn(self) -> int:
        """Its place in line. A trial waits behind nobody good, or it would never come.

        One request at a time is let through, so a replica that is still ill costs one.
        """
        return _TURNS[self]


@dataclass(frozen=True, slots=True)
class HealthSettings:
    """Thresholds. Times in seconds.

    `failures`: ill signs in a row that mark a replica (a dead sign marks at once), and streams in
    a row that began and were cut, which the beginning of another one doesn't make good;
    `lease`, `lease_max`: how long a mark lasts, doubling with each in a row;
    `trial`: how long one trial may hold the door; `ramp`: time to full load again;
    `load_max`: the longest a 429's Retry-After is honoured.
    """

    failures: int = 3
    lease: float = 1.0
    lease_max: float = 30.0
    trial: float = 5.0
    ramp: float = 5.0
    load: float = 1.0
    load_max: float = 60.0


@dataclass(slots=True)
class _Record:
    ill: int = 0
    broke: int = 0
    marks: int = 0
    marked_until: float = 0.0
    loaded_until: float = 0.0
    loaded_from: int = 0
    trial_until: float = 0.0
    recovered: float = float("-inf")
    proven: int = 0
    why: str = ""


_TURNS: Final = (0, 0, 2, 3)
_WELL: Final = (Standing.GOOD, 1.0, 0.0)


class HealthBook:
    """What is known of every replica, by its key (`endpoint` or `endpoint/replica`).

    A replica with nothing against it has no record, so that asking costs a look-up.
    """

    __slots__ = ("_records", "_settings")

    def __init__(self, settings: HealthSettings | None = None) -> None:
        self._settings = settings or HealthSettings()
        self._records: dict[str, _Record] = {}

    def observe(
        self, key: str, sign: Sign, now: float, retry_after: float | None = None, why: str = "",
        tokens: int = 0,
    ) -> None:  # fmt: skip
        """Learn from one attempt. `retry_after` in seconds, for `Sign.LOAD`; `why`: in a word, for
        who looks at its mark; `tokens` of the prompt, where a quota may have been too small for
        it, 0 where the refusal is for all."""
        if sign is Sign.CLIENT:
            self._end_trial(key)
            return
        record = self._records.get(key)
        if sign is Sign.OK or sign is Sign.WHOLE:
            if record is not None and sign is Sign.OK:
                self._recover(key, record, now)
            elif record is not None:
                record.broke = 0
            return
        if record is None:
            record = self._records[key] = _Record()
        record.why = why
        if sign is Sign.LOAD:
            self._load(record, now, retry_after, tokens)
        elif sign is Sign.BROKE:
            self._broke(record, now)
        else:
            self._ill(record, sign, now)

    def standing(self, key: str, now: float, tokens: int = 0) -> Standing:
        """How the replica stands; one that nothing is known of is good.

        Args:
            tokens: of the prompt that asks, since fewer may have room where more had none; 0: any.
        """
        record = self._records.get(key)
        if record is None:
            return Standing.GOOD
        if now < record.marked_until or now < record.trial_until:
            return Standing.MARKED
        if now < record.loaded_until and not 0 < tokens < record.loaded_from:
            return Standing.LOADED  # also before a trial, which may have been told so
        return Standing.TRIAL if record.marks else Standing.GOOD

    def state(self, key: str, now: float, tokens: int = 0) -> tuple[Standing, float, float]:
        """`standing`, `share` and `retry_in` of a replica; most have nothing against them."""
        record = self._records.get(key)
        if record is None:
            return _WELL
        if (
            not record.marks
            and now >= record.marked_until
            and now >= record.trial_until
            and now >= record.loaded_until
            and (now - record.recovered) / self._settings.ramp >= 1
        ):
            if not (record.ill or record.broke):
                del self._records[key]
            return _WELL
        return self.standing(key, now, tokens), self.share(key, now), self.retry_in(key, now)

    def calm(self, now: float) -> bool:
        """Whether nothing is held against any replica now."""
        if not self._records:
            return True
        return all([self.state(key, now) is _WELL for key in tuple(self._records)])

    def start(self, key: str, now: float) -> None:
        """An attempt begins: a replica on trial lets no other through until it ends."""
        record = self._records.get(key)
        if record is not None and record.marks and now >= record.marked_until:
            record.trial_until = now + self._settings.trial

    def share(self, key: str, now: float) -> float:
        """The share of its usual load a replica should get, 0.1 to 1, after a recovery."""
        record = self._records.get(key)
        if record is None:
            return 1.0
        age = (now - record.recovered) / self._settings.ramp
        return 1.0 if age >= 1 else max(0.1, age)

    def window(self, key: str, now: float) -> float:
        """The requests a replica may have whose answers have not begun: one on trial, then one
        more for each that did begin, until it is at its full load; else no bound.

        Of the waiting each finds it idle: together they would bury it before it tells so.
        """
        record = self._records.get(key)
        if record is None:
            return inf
        if record.marks:
            return 1
        ramps = now - record.recovered < self._settings.ramp
        return 1 + record.proven if ramps else inf

    def retry_in(self, key: str, now: float) -> float:
        """Seconds until the replica's mark or load lease ends; 0 when it may be tried."""
        record = self._records.get(key)
        if record is None:
            return 0.0
        return max(0.0, record.marked_until - now, record.loaded_until - now)

    def mark(self, key: str, now: float, lease: float) -> None:
        """A mark from outside the request path, as a failed probe; it ends like any other."""
        record = self._records.setdefault(key, _Record())
        record.marks = max(1, record.marks)
        record.marked_until = max(record.marked_until, now + lease)

    def ease(self, key: str, now: float, lease: float) -> None:
        """What spoke for a long mark has gone: it lasts no longer than this."""
        record = self._records.get(key)
        if record is not None:
            record.marked_until = min(record.marked_until, now + lease)

    def forget(self, keep: frozenset[str]) -> None:
        """Drop what is known of replicas that are no longer configured."""
        for key in self._records.keys() - keep:
            del self._records[key]

    def marked(self, now: float) -> tuple[str, ...]:
        """The keys under a mark, in order."""
        return tuple(sorted(k for k, r in self._records.items() if now < r.marked_until))

    def why(self, key: str) -> str:
        """What went wrong last at a replica, in a word; empty where that is not known."""
        record = self._records.get(key)
        return "" if record is None else record.why

    # ----------------------------------------------------------------------------------

    def _recover(self, key: str, record: _Record, now: float) -> None:
        if record.marks:
            record.recovered, record.proven = now, 0
            self._hasten(key, now)
        record.proven += 1
        record.ill = record.marks = 0
        record.marked_until = record.trial_until = 0.0

    def _hasten(self, key: str, now: float) -> None:
        """One of a place's replicas is well again: its others are tried now, not by and by.

        Else the first to come back gets all that belongs there, until their marks end too.
        """
        endpoint, slash, _ = key.partition("/")
        for other, record in self._records.items() if slash else ():
            if record.marked_until > now and other.startswith(endpoint + slash):
                record.marked_until = now

    def _load(self, record: _Record, now: float, retry_after: float | None, tokens: int) -> None:
        least = tokens // 2
        record.loaded_from = min(record.loaded_from, least) if now < record.loaded_until else least
        record.trial_until = 0.0
        wait = self._settings.load if retry_after is None else retry_after
        record.loaded_until = max(record.loaded_until, now + min(wait, self._settings.load_max))

    def _ill(self, record: _Record, sign: Sign, now: float) -> None:
        if now < record.marked_until:
            return  # sent before the mark: a burst that fails together is one failure
        settings = self._settings
        record.ill += 1
        failed_trial = record.marks > 0
        record.trial_until = 0.0
        if sign is Sign.DEAD or failed_trial or record.ill >= settings.failures:
            lease = min(settings.lease * 2 ** min(record.marks, 16), settings.lease_max)
            record.marked_until = now + lease
            record.marks += 1
            record.ill = 0

    def _broke(self, record: _Record, now: float) -> None:
        if now < record.marked_until:
            return
        settings = self._settings
        record.broke += 1
        more = record.broke - settings.failures
        if more >= 0:
            lease = min(settings.lease * 2 ** min(more, 16), settings.lease_max)
            record.marked_until = now + lease
            record.marks += 1

    def _end_trial(self, key: str) -> None:
        record = self._records.get(key)
        if record is not None:
            record.trial_until = 0.0
