"""A drifted footprint is joined in: fewer requests are eligible, never more."""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson
from hypothesis import given
from hypothesis import strategies as st

from regions.catalog import Catalog, OwnRegion
from regions.countries import Countries
from regions.footprints.joining import joined
from regions.model import Footprint, Retention
from regions.places import PlaceSet
from router.narrowing.drifted import covers, read, shown, with_drift
from tests.router.folders import sound

CATALOG = Catalog.load({"self:fra1": OwnRegion("DE")})
OTHER = Catalog.load({})
IDS = ["self:fra1", "aws:eu-west-1", "aws:us-east-1", "area:azure:DE", "elsewhere:aws", "unknown"]


def made(process: list[str], retain: list[str], operate: list[str]) -> Footprint:
    atlas = CATALOG.atlas
    kept = atlas.place(*retain) if retain else PlaceSet(atlas, 0)
    return Footprint(atlas.place(*process), Retention(kept.mask, "a test"), Countries.of(operate))


FOOTPRINTS = st.builds(
    made,
    st.lists(st.sampled_from(IDS), min_size=1),
    st.lists(st.sampled_from(IDS)),
    st.lists(st.sampled_from(["DE", "US", "FR"]), min_size=1),
)


@given(FOOTPRINTS, FOOTPRINTS)
def test_a_join_covers_both(one: Footprint, other: Footprint) -> None:
    both = joined(one, other)
    assert covers(both, one)
    assert covers(both, other)
    assert covers(one, other) == (joined(one, other).process == one.process
                                  and both.retain.mask == one.retain.mask
                                  and both.operate == one.operate)  # fmt: skip


@given(FOOTPRINTS)
def test_what_is_written_is_read_again(one: Footprint) -> None:
    back = read(shown(one), CATALOG.atlas)
    assert (back.process, back.retain.mask, back.operate) == (
        one.process, one.retain.mask, one.operate,
    )  # fmt: skip


def test_a_place_that_another_catalog_lacks_is_unknown_there() -> None:
    back = read(shown(made(["self:fra1", "aws:eu-west-1"], ["self:fra1"], ["DE"])), OTHER.atlas)
    assert back.process.ids == ("aws:eu-west-1", "unknown")
    assert not back.retain.is_known


def test_operators_any_and_unknown_are_kept() -> None:
    for countries in (Countries.any(), Countries.unknown(), Countries.of(["DE"])):
        one = Footprint(CATALOG.atlas.place("self:fra1"), Retention(0, "x"), countries)
        assert read(shown(one), CATALOG.atlas).operate == countries


def test_footprints_of_two_catalogs_do_not_cover_each_other() -> None:
    one = made(["aws:eu-west-1"], [], ["US"])
    assert not covers(read(shown(one), OTHER.atlas), one)


def test_a_snapshot_with_drift_has_a_digest_and_content_of_its_own(tmp_path: Path) -> None:
    base = sound(tmp_path).snapshot()
    wide = Footprint(
        base.policy.atlas.place("self:fra1", "self:iad1"), Retention(0, "x"), Countries.of(["US"])
    )
    found = with_drift(base, {"fra-large": wide, "gone": wide})
    assert found.digest == hashlib.sha256(found.content).hexdigest() != base.digest
    assert set(found.drifted) == {"fra-large"}
    told = orjson.loads(found.content)["drifted"]
    assert told["fra-large"]["process"] == ["self:fra1", "self:iad1"]
    assert with_drift(base, {"gone": wide}) is base
