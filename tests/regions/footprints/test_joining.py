"""Two footprints as one: on every axis both, and what is missing for either is missing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from regions.catalog import Catalog, OwnRegion
from regions.countries import Countries
from regions.footprints.joining import joined
from regions.model import Axis, Footprint, Retention
from regions.places import PlaceSet

ATLAS = Catalog.load({"self:fra1": OwnRegion("DE"), "self:par1": OwnRegion("FR")}).atlas
PLACES = st.lists(st.sampled_from(["self:fra1", "self:par1", "aws:eu-west-1"]), max_size=3)
ENDS = st.none() | st.floats(0, 9)


def made(process: list[str], retain: list[str], end: float | None, missing: bool) -> Footprint:
    kept = ATLAS.place(*retain) if retain else PlaceSet(ATLAS, 0)
    gaps = ((Axis.RETAIN, "what it keeps"),) if missing else ()
    return Footprint(
        ATLAS.place(*process),
        Retention(kept.mask, "a test"),
        Countries.of(["DE"]),
        missing=tuple(what for _, what in gaps),
        good_until=end,
        gaps=gaps,
    )


FOOTPRINTS = st.builds(made, PLACES.filter(bool), PLACES, ENDS, st.booleans())


@given(FOOTPRINTS, FOOTPRINTS)
def test_everything_of_both_and_nothing_else(one: Footprint, other: Footprint) -> None:
    both = joined(one, other)
    assert both.process.mask == one.process.mask | other.process.mask
    assert both.retain.mask == one.retain.mask | other.retain.mask
    assert both.operate.mask == one.operate.mask | other.operate.mask
    assert set(both.gaps) == {*one.gaps, *other.gaps}
    assert set(both.missing) == {*one.missing, *other.missing}
    ends = [end for end in (one.good_until, other.good_until) if end is not None]
    assert both.good_until == (min(ends) if ends else None)
    assert joined(other, one).process == both.process
