"""Putting a new snapshot in force, for a reload and for drift alike.

1. its content is stored in the log's folder, so that decisions may name it;
2. a `snapshot` entry says from which to which, why, and who signed the baseline;
3. new requests see it: one assignment; those in flight keep the one they came with;
4. keys that are gone are vetoed: their requests in flight stop at the next attempt;
5. what is known of replicas that are gone is forgotten, connections to origins that are gone
   drain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import orjson

from regions.model import Footprint
from router.audit.entry import Entry, Json
from router.live import Live
from router.narrowing.drifted import read, shown, with_drift
from router.narrowing.vetoes import Vetoes
from router.settings.members import Members, Place, peopled, sources
from router.snapshot import Snapshot
from router.tiers.difficulty import accepted_priors
from router.transport.client import HttpTransport
from router.transport.messages import Origin, Transport


class Swap:
    """The one place that changes `live.snapshot`.

    Attributes:
        base: what the files say, without drift.
        found: endpoint name → where it was found to run, of the base's catalog.
        ahead: looks up, before a snapshot is in force, what in it was not looked up before.
    """

    def __init__(self, live: Live, transport: Transport) -> None:
        self.base: Snapshot = live.snapshot
        self.found: Mapping[str, Footprint] = {}
        self.ahead: Callable[[Snapshot], Awaitable[Members]] | None = None
        self._members: dict[str, Sequence[Place]] = {}
        self._live = live
        self._transport = transport
        self._turn = asyncio.Lock()

    async def begin(self) -> None:
        """Record what is in force from the start, and who signed it.

        Raises:
            AuditError: it can't be recorded.
        """
        live = self._live
        entry = Entry("snapshot", "", live.stamp(), _said(None, live.snapshot, "start"))
        await live.log.record(entry)
        await self._priors(live.snapshot)

    async def reload(self, base: Snapshot) -> None:
        """A snapshot from files; what drifted stays drifted in it.

        Raises:
            AuditError: it can't be stored or recorded; the old one serves on.
        """
        new = {} if self.ahead is None else await self.ahead(base)
        async with self._turn:
            members = {**new, **self._members}
            base = peopled(base, members)
            before, self.base = self.base, base
            found = self._of_base(self.found)
            try:
                await self._install(with_drift(base, found), "reload")
            except BaseException:
                self.base = before
                raise
            self.found = found
            self._live.vetoes.put("drift", Vetoes(drifted=found))
            # Where nobody looks any more, another server may have the address when one does again.
            named = sources(base)
            self._members = {one: at for one, at in members.items() if one in named}

    def knows(self, source: str) -> bool:
        """Whether it has what was found at a source."""
        return source in self._members

    async def drift(self, found: Mapping[str, Footprint]) -> None:
        """Endpoints found to run elsewhere: vetoed for plans made before, then part of the facts.

        Raises:
            AuditError: it can't be stored or recorded; the veto stands for every plan.
        """
        async with self._turn:
            found = self._of_base(found)
            self._live.vetoes.put("drift", Vetoes(drifted={**self.found, **found}))
            await self._install(with_drift(self.base, found), "drift")
            self.found = dict(found)
            self._live.vetoes.put("drift", Vetoes(drifted=self.found))
            self._live.metrics.set("domicile_vetoes", len(self.found), ("drift",))

    async def people(self, source: str, found: Sequence[Place]) -> None:
        """Put the replicas that were looked up at one source in force, at all endpoints that name
        it; what goes is drained and forgotten.

        It changes no decision, so the digest stays and the log has nothing to name.
        """
        async with self._turn:
            if self._members.get(source) == found or source not in sources(self.base):
                return
            self._members[source] = found
            old = self._live.snapshot
            self.base = peopled(self.base, {source: found})
            new = peopled(old, {source: found})
            if new is not old:
                self._live.snapshot = new
                self._part(old, new)

    def _of_base(self, found: Mapping[str, Footprint]) -> dict[str, Footprint]:
        """Footprints with the atoms of the base's catalog: another one numbers places anew."""
        atlas = self.base.policy.atlas
        return {
            name: one if one.process.atlas.digest == atlas.digest else read(shown(one), atlas)
            for name, one in found.items()
        }

    async def _install(self, new: Snapshot, why: str) -> None:
        live = self._live
        old = live.snapshot
        if new.digest == old.digest and new.targets is old.targets:
            return
        await new.keep(live.log)  # 1
        await live.log.record(Entry("snapshot", "", live.stamp(), _said(old, new, why)))  # 2
        if why == "reload":
            await self._priors(new)
        live.snapshot = new  # 3
        live.concurrency.limit = new.config.router.limits.concurrency
        self._revoke(old, new)  # 4
        self._part(old, new)  # 5

    def _part(self, old: Snapshot, new: Snapshot) -> None:
        live, known = self._live, new.replica_keys - moved(old, new)
        for book in (live.health, live.readings, live.silence, live.balance.affinity):
            book.forget(known)
        live.inflight.forget(new.replica_keys)
        for forget in live.replaced:
            forget()
        if isinstance(self._transport, HttpTransport):
            for origin in origins(old) - origins(new):
                self._transport.drain(origin)

    async def _priors(self, snapshot: Snapshot) -> None:
        """Record which models are graded by what the operator accepted without a bound."""
        for entry in accepted_priors(snapshot.difficulty, self._live.stamp()):
            await self._live.log.record(entry)

    def _revoke(self, old: Snapshot, new: Snapshot) -> None:
        kept = {holder.key for holder in new.keys.holders}
        gone = {holder.key for holder in old.keys.holders} - kept
        before = self._live.vetoes.part("keys").keys
        keys = dict.fromkeys({*before, *gone} - kept, "the key was revoked")
        self._live.vetoes.put("keys", Vetoes(keys=keys))


def moved(old: Snapshot, new: Snapshot) -> frozenset[str]:
    """Replicas that are other servers than before: those that are written out are known by their
    number, and whoever takes the first of three out would leave its mark with the second."""
    before = {key: one.url for found in old.targets.values() for key, one in found.items()}
    return frozenset(
        key
        for found in new.targets.values()
        for key, one in found.items()
        if before.get(key, one.url) != one.url
    )


def _said(old: Snapshot | None, new: Snapshot, why: str) -> dict[str, Json]:
    content: dict[str, object] = orjson.loads(new.content)
    signers = content.get("signed_by")
    listed: list[Json] = [str(one) for one in signers] if isinstance(signers, list) else []
    before = "" if old is None else old.digest
    return {"from": before, "to": new.digest, "why": why, "signers": listed}


def origins(snapshot: Snapshot) -> frozenset[Origin]:
    """Where a snapshot's endpoints listen, as far as their URLs are written out."""
    found = set()
    for replicas in snapshot.targets.values():
        for target in replicas.values():
            if target.url:
                found.add(Origin.parse(target.url, target.tls))
    return frozenset(found)
