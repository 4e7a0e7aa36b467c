"""Scenarios have real policies: whoever may go nowhere else has one endpoint."""

from __future__ import annotations

import pytest

from router.simulator.scenario import ANY, ONLY, Scenario, eligible, grounds, round_trip
from router.simulator.timing import EngineSpec

THREE = Scenario(
    grounds(["self:fra1=2", "self:iad1=3", "self:nrt1"], EngineSpec()), weights={"gold": 3}
)


def test_a_snapshot_holds_every_replica_and_tenant() -> None:
    snapshot = THREE.snapshot("self:iad1")
    assert snapshot.region == "self:iad1"
    assert [len(keys) for keys in snapshot.targets.values()] == [2, 3, 1]
    assert snapshot.policy.tenants["gold"].weight == 3


def test_boundaries_are_the_real_ones() -> None:
    snapshot = THREE.snapshot("self:fra1")
    names = {
        tenant: [c.endpoint.name for c in eligible(snapshot, tenant)]
        for tenant in (ANY, "gold", f"{ONLY}self:fra1", f"{ONLY}self:iad1")
    }
    everywhere = ["fra1", "iad1", "nrt1"]
    assert names == {
        ANY: everywhere, "gold": everywhere, "only-self:fra1": ["fra1"],
        # Asked here, it may be served nowhere: this router isn't inside.
        "only-self:iad1": [],
    }  # fmt: skip


def test_links_are_as_long_as_the_way() -> None:
    assert round_trip("self:fra1", "self:fra1") < 0.002
    assert round_trip("self:fra1", "self:par1") < 0.02
    assert 0.08 < round_trip("self:fra1", "self:iad1") < 0.12
    assert round_trip("self:fra1", "self:nrt1") == round_trip("self:nrt1", "self:fra1")


@pytest.mark.parametrize(
    ("text", "said"),
    [("self:moon=2", "no region"), ("self:fra1=x", "replicas"), ("self:fra1=0", "replicas")],
)
def test_what_is_no_region_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        grounds([text], EngineSpec())
    with pytest.raises(ValueError, match="twice"):
        grounds(["self:fra1", "self:fra1=2"], EngineSpec())
