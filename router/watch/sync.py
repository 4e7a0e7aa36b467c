"""`domicile regions sync`: everything AWS says now, in every source region, against what we hold.

1. each source region's list of profiles, against the catalog (accepted drift laid over it);
2. each endpoint of Bedrock in use: its profile, guardrail and retention, against its footprint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint
from router.narrowing.accepted import FOLDER
from router.narrowing.drifted import Shown, covers, shown
from router.providers.aws import region_of
from router.providers.base import AwsKeys
from router.settings.credentials import INSTANCE_ROLE
from router.snapshot import Snapshot
from router.watch.bedrock_reader import Access, BedrockReader, NotRead, control_url
from router.watch.compared import Change, compare
from router.watch.drift import KIND, see
from router.watch.seen import regions_of, seen_footprint


@dataclass(frozen=True, slots=True)
class EndpointChange:
    """An endpoint that runs otherwise than its footprint says; `widened` when beyond it."""

    endpoint: str
    widened: bool
    expected: Shown
    seen: Shown


@dataclass(frozen=True, slots=True)
class Report:
    """What was found; `unread` are the questions that nobody answered."""

    sources: tuple[str, ...]
    changes: tuple[Change, ...]
    endpoints: tuple[EndpointChange, ...]
    unread: tuple[str, ...]

    @property
    def drifted(self) -> bool:
        """Whether anything differs."""
        return bool(self.changes or self.endpoints)


def in_use(snapshot: Snapshot) -> list[Endpoint]:
    """The endpoints of Bedrock."""
    return [one for one in snapshot.policy.endpoints.values() if one.kind == KIND]


def accesses(snapshot: Snapshot, role: AwsKeys | None) -> Mapping[str, Access]:
    """Source region → how it is asked: with the first credential an endpoint there has."""
    found: dict[str, Access] = {}
    for endpoint in in_use(snapshot):
        target = next(iter(snapshot.targets[endpoint.name].values()))
        keys = role if endpoint.credentials == INSTANCE_ROLE else target.credential
        if keys is not None:
            found.setdefault(region_of(endpoint.source), Access(keys, control_url(endpoint.urls)))
    return found


async def sync(
    snapshot: Snapshot,
    reader: BedrockReader,
    sources: Iterable[str],
    role: AwsKeys | None,
    now: float,
) -> Report:
    """Ask everything and compare.

    Args:
        sources: AWS regions to ask; without any, the source regions of the endpoints in use.
        role: the instance role's keys, for endpoints that use it.
        now: seconds since the epoch.
    """
    known = accesses(snapshot, role)
    regions = tuple(dict.fromkeys(one.removeprefix("aws:") for one in sources)) or tuple(known)
    changes: list[Change] = []
    unread: list[str] = []
    anybody = next(iter(known.values()), None)
    for region in regions:
        access = known.get(region, anybody)
        try:
            if access is None:
                raise NotRead(f"{region}: no endpoint has a credential to ask with")
            listed = await reader.profiles(region, access)
            seen = {name: regions_of(arns) for name, arns in listed.items()}
            changes += compare(region, seen, snapshot.catalog.bedrock)
        except NotRead as error:
            unread.append(str(error))
    endpoints = await _endpoints(snapshot, reader, known, now, unread)
    return Report(regions, tuple(changes), tuple(endpoints), tuple(unread))


async def _endpoints(
    snapshot: Snapshot,
    reader: BedrockReader,
    known: Mapping[str, Access],
    now: float,
    unread: list[str],
) -> list[EndpointChange]:
    """2."""
    found = []
    for endpoint in in_use(snapshot):
        access = known.get(region_of(endpoint.source))
        try:
            if access is None:
                raise NotRead("no credential to ask with")
            seen = await see(endpoint, snapshot, access, reader)
        except NotRead as error:
            unread.append(f"endpoint `{endpoint.name}`: {error}")
            continue
        own = footprint(endpoint, PLAIN_CALL, snapshot.catalog, now)
        real = seen_footprint(endpoint, snapshot.catalog, seen, now)
        if shown(own) != shown(real):
            widened = not covers(own, real)
            found.append(EndpointChange(endpoint.name, widened, shown(own), shown(real)))
    return found


def draft(report: Report, day: str) -> str:
    """An acceptance of the members as they are, for `accepted-drift/`; compliance signs it.

    A profile with a member that names no region can't be accepted, and is left out.
    """
    rows = [
        f"  - profile: {one.profile}\n    source: {one.source}\n"
        f"    members: {' '.join(one.members)}\n    checked_on: {day}\n"
        f'    because: "write why this is in order"\n'
        for one in report.changes
        if one.kind != "gone" and "any" not in one.members and one.members
        and not one.profile.startswith("global.")
    ]  # fmt: skip
    head = f"# Into {FOLDER}/ beside the baseline; remove what is not accepted, then sign.\n"
    listed = "accepted:\n" + "".join(rows) if rows else "accepted: []\n"
    return f"{head}version: 1\n{listed}"
