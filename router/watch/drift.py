"""The drift check: do the endpoints in use run where their footprints say?

Every endpoint of Bedrock is asked about, in its own source region with its own credential. One
that is found to run beyond its footprint is put under a veto at once for every plan made before,
then into the snapshot's facts, so that no boundary it left is served by it and the log names the
places it may really run in. That stays, over restarts too, until the baseline says otherwise: a
signed acceptance of the members as they are (`router.narrowing.accepted`), or, without compliance
keys, an operator's own, which only ends the alarm. One that runs in fewer places is told of, no
more.

1. ask; what can't be read is shown, and changes nothing;
2. compare with the footprint in force;
3. narrow: veto board and snapshot; 4. the state file; 5. log entries and metric.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.bedrock import Form, read_identifier
from regions.footprints.joining import joined
from regions.model import Endpoint, Footprint
from regions.places import Region
from router.audit.entry import Entry, Json
from router.live import Live
from router.narrowing.drifted import Shown, covers, read, shown
from router.narrowing.veto_file import Drift, VetoFile
from router.providers.aws import region_of
from router.settings.credentials import INSTANCE_ROLE
from router.settings.swap import Swap
from router.snapshot import Snapshot
from router.watch.bedrock_reader import Access, BedrockReader, NotRead, control_url
from router.watch.seen import Seen, asks_for, seen_footprint

KIND: Final = "bedrock"


@dataclass(frozen=True, slots=True)
class Found:
    """An endpoint, its footprint as configured, and the one that was seen."""

    endpoint: Endpoint
    own: Footprint
    seen: Footprint


@dataclass(slots=True)
class DriftWatch:
    """Checks all endpoints of one router; `check` is one round."""

    live: Live
    swap: Swap
    file: VetoFile
    reader: BedrockReader
    newest: dict[str, Shown] = field(default_factory=dict)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def resume(self) -> None:
        """Put in force what had drifted before the restart.

        Raises:
            AuditError: the log can't take it.
        """
        atlas = self.swap.base.policy.atlas
        written = self.file.state.drifts
        if written:
            await self.swap.drift({one.endpoint: read(_read(one), atlas) for one in written})

    async def check(self) -> None:
        """One round over the endpoints in use.

        Raises:
            AuditError: what was found can't be recorded; the vetoes stand.
            NotRead: some question had no answer; the rest of the round was done.
        """
        async with self.turn:
            unread = await self._check()
            await self._settle()
        if unread:
            raise NotRead("; ".join(unread))

    async def _check(self) -> list[str]:
        base = self.swap.base
        unread: list[str] = []
        for endpoint in base.policy.endpoints.values():
            if endpoint.kind != KIND:
                continue
            try:
                found = await self._look(endpoint, base)
            except NotRead as error:
                unread.append(f"{endpoint.name}: {error}")
                continue
            if base is not self.swap.base:
                break  # the files changed meanwhile: the next round judges by the new ones
            self.newest[endpoint.name] = shown(found.seen)
            await self._judge(found)
        self._note("drift", unread)
        return unread

    async def _look(self, endpoint: Endpoint, base: Snapshot) -> Found:
        """1."""
        now = self.live.now()
        own = footprint(endpoint, PLAIN_CALL, base.catalog, now)
        seen = await see(endpoint, base, self._access(endpoint, base), self.reader)
        return Found(endpoint, own, seen_footprint(endpoint, base.catalog, seen, now))

    def _access(self, endpoint: Endpoint, base: Snapshot) -> Access:
        target = next(iter(base.targets[endpoint.name].values()))
        found = target.credential
        if endpoint.credentials == INSTANCE_ROLE:
            found = self.live.roles.keys(self.live.wall_time())
        if found is None:
            raise NotRead("no credential to ask with")
        return Access(found, control_url(endpoint.urls))

    async def _judge(self, found: Found) -> None:
        """2."""
        known = self.swap.found.get(found.endpoint.name)
        force = found.own if known is None else joined(found.own, known)
        # What is unknown already is eligible for nothing: there is nothing to narrow.
        if force.process.is_known and not covers(force, found.seen):
            await self._drifted(found, known)

    async def settle(self) -> None:
        """End what the baseline in force settles: after a reload, and after every round.

        Raises:
            AuditError: it can't be recorded; it stays as it was.
        """
        async with self.turn:
            await self._settle()

    async def _settle(self) -> None:
        base = self.swap.base
        for name, known in tuple(self.swap.found.items()):
            endpoint = base.policy.endpoints.get(name)
            if endpoint is None or self._settled(endpoint, known):
                await self._ended(name)
        self._note("drifted", self._alarms())

    async def _drifted(self, found: Found, known: Footprint | None) -> None:
        """3 to 5."""
        name = found.endpoint.name
        wide = found.seen if known is None else joined(known, found.seen)
        await self.swap.drift({**self.swap.found, name: wide})
        where = shown(wide)
        drift = Drift(
            endpoint=name,
            at=self.live.stamp(),
            process=where["process"],
            retain=where["retain"],
            operate=where["operate"],
        )
        self._save(name, drift)
        self.live.metrics.count("domicile_drift_total", (name,))
        body = _told(found, self._left(found))
        await self.live.log.record(Entry("drift", "", self.live.stamp(), body))
        veto: dict[str, Json] = {"event": "impose", "what": "drift", "name": name, "by": "drift"}
        await self.live.log.record(Entry("veto", "", self.live.stamp(), veto))

    async def _ended(self, name: str) -> None:
        """The baseline covers it now: written down first, since this lets more through."""
        veto: dict[str, Json] = {"event": "lift", "what": "drift", "name": name, "by": "baseline"}
        await self.live.log.record(Entry("veto", "", self.live.stamp(), veto))
        self._save(name, None)
        await self.swap.drift({n: one for n, one in self.swap.found.items() if n != name})

    def _settled(self, endpoint: Endpoint, known: Footprint) -> bool:
        """Whether the baseline names all that was found, or accepts what is there now."""
        base = self.swap.base
        own = footprint(endpoint, PLAIN_CALL, base.catalog, self.live.now())
        if covers(own, known):
            return True
        name = read_identifier(endpoint.model, base.catalog.bedrock).name
        accepted = (name, region_of(endpoint.source)) in base.accepted
        newest = self.newest.get(endpoint.name)
        return accepted and newest is not None and covers(own, read(newest, base.policy.atlas))

    def _left(self, found: Found) -> list[str]:
        """The tenants whose grant held the endpoint and holds it no more."""
        policy, now = self.swap.base.policy, self.live.now()
        left = []
        for name, tenant in sorted(policy.tenants.items()):
            bound = None if tenant.grant is None else tenant.grant.process.at(now)
            if bound is not None and bound.contains(found.own.process):
                left += [] if bound.contains(found.seen.process) else [name]
        return left

    def _save(self, name: str, drift: Drift | None) -> None:
        kept = tuple(one for one in self.file.state.drifts if one.endpoint != name)
        more = () if drift is None else (drift,)
        self.file.save(self.file.state.model_copy(update={"drifts": (*kept, *more)}))

    def _alarms(self) -> list[str]:
        return [
            f"{one.endpoint}: found to run in other places than the baseline says; see `drift` "
            "entries and `domicile regions sync`"
            for one in self.file.state.drifts
            if not one.settled
        ]

    def _note(self, name: str, said: list[str]) -> None:
        if said:
            self.live.notes[name] = "; ".join(said)
        else:
            self.live.notes.pop(name, None)

    async def accept(self, name: str, reason: str, by: str) -> None:
        """An operator's acceptance, where no compliance keys are configured: ends the alarm.

        Raises:
            ValueError: nothing drifted under this name, or it is the compliance team's to accept.
            AuditError: it can't be recorded; nothing changed.
        """
        if self.swap.base.config.policies.signed_by:
            raise ValueError(
                "compliance keys are configured: put a signed file into `accepted-drift/`; "
                "`domicile regions sync --write` drafts it"
            )
        drift = next((one for one in self.file.state.drifts if one.endpoint == name), None)
        if drift is None:
            raise ValueError(f"endpoint `{name}` has not drifted")
        body: dict[str, Json] = {
            "event": "drift_accepted",
            "name": name,
            "reason": reason,
            "by": by,
        }
        body["footprint"] = {axis: list(ids) for axis, ids in _read(drift).items()}
        await self.live.log.record(Entry("administration", "", self.live.stamp(), body))
        self._save(name, drift.model_copy(update={"settled": by}))
        self._note("drifted", self._alarms())


async def see(endpoint: Endpoint, base: Snapshot, access: Access, reader: BedrockReader) -> Seen:
    """Ask about one endpoint: its profile, its guardrail, retention wherever it runs.

    Raises:
        NotRead: an answer is missing.
    """
    region = region_of(endpoint.source)
    form = asks_for(endpoint, base.catalog.bedrock)
    arns = None
    if form is Form.ROUTER:
        arns = await reader.router(region, access, endpoint.model)
    elif form is not None:
        arns = await reader.profile(region, access, endpoint.model)
    guardrail = (endpoint.settings.get("guardrail") or "").strip()
    profile = await reader.guardrail(region, access, guardrail) if guardrail else None
    modes = await _modes(endpoint, base, access, reader)
    return Seen(arns, profile, modes)


async def _modes(
    endpoint: Endpoint, base: Snapshot, access: Access, reader: BedrockReader
) -> frozenset[str]:
    """The account's modes in source and destinations; only where the endpoint states one.

    A destination that the account has not enabled has no setting to read: what is stated holds.
    """
    if "retention_mode" not in endpoint.settings:
        return frozenset()
    region = region_of(endpoint.source)
    found = {await reader.retention(region, access)}
    where = footprint(endpoint, PLAIN_CALL, base.catalog, base.loaded_at).process
    for place in where:
        enabled = isinstance(place, Region) and place.provider == "aws" and not place.opt_in
        if isinstance(place, Region) and enabled and place.code != region:
            found.add(await reader.retention(place.code, access))
    return frozenset(found)


def _read(drift: Drift) -> Shown:
    return {"process": drift.process, "retain": drift.retain, "operate": drift.operate}


def _told(found: Found, left: list[str]) -> dict[str, Json]:
    """The `drift` entry: what was expected, what was seen, and whom it concerns."""
    own, seen = shown(found.own), shown(found.seen)
    added = sorted(set(seen["process"]) - set(own["process"]))
    removed = sorted(set(own["process"]) - set(seen["process"]))
    return {
        "endpoint": found.endpoint.name,
        "model": found.endpoint.model,
        "source": found.endpoint.source or "",
        "added": list(added),
        "removed": list(removed),
        "seen": {axis: list(ids) for axis, ids in seen.items()},
        "expected": {axis: list(ids) for axis, ids in own.items()},
        "tenants": list(left),
    }
