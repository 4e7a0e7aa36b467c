"""Is the log whole: what verification said, how old the anchors are, which processes there were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from router.audit.verdict import LogVerdict, Verdict
from router.reports.document import Line, Section, Table
from router.reports.told import readable
from router.reports.view import Made

MOST: Final = 100


def alarm(verdict: Verdict) -> str:
    """What is said on top of everything when the log does not verify; else nothing."""
    found = len(verdict.all_findings)
    if not found:
        return ""
    return (
        f"THIS LOG DOES NOT VERIFY: {found} findings, listed under “Is the log whole?”. Nothing "
        "here is evidence. Entries after the first fault of a log that can't be followed are not "
        "counted."
    )


def whole(made: Made) -> Section:
    """The section."""
    verdict = made.verdict
    # What a finding says in detail may name requests and endpoints of other tenants.
    own = made.scope.tenant is not None
    findings = [
        Line((one.fault, readable(str(one.place)), _FOR_OTHERS if own else readable(one.detail)))
        for one in verdict.all_findings[:MOST]
    ]
    every = [*verdict.notices, *(n for log in verdict.logs for n in log.notices)]
    notices = [one for one in every if not one.startswith("gap:")]  # they stand in the period
    notices += [f"snapshot {d[:16]}: {why}" for d, why in sorted(made.facts.missing.items())]
    certified = sorted(made.gathered.certified.items())
    keys = [Line((readable(log), strength, count)) for (log, strength), count in certified]
    tables = [
        Table("Logs", _LOGS, [_log(made, one) for one in verdict.logs], "There is no log."),
        Table("Findings", ("fault", "place", "detail"), findings, "None."),
        Table("Silences in the period", ("log", "from", "to", "seconds"), list(_silent(made))),
        Table("Keys certified in the period, each for a day", ("log", "lasting key", "keys"), keys),
        Table("Processes", ("log", "event", "time", "lines"), list(_processes(made))),
        Table("Notices", ("notice",), [Line((readable(one),)) for one in notices[:MOST]], "None."),
    ]
    return Section("whole", "Is the log whole?", list(_said(made, notices)), (), tables)


_FOR_OTHERS: Final = "told to who may read every tenant's records"
_LOGS: Final = (
    "log", "lines", "status", "lines below an anchor", "anchored until", "age of the anchor, s",
    "newest entry",
)  # fmt: skip


def _said(made: Made, notices: list[str]) -> Iterator[str]:
    absent = made.verdict.absent
    lines = "line that is here" if absent else "line"
    yield (
        f"Every {lines} of every log was read and checked against its signed heads, and all "
        "figures were counted in the same pass."
    )
    if absent:
        yield (
            f"{absent:,} lines are not here: the log says that they were sealed and released. "
            "Only their hashes were checked. The requests in them are in no figure, and that they "
            "are where the log says was not looked at: a report of all is made of a folder that "
            "`audit restore` brings back."
        )
    if all(log.anchored is None for log in made.verdict.logs):
        yield (
            "No checkpoint or receipt held elsewhere was given: nothing contradicts itself, but "
            "whoever holds the signing key could have written it all anew."
        )
    for told in made.anchors:
        yield f"The router says of its anchors: {readable(told)}. That is its word; ask the anchor."
    counts = {
        "findings": len(made.verdict.all_findings),
        "notices": len(notices),
        "silences": len(made.gathered.silences),
    }
    for what, count in counts.items():
        if count > MOST:
            yield f"Only {MOST} of {count:,} {what} are listed."


def _log(made: Made, log: LogVerdict) -> Line:
    period = made.scope.period
    held = made.gathered.covered.get(log.log)
    newest = made.gathered.newest.get(log.log)
    until, age = "not anchored", ""
    if held is not None and log.anchored:
        until = period.shown(held.newest)
        age = f"{max(0, round(made.made_at - held.newest / 1e6)):,}"
    return Line((
        readable(log.log), log.size, "; ".join(log.statuses), log.anchored or 0, until, age,
        "none" if newest is None else period.shown(newest),
    ))  # fmt: skip


def _silent(made: Made) -> Iterator[Line]:
    period = made.scope.period
    longest = sorted(made.gathered.silences, key=lambda one: one.since - one.until)[:MOST]
    for one in sorted(longest, key=lambda one: (one.since, one.log)):
        seconds = (one.until - one.since) // 1_000_000
        yield Line((readable(one.log), period.shown(one.since), period.shown(one.until), seconds))


def _processes(made: Made) -> Iterator[Line]:
    """The newest starts and stops of the roster; two starts without a stop between are a crash."""
    running: dict[str, bool] = {}
    lines = []
    for one in made.roster:
        crashed = one.event == "start" and running.get(one.log, False)
        running[one.log] = one.event == "start"
        event = "start after a crash" if crashed else one.event
        lines.append(Line((readable(one.log), event, made.scope.period.shown(one.time), one.size)))
    for log in sorted(log for log, runs in running.items() if runs):
        newest = made.gathered.newest.get(log)
        shown = "nothing" if newest is None else made.scope.period.shown(newest)
        lines.append(Line((readable(log), "no stop: it runs, or was lost after", shown, "")))
    yield from lines[-MOST:]
