"""Safe reload: a change on disk is checked as a whole before anything of it serves.

1. the digest over all files differs from the serving one's, and stayed the same for two looks, so
   that nothing half-written is taken (SIGHUP skips the wait);
2. everything `domicile check` does: load, lint, proofs and cases; what lint found wrong with the
   serving one already doesn't stop a new secret from being taken up;
3. nothing in it needs a new process; the old compliance keys signed when the keys change;
4. the files are still the ones that were read;
5. the swap (see `router.settings.swap`).

When any of it fails the old snapshot serves on, and status, metrics and log say why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from policies.lint import lint
from policies.loader import Loaded
from router.audit.entry import Entry, Json
from router.audit.errors import AuditError
from router.config import Config, ConfigError
from router.live import Files
from router.narrowing.authority import NAME, Authority, Beside
from router.settings.checking import Checked, Proven, check, ends, stores, unread_variables
from router.settings.reload_files import (
    fingerprint,
    needs_restart,
    read_at_start,
    signing_key,
)
from router.snapshot import Snapshot

SHOWN: Final = 5
MAX_TEXT: Final = 300
RESTART: Final = "restart"


class Refused(Exception):
    """The files on disk may not serve; every reason."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = tuple(reasons)


@dataclass(frozen=True, slots=True)
class Source:
    """Where a snapshot came from: the configuration file, the variables it may refer to, and the
    digest over its files when it was loaded."""

    path: Path
    environment: Mapping[str, str]
    active: str
    watched: bool = True
    """Whether this process looks at the files itself; a worker is told by its supervisor."""


class Recording(Protocol):
    """A region log."""

    def record(self, entry: Entry) -> Awaitable[object]:
        """Write an entry. Raises AuditError."""
        ...


class Counting(Protocol):
    """What counts reloads."""

    def count(self, name: str, labels: tuple[str, ...] = (), by: float = 1) -> None:
        """Add to a counter."""
        ...


class Served(Protocol):
    """What serves a snapshot: one router, or the workers of a supervisor."""

    @property
    def snapshot(self) -> Snapshot:
        """The one in force."""
        ...

    @property
    def files(self) -> Files:
        """What is known of the files."""
        ...

    @property
    def notes(self) -> dict[str, str]:
        """What is told in the status."""
        ...

    @property
    def log(self) -> Recording:
        """Where a refusal is recorded."""
        ...

    @property
    def metrics(self) -> Counting:
        """Where reloads are counted."""
        ...

    def stamp(self) -> float:
        """The time to write down, epoch seconds."""
        ...

    def now(self) -> float:
        """The time to judge by, epoch seconds."""
        ...


class Taking(Protocol):
    """Puts a snapshot in force."""

    async def reload(self, base: Snapshot) -> None:
        """All of it, or raise AuditError or Refused and change nothing."""
        ...


def _check(source: Source, serving: Snapshot, now: float, proven: Proven) -> Checked:
    """2. What is wrong with the files and is not wrong with what serves."""
    environment = {
        name: value
        for name, value in source.environment.items()
        if not any(unread_variables({name: value}, source.path))  # told at the start, by `check`
    }
    found = check(source.path, environment, now, proven)
    if not found.problems or found.snapshot is None:
        return found
    loaded = Loaded(serving.policy, serving.catalog)
    known = {(one.code, one.message) for one in lint(loaded, now, stores(serving.config))}
    # What ended by itself must not keep a new secret, or another endpoint's authority, from use.
    same = [name for name, tls in found.snapshot.trust.items() if tls == serving.trust.get(name)]
    told = ends(found.snapshot, same, source.path.parent, now)
    known |= {(one.code, one.message) for one in told}
    # By what is wrong, not by its line: that moves when anything above it is written.
    before = {one.problem for one in found.findings if (one.code, one.message) in known}
    return replace(found, problems=tuple(one for one in found.problems if one not in before))


