"""Azure AI Foundry: the deployment's SKU decides, with the resource's region.

Neither the host nor the resource's region says where a call runs: without the SKU it is
unknown. Microsoft's EU data zone holds Norway and Switzerland and may grow.
"""

from __future__ import annotations

from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated
from regions.footprints.own import hosts, one_region
from regions.places import Region

_CLOUDS = {".azure.com": "azure", ".azure.us": "azure-usgov", ".azure.cn": "azure-china"}
_SERVICES = ("openai", "cognitiveservices", "services.ai", "models.ai", "inference.ml")
"""Azure's model services. The rest of its domain is anybody's: a customer's machine is
`x.REGION.cloudapp.azure.com`, and `models.inference.ai.azure.com` is GitHub's, with no
deployment."""
_ZONES = ("DataZoneStandard", "DataZoneProvisionedManaged", "DataZoneBatch")
_IN_REGION = ("Standard", "ProvisionedManaged")
_APAC = frozenset({"AU", "HK", "ID", "IN", "JP", "KR", "MY", "NZ", "SG", "TH", "TW"})
_EU_ZONE_EXTRA = frozenset({"CH", "NO"})


def describe(draft: Draft) -> None:
    """One deployment: `source` is the resource's region, `sku` the deployment's SKU."""
    region = draft.own_region("azure")
    sku = draft.setting("sku")
    if sku is None:
        draft.process_unknown(
            "`sku`: the deployment's SKU, as `Standard`; host and region say nothing"
        )
    elif region is not None:
        _describe(draft, sku, region)
    partition = region.partition.name if region else "azure"
    for host in hosts(draft.endpoint.urls):
        cloud = next((name for end, name in _CLOUDS.items() if host.endswith(end)), partition)
        if cloud != partition:
            draft.process_unknown(
                f"one cloud: `{host}` is of `{cloud}`, the source of `{partition}`"
            )
        one_region(draft, host, region)
    operated(draft, partition, region)
    if draft.setting("hosting") == "anthropic":
        operated(draft, "anthropic")


def _describe(draft: Draft, sku: str, region: Region) -> None:
    if region.provider != "azure":
        draft.process_unknown(f"`source: {region.id}` is not a region of Azure")
    elif region.partition.name != "azure" and sku not in _IN_REGION:
        draft.process_unknown(f"where SKU `{sku}` processes in `{region.partition.name}`")
    elif "claude" in draft.endpoint.model.casefold() or draft.setting("hosting"):
        _claude(draft, sku, region)
    else:
        offered(draft, "azure", _zone(sku, region), region)


def _claude(draft: Draft, sku: str, region: Region) -> None:
    hosting = draft.setting("hosting")
    if hosting == "anthropic":
        offered(draft, "azure", "Claude/Anthropic", region)
    elif hosting == "azure":
        offered(draft, "azure", f"Claude/{_zone(sku, region)}", region)
    else:
        draft.process_unknown("`hosting`: whether Claude is hosted on `azure` or by `anthropic`")


def _zone(sku: str, region: Region) -> str:
    """The key of a data zone, for SKUs that have one: `DataZone/EU`."""
    if sku not in _ZONES:
        return sku
    if region.country == "US":
        return "DataZone/US"
    return "DataZone/APAC" if region.country in _APAC else f"DataZone/{_european(region)}"


def _european(region: Region) -> str:
    eu = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
    in_zone = region.country in eu.split() or region.country in _EU_ZONE_EXTRA
    return "EU" if in_zone else region.country


VENDOR = Vendor(
    describe,
    settings={
        "sku": "sku.name of the deployment",
        "hosting": "for Claude models: `azure` or `anthropic`",
        "deployment": "the deployment's name",
        "api_version": "the API version",
    },
    domains=tuple(f"{service}{cloud}" for cloud in _CLOUDS for service in _SERVICES),
    place_parameters={"azure_endpoint": "url", "deployment_id": "deployment"},
)
