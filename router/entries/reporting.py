"""A report for an auditor, over HTTP: made in a process of its own, from the log's folder.

Verifying a log takes minutes of CPU, which requests must not wait for. So the command that an
auditor would use is run beside the router, at low priority, one at a time, for a bounded time.

1. the auditor's key says which tenant and from where; the request only which period and form;
2. the reading is in the log before anything is read;
3. the command writes its report to a private folder, which is gone when the answer is made.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from router.auth import EVERY
from router.entries.auditing import Auditor, recorded
from router.errors import RequestError
from router.live import Live
from router.reports.period import Period, PeriodRefused, period, zone

Form = Literal["html", "pdf", "json"]
LONGEST: Final = 600.0
TYPES: Final[Mapping[Form, str]] = MappingProxyType(
    {"html": "text/html; charset=utf-8", "pdf": "application/pdf", "json": "application/json"}
)
# `-P`: nothing is imported from the folder it runs in.
_COMMAND: Final = (
    sys.executable, "-P", "-c", "from router.cli.main import main; main(prog_name='domicile')",
    "audit", "report",
)  # fmt: skip
Run = Callable[[Sequence[str], Path], Awaitable[str]]


@dataclass(slots=True)
class Reporting:
    """Makes reports, one at a time."""

    live: Live
    run: Run
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def folder(self) -> Path:
        """The folder of this router's logs, its workers' too."""
        return self.live.log.folder.path.parent

    async def report(self, who: Auditor, text: str, where: str, form: Form) -> bytes:
        """The report of a period in a form.

        Raises:
            RequestError: the period can't be read, another report is being made, the reading can't
                be recorded, or nothing came of it.
        """
        asked = _period(text, where)
        if self.turn.locked():
            message = "another report is being made here; try again later"
            raise RequestError("overloaded", message, retry_after=30.0)
        async with self.turn:
            told = {"since": asked.since, "until": asked.until}
            await recorded(self.live, who, "report", told)
            with tempfile.TemporaryDirectory(prefix="domicile-report-") as name:
                out = Path(name) / f"report.{form}"
                said = await self._ran(who, text, where, out)
                if not out.exists():
                    raise RequestError("internal", f"no report could be made: {said}")
                return await asyncio.to_thread(out.read_bytes)

    async def _ran(self, who: Auditor, text: str, where: str, out: Path) -> str:
        # As `--name=value`, so that no value is read as another option.
        options = [f"--period={text}", f"--time-zone={where}", f"--out={out}", "--despite-findings",
                   f"--view-from={who.principal.view_from or ''}",
                   *(f"--anchor-told={told}" for told in self._anchors())]  # fmt: skip
        if who.principal.tenant != EVERY:
            options.append(f"--tenant={who.principal.tenant}")
        # Where the log lies is the operator's business: the report names its folder only.
        place = self.folder.absolute()
        try:
            return await self.run([*_COMMAND, *options, "--", place.name], place.parent)
        except TimeoutError:
            message = f"it took more than {LONGEST:.0f} s; use `domicile audit report` on a copy"
            raise RequestError("deadline", message) from None

    def _anchors(self) -> Iterator[str]:
        """What this router's anchors hold, and since when, in words."""
        for one in [] if self.live.anchors is None else self.live.anchors.health():
            held = "nothing yet" if one.age is None else f"{one.size} lines, {one.age:.0f} s ago"
            yield f"{one.name} ({one.state}) took {held}"


async def run(command: Sequence[str], place: Path) -> str:
    """Run a command in a folder, at low priority; its last line on standard error.

    It ends when the caller is cancelled.

    Raises:
        TimeoutError: it took longer than `LONGEST`.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE, env=dict(os.environ), cwd=place,
    )  # fmt: skip
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, 10)
        async with asyncio.timeout(LONGEST):
            _, said = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"


def _period(text: str, where: str) -> Period:
    try:
        return period(text, zone(where))
    except PeriodRefused as error:
        raise RequestError("invalid_request", str(error)) from None
