import json
import os
from pathlib import Path

import pytest

from regions.catalog import DAY, MAX_FACT_AGE, Catalog, OwnRegion, epoch, package_data
from regions.document import DocumentErrors
from regions.places import PartitionKind, PlaceError


def facts(name: str) -> dict[str, object]:
    """A file of the development data, or skip."""
    given = os.environ.get("DOMICILE_DEV_DATA", str(Path(__file__).parents[3] / "shared" / "data"))
    path = Path(given) / "facts" / name
    if not path.is_file():
        pytest.skip(f"development data `{name}` is not here")
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


def test_it_loads_with_a_date_and_a_digest(catalog: Catalog) -> None:
    assert catalog.date.isoformat() >= "2026-11-29"
    assert len(catalog.digest) == 64
    assert catalog.digest == catalog.atlas.digest
    assert catalog.until(catalog.date) == epoch(catalog.date) + MAX_FACT_AGE


def test_partitions_have_their_kinds(catalog: Catalog) -> None:
    kinds = {p.name: p.kind for p in catalog.atlas.partitions}
    assert kinds["aws-eusc"] is PartitionKind.SOVEREIGN
    assert kinds["aws-us-gov"] is kinds["azure-usgov"] is PartitionKind.GOVERNMENT
    assert kinds["aws-cn"] is kinds["azure-china"] is PartitionKind.CHINA
    assert {kinds[f"aws-iso{x}"] for x in ("", "-b", "-e", "-f")} == {PartitionKind.ISOLATED}
    assert kinds["openai"] is kinds["self"] is PartitionKind.COMMERCIAL


def test_own_regions_lie_over_the_package_s(catalog: Catalog) -> None:
    region = catalog.atlas.region("self:fra1")
    assert (region.country, region.subdivision, region.lat) == ("DE", "DE-HE", 50.11)
    assert "self:fra1" not in Catalog.load().atlas
    assert catalog.digest != Catalog.load().digest
    moved = Catalog.load({"self:fra1": OwnRegion("FR")})
    assert moved.digest not in (catalog.digest, Catalog.load().digest)


@pytest.mark.parametrize(
    ("region_id", "place", "message"),
    [
        ("aws:fra1", OwnRegion("DE"), "must be `self:` and a name"),
        ("self:", OwnRegion("DE"), "must be `self:` and a name"),
        ("self:Fra 1", OwnRegion("DE"), "must be `self:` and a name"),
        ("self:lon", OwnRegion("UK"), "the United Kingdom is `GB`"),
        ("self:ath", OwnRegion("EL"), "Greece is `GR`"),
        ("self:x", OwnRegion("XX"), "`XX` is not an ISO 3166-1 country code"),
        ("self:x", OwnRegion("DE", "FR-IDF"), "subdivision `FR-IDF` is not in `DE`"),
        ("self:x", OwnRegion("DE", lat=91), "`lat` must lie in -90 to 90"),
        ("self:x", OwnRegion("DE", lon=float("nan")), "`lon` must lie in -180 to 180"),
    ],
)
def test_own_regions_are_checked(region_id: str, place: OwnRegion, message: str) -> None:
    with pytest.raises(PlaceError) as caught:
        Catalog.load({region_id: place})
    assert message in str(caught.value)


def test_max_fact_age_is_part_of_the_digest() -> None:
    short = Catalog.load(max_fact_age=30 * DAY)
    assert short.digest != Catalog.load().digest
    assert short.until(short.date) == epoch(short.date) + 30 * DAY


def test_a_broken_file_is_an_error_with_a_place() -> None:
    data = dict(package_data())
    with pytest.raises(PlaceError, match="the catalog has no file `bedrock"):
        Catalog.load(data={k: v for k, v in data.items() if k != "bedrock.yaml"})
    broken = data["openai.yaml"].replace(b"    process:", b"    proces:", 1)
    with pytest.raises(DocumentErrors, match=r"regions/data/openai.yaml:\d+:5: unknown key"):
        Catalog.load(data={**data, "openai.yaml": broken})


def test_every_listed_region_is_in_the_catalog(catalog: Catalog) -> None:
    rows = facts("regions.json")["regions"]
    assert isinstance(rows, list)
    for row in rows:
        region = catalog.atlas.region(f"{row['cloud']}:{row['id']}")
        assert (region.country, region.lat, region.lon) == (row["country"], row["lat"], row["lon"])
        partition = row["partition"].replace("azure-public", "azure")
        assert region.partition.name == partition
    assert len(rows) == len([r for r in catalog.atlas.regions if r.provider != "self"])


def test_jurisdictions_are_the_listed_ones(catalog: Catalog) -> None:
    sets = facts("jurisdictions.json")["sets"]
    assert isinstance(sets, dict)
    words = {"EU": "EU27", "EEA": "EEA", "EFTA": "EFTA", "UK": "UK", "CH": "CH", "US": "US"}
    for word, name in words.items():
        assert catalog.atlas.jurisdictions[word] == set(sets[name])
        assert catalog.jurisdiction_sources[word]


def test_every_bedrock_route_is_in_the_catalog(catalog: Catalog) -> None:
    listed = facts("bedrock_inference_profiles.json")
    profiles, guardrails = listed["profiles"], listed["guardrail_profiles"]
    in_region = listed["in_region"]
    assert isinstance(profiles, list)
    assert isinstance(guardrails, list)
    assert isinstance(in_region, list)
    known = catalog.bedrock
    for row in profiles:
        if row["kind"] == "global":
            assert known.global_sources[row["profile_id"]] == set(row["source_regions"])
        else:
            routes = {s: tuple(r["destinations"]) for s, r in row["routes"].items()}
            assert dict(known.profiles[row["profile_id"]].routes) == routes
    assert len(profiles) == len(known.profiles) + len(known.global_sources)
    for row in guardrails:
        routes = {s: tuple(d) for s, d in row["routes"].items()}
        assert dict(known.guardrails[row["profile_id"]].routes) == routes
    for row in in_region:
        model = known.models[row["model"]]
        assert model.runtime == set(row["runtime_on_demand_regions"])
        assert model.mantle == set(row["mantle_regions"])


def test_every_destination_is_a_region_of_the_catalog(catalog: Catalog) -> None:
    known = catalog.bedrock
    for profile in [*known.profiles.values(), *known.guardrails.values()]:
        for source, destinations in profile.routes.items():
            for code in (source, *destinations):
                assert f"aws:{code}" in catalog.atlas
            partitions = {catalog.atlas.region(f"aws:{c}").partition for c in destinations}
            assert partitions == {catalog.atlas.region(f"aws:{source}").partition}


def test_every_partition_has_operators_or_is_isolated(catalog: Catalog) -> None:
    for partition in catalog.atlas.partitions:
        listed = partition.name in catalog.operators
        assert listed or partition.name in ("self", "aws-iso-e")
