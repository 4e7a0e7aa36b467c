"""Quarantine: an operator takes an endpoint, a place, an operator or a key out, at once.

To narrow: 1. the veto board, so that the next attempt sees it; 2. the state file, so that a
restart does; 3. the log. A failure of 2 or 3 is told, and the veto stands. To lift, the other way
round: nothing widens before its entry and file are durable.

An endpoint is known by its name and by what it calls, a key by its id and its digest: under another
name they are out as well.

A router processes every call in its own region, so quarantining a place that holds it stops it from
sending anything; to take only a fleet there out, name its endpoints.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

from regions.boundaries import operator_term, term
from regions.places import PlaceError
from router.audit.entry import Entry, Json
from router.live import Live
from router.narrowing.called import alone, bearing, called
from router.narrowing.veto_file import MAX_REASON, WHATS, Imposed, VetoFile, What
from router.narrowing.vetoes import Vetoes

_FIELDS: Final[Mapping[str, str]] = {
    "endpoint": "endpoints",
    "place": "places",
    "operator": "operators",
    "key": "keys",
}


class NotQuarantined(ValueError):
    """What was asked for can't be done; says why and what to do."""


class Quarantine:
    """Imposes and lifts; one per process."""

    def __init__(self, live: Live, file: VetoFile) -> None:
        """Raises AuditError: the state can't be written."""
        self._live = live
        self._file = file
        self._ever: dict[What, dict[str, frozenset[str]]] = {}
        self._imposed = tuple(self._bound(one) for one in file.state.imposed)
        if self._imposed != file.state.imposed:
            self._save(self._imposed)
        self._show()
        live.replaced.append(self._show)

    @property
    def imposed(self) -> tuple[Imposed, ...]:
        """What is quarantined now, in this process; also what could not be written."""
        return self._imposed

    async def impose(self, what: str, name: str, reason: str, by: str) -> Imposed:
        """Narrow now. Repeating it only changes the reason.

        Raises:
            NotQuarantined: nothing is called so here; nothing changed.
            AuditError: file or log can't be written; the veto stands in this process.
        """
        kind = self._known(what, name)
        if not 0 < len(reason) <= MAX_REASON:
            raise NotQuarantined(f"say why, in 1 to {MAX_REASON} characters")
        before = next((one for one in self._imposed if (one.what, one.name) == (what, name)), None)
        was = () if before is None else before.called
        one = Imposed(what=kind, name=name, reason=reason, by=by, at=self._live.stamp(), called=was)
        one = self._bound(one)
        self._imposed = (*(other for other in self._imposed if other is not before), one)
        self._show()
        self._save(self._imposed)
        await self._record("impose", one.what, name, reason, by)
        return one

    async def lift(self, what: str, name: str, reason: str, by: str) -> None:
        """Let it be used again: an endpoint by the name it had or one that it has now.

        Raises:
            NotQuarantined: it is not quarantined.
            AuditError: log or file can't be written; it stays quarantined.
        """
        lifted = [one for one in self._imposed if one.what == what and name in self._names(one)]
        if not lifted:
            raise NotQuarantined(f"{what} `{name}` is not quarantined")
        for one in lifted:
            await self._record("lift", what, one.name, reason, by)
            if one in self._imposed:  # else imposed anew or lifted meanwhile: what came last counts
                left = tuple(other for other in self._imposed if other != one)
                self._save(left)
                self._imposed = left
                self._show()

    def _save(self, imposed: tuple[Imposed, ...]) -> None:
        self._file.save(self._file.state.model_copy(update={"imposed": imposed}))

    def _names(self, one: Imposed) -> set[str]:
        """What it is called: an endpoint or a key may have got another name since."""
        return {one.name, *bearing(one.called, self._ever[one.what])}

    def _those(self, what: What) -> Mapping[str, frozenset[str]]:
        """Those that are known by more than their names, and what they are."""
        snapshot = self._live.snapshot
        if what == "endpoint":
            return {name: called(one) for name, one in snapshot.policy.endpoints.items()}
        return snapshot.keys.prints() if what == "key" else {}

    def _bound(self, one: Imposed) -> Imposed:
        """The same, known by what it is as well. What is imposed beside a router that doesn't run
        has its name alone."""
        if one.called:
            return one
        return one.model_copy(update={"called": alone(one.name, self._those(one.what))})

    def _known(self, what: str, name: str) -> What:
        """A name that nothing bears would look as if it worked."""
        policy = self._live.snapshot.policy
        try:
            if what == "endpoint" and _listed(what, name, policy.endpoints):
                return "endpoint"
            if what == "place":
                term(name, policy.atlas)
                return "place"
            if what == "operator":
                operator_term(name, policy.atlas)
                return "operator"
        except PlaceError as error:
            raise NotQuarantined(str(error)) from None
        holders = {holder.key for holder in self._live.snapshot.keys.holders}
        if what == "key" and _listed(what, name, holders):
            return "key"
        raise NotQuarantined(f"`{what}` can't be quarantined; use one of {', '.join(WHATS)}")

    def _show(self) -> None:
        parts: dict[str, dict[str, str]] = {name: {} for name in _FIELDS.values()}
        for kind in WHATS:  # plans made before a reload may have a name that it took away
            self._ever[kind] = {**self._ever.get(kind, {}), **self._those(kind)}
        for one in self._imposed:
            named = dict.fromkeys(self._names(one), f"quarantine: {one.reason} (as `{one.name}`)")
            parts[_FIELDS[one.what]] |= {**named, one.name: f"quarantine: {one.reason}"}
        for what, name in _FIELDS.items():
            self._live.metrics.set("domicile_vetoes", len(parts[name]), (what,))
        home = {word: why for word, why in parts["places"].items() if self._is_home(word)}
        for why in home.values():
            # Every call is processed in the router's own region too: under whatever law.
            parts["operators"]["any"] = f"{why} (this router stands there)"
        vetoes = Vetoes(parts["endpoints"], parts["places"], parts["operators"], parts["keys"])
        self._live.vetoes.put("quarantine", vetoes)

    def _is_home(self, word: str) -> bool:
        """Whether this router may stand in a place."""
        atlas = self._live.snapshot.policy.atlas
        try:
            possible = term(word, atlas).possible
        except PlaceError:
            return False  # an own region that is gone from the configuration
        return bool(possible & atlas.place(self._live.snapshot.region).mask)

    async def _record(self, event: str, what: str, name: str, reason: str, by: str) -> None:
        body: dict[str, Json] = {
            "event": event,
            "what": what,
            "name": name,
            "reason": reason,
            "by": by,
        }
        await self._live.log.record(Entry("veto", "", self._live.stamp(), body))


def _listed(what: str, name: str, known: Container[str]) -> bool:
    """Whether it is one of the known ones; there is no `no`."""
    if name in known:
        return True
    where = "`domicile status` lists endpoints" if what == "endpoint" else "see the keys file"
    raise NotQuarantined(f"there is no {what} `{name}` here; {where}")
