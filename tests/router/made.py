"""Small parts for tests of single steps: endpoints, candidacies, decisions."""

from __future__ import annotations

from collections.abc import Mapping

from policies.conditions import Candidate
from policies.eligibility import Eligible
from policies.engine import Allowed, Preference
from policies.obligations import Obligations
from regions.atlas import Atlas
from regions.countries import Countries
from regions.model import Endpoint, Footprint, Price, Retention, Tier
from regions.places import Partition, PartitionKind, Region
from router.types import Candidacy

SELF = Partition("self", "self", PartitionKind.COMMERCIAL)
ATLAS = Atlas(
    [
        Region("self:fra1", SELF, "DE"),
        Region("self:par1", SELF, "FR"),
        Region("self:lon1", SELF, "GB"),
        Region("self:iad1", SELF, "US"),
    ],
    jurisdictions={"EU": frozenset({"DE", "FR"})},
)


def endpoint(name: str, region: str = "self:fra1", **more: object) -> Endpoint:
    """A self-operated endpoint."""
    settings: Mapping[str, str] = more.pop("settings", {})  # type: ignore[assignment]
    return Endpoint(
        name, "vllm", "self", "tiny", region, settings=settings, self_operated=True,
        price=Price(1.0, 2.0), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def candidacy(
    name: str,
    region: str = "self:fra1",
    tier: Tier = Tier.LARGE,
    prefer: frozenset[Preference] = frozenset(),
    obligations: Obligations | None = None,
    good_until: float | None = None,
) -> Candidacy:
    """An eligible endpoint in one region."""
    everywhere = ATLAS.worldwide()
    allowed = Allowed(
        everywhere,
        everywhere,
        Countries.any(),
        obligations=obligations or Obligations(),
        prefer=prefer,
    )
    verdict = Eligible(Candidate(name, "tiny", "self", tier), allowed, good_until)
    places = ATLAS.place(region)
    footprint = Footprint(places, Retention.nothing("a test"), Countries.of(["DE"]))
    return Candidacy(endpoint(name, region), verdict, footprint)
