"""A folder of CloudTrail files against a boundary: where Bedrock calls actually ran.

The region a record tells decides. A call whose record tells none ran inside its footprint:
in one region where the footprint has only one, else nobody can say where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from regions.boundaries import boundary
from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.question import Verdict
from regions.model import Endpoint, Footprint
from regions.places import Boundary, PlaceError, Region
from router.assess.calls import Calls, Group
from router.assess.records import Unreadable, log_files, records
from router.assess.verdicts import exit_code
from router.config import ConfigError

RECORDED = "record"
STREAMED = "stream event alone"
FOOTPRINT = "footprint"
UNKNOWN = "nothing"


@dataclass(frozen=True, slots=True)
class Row:
    """Calls alike, judged. `basis` says how the region is known, `region` is an id or empty."""

    source: str
    model: str
    region: str
    basis: str
    calls: int
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything a folder showed."""

    folder: Path
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    files: int
    events: int
    repeated: int
    refused: int
    unreadable: int

    @property
    def calls(self) -> int:
        """Calls that ran: stream events alone are none."""
        return sum(row.calls for row in self.rows if row.basis != STREAMED)

    @property
    def exit_code(self) -> int:
        """0 all inside, 3 something outside, 4 something unknown, unreadable or nothing found."""
        gaps = [Verdict.UNKNOWN] if self.unreadable else []
        return exit_code([*(row.verdict for row in self.rows), *gaps])

    def counts(self) -> Mapping[str, int]:
        """Files, events, and what was left out of the calls."""
        return {
            "files": self.files,
            "events": self.events,
            "repeated": self.repeated,
            "refused": self.refused,
            "unreadable": self.unreadable,
        }


def assess_folder(folder: Path, catalog: Catalog, within: str, at: float) -> Trail:
    """Count and judge the calls in a folder.

    Raises:
        ConfigError: no such folder. BoundaryError: a boundary that can't be read.
    """
    limit = boundary(within, catalog.atlas)
    if not folder.is_dir():
        raise ConfigError(f"`{folder}` is no folder; give the one that holds CloudTrail's files")
    with closing(Calls()) as calls:
        files, faults = _take(folder, calls)
        judge = _Judge(catalog, limit, at)
        rows = [judge.row(group) for group in calls.groups()]
        rows += [judge.orphan(group) for group in calls.orphans()]
        return Trail(
            folder,
            tuple(rows),
            tuple(_notes(calls, rows, faults)),
            files,
            calls.events,
            calls.repeated,
            calls.refused,
            len(faults) + calls.unread,
        )


def _take(folder: Path, calls: Calls) -> tuple[int, list[Unreadable]]:
    files, faults = 0, []
    for path in log_files(folder):
        files += 1
        for record in records(path):
            if isinstance(record, Unreadable):
                faults.append(record)
            else:
                calls.add(record)
    return files, faults


@dataclass(frozen=True, slots=True)
class _Judge:
    catalog: Catalog
    limit: Boundary
    at: float

    def row(self, group: Group) -> Row:
        """One group of calls."""
        if group.region:
            return self._in_region(group, RECORDED)
        found = self._footprint(group)
        places = list(found.process)
        if len(places) == 1 and isinstance(places[0], Region):
            verdict, reason = self._stands(places[0].id)
            return _row(group, places[0].id, FOOTPRINT, verdict, reason)
        ids = ", ".join(found.process.ids)
        if found.process.is_known and self.limit.contains(found.process):
            return _row(group, "", FOOTPRINT, Verdict.INSIDE, f"one of {ids}")
        told = f"no record tells the region; it may be any of {ids}"
        missing = "; ".join(found.missing) if not found.process.is_known else told
        return _row(group, "", UNKNOWN, Verdict.UNKNOWN, missing)

    def orphan(self, group: Group) -> Row:
        """A stream's second event, whose call is in none of the files."""
        return self._in_region(group, STREAMED)

    def _in_region(self, group: Group, basis: str) -> Row:
        region = f"aws:{group.region}" if group.region else ""
        verdict, reason = self._stands(region)
        return _row(group, region, basis, verdict, reason)

    def _stands(self, region_id: str) -> tuple[Verdict, str]:
        try:
            region = self.catalog.atlas.region(region_id)
            place = self.catalog.atlas.place(region_id)
        except PlaceError:
            return Verdict.UNKNOWN, f"region `{region_id}` is not in the catalog"
        if self.limit.contains(place):
            return Verdict.INSIDE, ""
        return Verdict.OUTSIDE, f"{region_id} is in {region.country}"

    def _footprint(self, group: Group) -> Footprint:
        kind = "bedrock-mantle" if group.mantle else "bedrock"
        source = f"aws:{group.source}" if group.source else None
        model = group.model or "?"
        endpoint = Endpoint(f"{kind}:{model}", kind, "aws", model, source)
        return footprint(endpoint, PLAIN_CALL, self.catalog, self.at)


def _row(group: Group, region: str, basis: str, verdict: Verdict, reason: str) -> Row:
    return Row(group.source, group.model, region, basis, group.calls, verdict, reason)


def _notes(calls: Calls, rows: list[Row], faults: list[Unreadable]) -> Iterator[str]:
    yield from map(str, faults)
    if calls.unread:
        yield f"{calls.unread} inference events have a shape that is not known"
    if not rows:
        yield "no Bedrock inference call is in these files: nothing is known"
    if any(row.basis == STREAMED for row in rows):
        yield "some streams show only their second event: the files don't cover their calls"
    # A trap that no record can show: their absence looks the same as no calls at all.
    yield (
        "calls through bedrock-mantle are data events, off by default: none here means "
        "nothing unless the trail logs them"
    )
