"""Databricks and Snowflake: an account-wide setting decides, so it has to be declared."""

from __future__ import annotations

from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated
from regions.footprints.own import hosts, one_region


def describe_databricks(draft: Draft) -> None:
    """Foundation Model APIs: the cross-Geo setting of the workspace."""
    cross_geo = draft.setting("cross_geo")
    if cross_geo is None:
        draft.process_unknown("`cross_geo`: whether cross-Geo processing is `on` or `off`")
    else:
        offered(draft, "databricks", f"cross-geo/{cross_geo}")
    operated(draft, "databricks")


def describe_snowflake(draft: Draft) -> None:
    """Cortex: CORTEX_ENABLED_CROSS_REGION of the account; its default depends on the account."""
    parameter = draft.setting("cross_region")
    region = draft.own_region("aws") if parameter == "DISABLED" else None
    if parameter is None:
        draft.process_unknown(
            "`cross_region`: the value of CORTEX_ENABLED_CROSS_REGION; its default is changing "
            "(BCR-2376), so it must be set and declared"
        )
    elif parameter != "DISABLED" or region is not None:
        offered(draft, "snowflake", parameter, region)
    for host in hosts(draft.endpoint.urls):
        one_region(draft, host, region)
    operated(draft, "snowflake", region)
    if region is not None:
        operated(draft, region.partition.name, region)


DATABRICKS = Vendor(
    describe_databricks,
    {"cross_geo": "the workspace's cross-Geo processing, `on` or `off`"},
    domains=("databricks.com", "azuredatabricks.net"),
)
SNOWFLAKE = Vendor(
    describe_snowflake,
    {"cross_region": "the value of CORTEX_ENABLED_CROSS_REGION"},
    domains=("snowflakecomputing.com", "snowflakecomputing.cn"),
)
