"""A footprint while it is put together: every step adds places, facts or what is missing.

Nothing here can take a place away. A fact that has aged makes its axis unknown; so does a
step that can't say where bytes go. The names of what is missing end up in the answer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from regions.catalog import Catalog
from regions.countries import Countries
from regions.model import Axis, Endpoint, Fact, Footprint, Retention
from regions.places import UNKNOWN_BIT, PlaceError, PlaceSet, Region

DECLARED = "declared in the endpoint's configuration"


@dataclass(slots=True)
class Draft:
    """What is known so far of one endpoint's footprint.

    Attributes:
        storage: where the provider keeps what a call asks it to store; `None`: not known.
        forgets: movers that store nothing at this endpoint, as agreed with its provider.
    """

    catalog: Catalog
    endpoint: Endpoint
    now: float
    process: int = 0
    retain: int | None = None
    retain_source: str = ""
    operate: Countries = field(default_factory=lambda: Countries(0))
    storage: PlaceSet | None = None
    forgets: frozenset[str] = frozenset()
    facts: list[Fact] = field(default_factory=list)
    gaps: list[tuple[Axis, str]] = field(default_factory=list)

    # -- facts -------------------------------------------------------------------------

    def fact(
        self, axis: Axis, statement: str, source: str, checked_on: dt.date | None = None
    ) -> bool:
        """Note a fact; `False`, and an entry in `gaps`, when it is too old to rely on.

        Without `checked_on` a fact does not age: a declaration, or a region's country.
        """
        if checked_on is None:
            self.facts.append(Fact(axis, statement, source))
            return True
        until = self.catalog.until(checked_on)
        self.facts.append(Fact(axis, statement, source, checked_on.isoformat(), until))
        if self.now < until:
            return True
        days = int(self.catalog.max_fact_age // 86_400)
        day = checked_on.isoformat()
        self._miss(axis, f"a check of this fact within {days} days (last {day}): {statement}")
        return False

    def setting(self, name: str) -> str | None:
        """A setting of the endpoint, stripped; `None` when absent or empty."""
        return (self.endpoint.settings.get(name) or "").strip() or None

    # -- process -----------------------------------------------------------------------

    def processed_in(
        self, places: PlaceSet, statement: str, source: str, checked_on: dt.date | None = None
    ) -> None:
        """The call is processed in these places, if the fact still holds."""
        fresh = self.fact(Axis.PROCESS, statement, source, checked_on)
        self.process |= places.mask | (0 if fresh else UNKNOWN_BIT)

    def process_unknown(self, missing: str) -> None:
        """Nobody can say where the call is processed until `missing` is known."""
        self.process |= UNKNOWN_BIT
        self._miss(Axis.PROCESS, missing)

    def own_region(self, provider: str) -> Region | None:
        """The region the endpoint is called in, or `None` with the reason in `gaps`."""
        source = self.endpoint.source
        if not source:
            self.process_unknown("`source`: the region the endpoint is called in")
            return None
        region_id = source if ":" in source else f"{provider}:{source}"
        return self.region(region_id)

    def region(self, region_id: str) -> Region | None:
        """A region by id, or `None` with the reason in `gaps`."""
        try:
            return self.catalog.atlas.region(region_id)
        except PlaceError:
            self.process_unknown(f"region `{region_id}` in the catalog: its country is not known")
            return None

    # -- retain ------------------------------------------------------------------------

    def retains_nothing(
        self, statement: str, source: str, checked_on: dt.date | None = None
    ) -> None:
        """Nothing of the call is kept, if the fact still holds."""
        fresh = self.fact(Axis.RETAIN, statement, source, checked_on)
        self._retain(0 if fresh else UNKNOWN_BIT, source)

    def retained_in(
        self, places: PlaceSet, statement: str, source: str, checked_on: dt.date | None = None
    ) -> None:
        """What is kept of the call is kept in these places, if the fact still holds."""
        fresh = self.fact(Axis.RETAIN, statement, source, checked_on)
        if not places.is_known:
            self._miss(Axis.RETAIN, "where the call is processed, since what is kept is kept there")
        self._retain(places.mask | (0 if fresh else UNKNOWN_BIT), source)

    def retain_unknown(self, missing: str) -> None:
        """Nobody can say what is kept, or where, until `missing` is known."""
        self._retain(UNKNOWN_BIT, "not known")
        self._miss(Axis.RETAIN, missing)

    # -- operate -----------------------------------------------------------------------

    def operated_by(
        self, partition: str, countries: Iterable[str], open_ended: bool = False
    ) -> None:
        """The operators of a partition, as far as they run it in these countries.

        `open_ended`: it may run in other countries too, whose operators are not known.
        """
        row = self.catalog.operators.get(partition)
        checked_on = self.catalog.operators_checked_on
        if row is None:
            self.operate_unknown(f"who operates partition `{partition}`")
            return
        here = sorted(set(countries))
        local = [o for o in row.by_country if set(o.countries).intersection(here)]
        source = self.catalog.operators_source
        for operator in (*row.everywhere, *local):
            statement = f"{operator.name} ({operator.country}), {operator.role}"
            self.operate |= Countries.of((operator.country,))
            if not self.fact(Axis.OPERATE, statement, source, checked_on):
                self.operate |= Countries.unknown()
        if row.by_country:
            covered = {c for o in row.by_country for c in o.countries}
            unnamed = [c for c in here if c not in covered]
            unnamed += ["every country it may run in"] if open_ended else []
            for where in unnamed:
                self.operate_unknown(f"who operates partition `{partition}` in {where}")
        if row.unknown:
            self.operate_unknown(row.unknown)

    def operate_unknown(self, missing: str) -> None:
        """Some operator is not known, so neither is whose law reaches it."""
        self.operate |= Countries.unknown()
        self._miss(Axis.OPERATE, missing)

    # -- the end -----------------------------------------------------------------------

    def footprint(self) -> Footprint:
        """The finished footprint; an axis nobody spoke of is unknown."""
        if not self.process:
            self.process_unknown("where the endpoint processes")
        self._apply_statements()
        if self.retain is None:
            self.retain_unknown("what is retained, and where: declare `retain` with its evidence")
        if not self.operate.mask:
            self.operate_unknown("`operate`: the countries whose law reaches the operator")
        ends = [f.until for f in self.facts if f.until is not None and f.until > self.now]
        return Footprint(
            process=PlaceSet(self.catalog.atlas, self.process),
            retain=Retention(self.retain or 0, self.retain_source),
            operate=self.operate,
            facts=tuple(self.facts),
            missing=tuple(dict.fromkeys(what for _, what in self.gaps)),
            good_until=min(ends, default=None),
            gaps=tuple(self.gaps),
        )

    def _apply_statements(self) -> None:
        """The operator's own statements: they fill what is unknown and add, never replace."""
        stated = self.endpoint.operate
        if stated is not None:
            self.gaps = [gap for gap in self.gaps if gap[0] is not Axis.OPERATE]
            self.operate = Countries(self.operate.mask & ~Countries.unknown().mask)
            self.operate |= Countries.of(stated)
            self.fact(Axis.OPERATE, f"operated under the law of {', '.join(stated)}", DECLARED)
        if self.endpoint.retain is not None and self.retain is None:
            self._apply_retain(self.endpoint.retain)

    def _apply_retain(self, text: str) -> None:
        if text.strip() == "nothing":
            self.retains_nothing("nothing is retained", DECLARED)
            return
        places = stated_places(self.catalog, self.endpoint.provider, text)
        if places is None:
            self.retain_unknown(f"`retain: {text}` names a place that is not in the catalog")
        else:
            self.retained_in(places, f"retained in {', '.join(places.ids)}", DECLARED)

    def _retain(self, mask: int, source: str) -> None:
        self.retain = mask if self.retain is None else self.retain | mask
        self.retain_source = source if not self.retain_source else f"{self.retain_source}; {source}"

    def _miss(self, axis: Axis, missing: str) -> None:
        if (axis, missing) not in self.gaps:
            self.gaps.append((axis, missing))


@dataclass(frozen=True, slots=True)
class Vendor:
    """How one kind of endpoint is described.

    Attributes:
        describe: adds the endpoint's places, facts and operators to a draft.
        settings: name → what it says, for every setting `describe` reads.
        place_parameters: client parameter → the setting that alone may give it.
        self_operated: unknown parameters pass; the operator states its own retention.
        domains: domains the endpoint's URLs must lie in; empty where `describe` judges hosts.
    """

    describe: Callable[[Draft], None]
    settings: Mapping[str, str] = field(default_factory=dict)
    place_parameters: Mapping[str, str] = field(default_factory=dict)
    self_operated: bool = False
    domains: tuple[str, ...] = ()


def stated_places(catalog: Catalog, provider: str, text: str) -> PlaceSet | None:
    """Places an operator lists: region ids, or countries as areas of the provider."""
    mask = 0
    for word in text.replace(",", " ").replace("+", " ").split():
        ids = [word, f"area:{provider}:{word}"]
        found = next((i for i in ids if i in catalog.atlas), None)
        if found is None:
            return None
        mask |= catalog.atlas.place(found).mask
    return PlaceSet(catalog.atlas, mask) if mask else None