class Reloader:
    """Looks at the files of one router; `look` is called every few seconds and on SIGHUP.

    `loaded` is called after each swap; `kept` holds the compliance keys beside the logs.
    """

    def __init__(
        self,
        live: Served,
        swap: Taking,
        source: Source,
        loaded: Callable[[], Awaitable[None]] | None = None,
        kept: Beside | None = None,
    ) -> None:
        self._live = live
        self._loaded = loaded
        self._swap = swap
        self._source = source
        self._turn = asyncio.Lock()
        self._asked: asyncio.Event | None = None
        self._proven = Proven()
        self._pending = ""
        self._judged = ""
        self._authority = Authority.of(live.snapshot.config, source.path.parent)
        self._kept = kept
        self._signs = signing_key(live.snapshot.config, source.path.parent)
        self._began = read_at_start(live.snapshot.config, source.path.parent)
        live.files.active = live.files.on_disk = source.active

    async def look(self, now: bool = False) -> None:
        """One look; `now` takes up a change at once, and tries again what was refused.

        Of those who ask for that while one of them waits for its turn each has its look: one for
        all. A look for each of a storm of signals checked the same files for minutes.
        """
        if now and self._asked is not None:
            await self._asked.wait()
            return
        ended = asyncio.Event()
        if now:
            self._asked = ended
        try:
            async with self._turn:
                if now:
                    self._asked = None  # what changes from here on is another look's
                await self._look(now)
        finally:
            ended.set()
            if self._asked is ended:
                self._asked = None

    async def _look(self, now: bool) -> None:
        files = self._live.files
        found = await asyncio.to_thread(fingerprint, self._source.path)
        files.on_disk, files.looked_at = found, self._live.stamp()
        if found == files.active:
            self._pending = self._judged = ""
            self._say("")
        elif now or (found == self._pending and found != self._judged):
            self._judged = found
            await self._try(found)
        else:
            self._pending = found

    async def _try(self, found: str) -> None:
        try:
            snapshot = await self._checked(found)
            await self._swap.reload(snapshot)
        except Refused as refused:
            await self._refuse(found, refused.reasons)
            return
        except AuditError as error:
            await self._refuse(found, [f"the region log can't take it: {error}"])
            return
        self._live.files.active = found
        await self._now_sign(Authority.of(snapshot.config, self._source.path.parent))
        self._say("")
        await self._tell_of_secrets(snapshot.config)
        self._live.metrics.count("domicile_reloads_total", ("loaded",))
        if self._loaded is not None:
            await self._loaded()

    async def _checked(self, found: str) -> Snapshot:
        """2 to 4.

        Raises:
            Refused: with every reason.
        """
        source, serving = self._source, self._live.snapshot
        try:
            checked = await asyncio.to_thread(
                _check, source, serving, self._live.now(), self._proven
            )
        except Exception as error:
            raise Refused([f"it can't be checked: {type(error).__name__}"]) from error
        snapshot = checked.snapshot
        if checked.problems or snapshot is None:
            raise Refused(checked.problems)
        fixed = needs_restart(serving.config, snapshot.config)
        if signing_key(snapshot.config, source.path.parent) != self._signs:
            fixed.append("log.signing_key")  # the same name, with another key behind it
        reasons = [f"`{name}` needs a new process: restart to change it" for name in fixed]
        forbidden = self._authority.forbids(snapshot.config, source.path.parent)
        reasons += [forbidden] if forbidden is not None else []
        if await asyncio.to_thread(fingerprint, source.path) != found:
            self._judged = ""
            reasons.append("the files changed while they were read; they are read again")
        if reasons:
            raise Refused(reasons)
        return snapshot

    async def _now_sign(self, authority: Authority) -> None:
        """Other keys are in force from now; kept beside the logs for the next start."""
        if authority == self._authority:
            return
        self._authority = authority
        if self._kept is None:
            return
        try:
            await asyncio.to_thread(self._kept.keep, authority)
            self._live.notes.pop(NAME, None)
        except ConfigError as error:
            self._live.notes[NAME] = str(error)

    async def _tell_of_secrets(self, config: Config) -> None:
        """All of the files was taken up but these: whoever rotated one believes otherwise."""
        now = await asyncio.to_thread(read_at_start, config, self._source.path.parent)
        other = [f"`{name}`" for name, digest in self._began.items() if now.get(name) != digest]
        self._live.notes.pop(RESTART, None)
        if other:
            self._live.notes[RESTART] = f"needed to use another secret of {', '.join(other)}"

    async def _refuse(self, found: str, reasons: Sequence[str]) -> None:
        told = [one[:MAX_TEXT] for one in reasons]
        self._say("; ".join(told[:SHOWN]))
        self._live.metrics.count("domicile_reloads_total", ("refused",))
        body: dict[str, Json] = {"event": "reload_refused", "files": found, "reasons": told[:50]}
        try:
            await self._live.log.record(Entry("administration", "", self._live.stamp(), body))
        except AuditError:
            self._live.metrics.count("domicile_log_failures_total")

    def _say(self, refused: str) -> None:
        self._live.files.refused = refused
        if refused:
            self._live.notes["reload"] = f"the files on disk are not served: {refused}"
        else:
            self._live.notes.pop("reload", None)
