"""Quarantine: an operator takes an endpoint, a place, an operator or a key out, at once.

To narrow: 1. the veto board, so that the next attempt sees it; 2. the state file, so that a
restart does; 3. the log. A failure of 2 or 3 is told, and the veto stands. To lift, the other way
round: nothing widens before its entry and file are durable.

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
from router.narrowing.veto_file import MAX_REASON, WHATS, Imposed, State, VetoFile, What
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
        self._live = live
        self._file = file
        self._show(file.state)

    @property
    def imposed(self) -> tuple[Imposed, ...]:
        """What is quarantined now."""
        return self._file.state.imposed

    async def impose(self, what: str, name: str, reason: str, by: str) -> Imposed:
        """Narrow now. Repeating it only changes the reason.

        Raises:
            NotQuarantined: nothing is called so here; nothing changed.
            AuditError: file or log can't be written; the veto stands in this process.
        """
        kind = self._known(what, name)
        if not 0 < len(reason) <= MAX_REASON:
            raise NotQuarantined(f"say why, in 1 to {MAX_REASON} characters")
        one = Imposed(what=kind, name=name, reason=reason, by=by, at=self._live.stamp())
        left = self._file.state.without(what, name)
        state = left.model_copy(update={"imposed": (*left.imposed, one)})
        self._show(state)
        self._file.save(state)
        await self._record("impose", one.what, name, reason, by)
        return one

    async def lift(self, what: str, name: str, reason: str, by: str) -> None:
        """Let it be used again.

        Raises:
            NotQuarantined: it is not quarantined.
            AuditError: log or file can't be written; it stays quarantined.
        """
        lifted = [one for one in self.imposed if (one.what, one.name) == (what, name)]
        if not lifted:
            raise NotQuarantined(f"{what} `{name}` is not quarantined")
        await self._record("lift", what, name, reason, by)
        if not any(one in self.imposed for one in lifted):
            return  # imposed anew or lifted meanwhile: what came last counts
        self._file.save(self._file.state.without(what, name))
        self._show(self._file.state)

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

    def _show(self, state: State) -> None:
        parts: dict[str, dict[str, str]] = {name: {} for name in _FIELDS.values()}
        for one in state.imposed:
            parts[_FIELDS[one.what]][one.name] = f"quarantine: {one.reason}"
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
    raise NotQuarantined(f"there is no {what} `{name}` here; `domicile status` lists endpoints")
