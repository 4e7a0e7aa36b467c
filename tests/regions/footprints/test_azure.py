import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint, Footprint


def ask(catalog: Catalog, now: float, source: str, model: str = "gpt-5", **given: str) -> Footprint:
    return footprint(
        Endpoint("e", "azure", "azure", model, source, settings=given), PLAIN_CALL, catalog, now
    )


@pytest.mark.parametrize(
    ("source", "sku", "places"),
    [
        ("swedencentral", "Standard", ("azure:swedencentral",)),
        ("azure:swedencentral", "ProvisionedManaged", ("azure:swedencentral",)),
        ("swedencentral", "GlobalStandard", ("elsewhere:azure",)),
        ("swedencentral", "GlobalProvisionedManaged", ("elsewhere:azure",)),
        ("eastus", "DataZoneStandard", ("area:azure:US",)),
        ("eastus", "DataZoneBatch", ("area:azure:US",)),
        ("japaneast", "DataZoneStandard", ("unknown",)),
        ("uksouth", "DataZoneStandard", ("unknown",)),
        ("usgovtexas", "Standard", ("azure:usgovtexas",)),
        ("usgovtexas", "DataZoneStandard", ("unknown",)),
        ("usgovtexas", "GlobalStandard", ("unknown",)),
        ("chinaeast", "GlobalStandard", ("unknown",)),
        ("swedencentral", "Ultra", ("unknown",)),
        ("aws:eu-west-1", "Standard", ("unknown",)),
        ("nowhere", "Standard", ("unknown",)),
    ],
)
def test_the_sku_decides(
    catalog: Catalog, now: float, source: str, sku: str, places: tuple[str, ...]
) -> None:
    assert ask(catalog, now, source, sku=sku).process.ids == places


@pytest.mark.parametrize("model", ["Claude-Opus-4-6", "anthropic/claude-opus-4-6", "CLAUDE"])
def test_claude_is_claude_in_every_spelling(catalog: Catalog, now: float, model: str) -> None:
    assert not ask(catalog, now, "swedencentral", model, sku="Standard").process.is_known
    hosted = ask(catalog, now, "eastus", model, sku="DataZoneStandard", hosting="anthropic")
    assert "elsewhere:anthropic" in hosted.process.ids


def test_the_eu_zone_is_microsofts_own(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, "northeurope", sku="DataZoneStandard")
    assert found.process.countries == {"CH", "DE", "ES", "FR", "IT", "NL", "NO", "PL", "SE"}
    assert "elsewhere:azure" in found.process.ids


def test_claude_is_hosted_in_two_ways(catalog: Catalog, now: float) -> None:
    def claude(source: str, **given: str) -> tuple[str, ...]:
        return ask(catalog, now, source, "claude-sonnet-4-6", **given).process.ids

    anywhere = ("elsewhere:anthropic", "elsewhere:azure")
    assert claude("eastus", sku="GlobalStandard", hosting="anthropic") == anywhere
    assert claude("eastus", sku="GlobalStandard", hosting="azure") == ("elsewhere:azure",)
    assert claude("eastus", sku="DataZoneStandard", hosting="azure") == ("area:azure:US",)
    assert claude("swedencentral", sku="DataZoneStandard", hosting="azure") == ("unknown",)
    assert claude("swedencentral", sku="Standard", hosting="azure") == ("unknown",)
    assert claude("eastus", sku="GlobalStandard") == ("unknown",)


def test_operators_follow_the_cloud(catalog: Catalog, now: float) -> None:
    assert ask(catalog, now, "eastus", sku="Standard").operate.codes == ("US",)
    assert ask(catalog, now, "westeurope", sku="Standard").operate.codes == ("IE", "US")
    assert ask(catalog, now, "usgovtexas", sku="Standard").operate.codes == ("US",)
    assert ask(catalog, now, "chinaeast", sku="Standard").operate.codes == ("CN", "US")
    assert not ask(catalog, now, "eastus", sku="GlobalStandard").operate.is_known
