import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint


@pytest.mark.parametrize(
    ("kind", "source", "given", "places"),
    [
        ("databricks", None, {}, ("unknown",)),
        ("databricks", None, {"cross_geo": "off"}, ("unknown",)),
        ("databricks", None, {"cross_geo": "on"}, ("elsewhere:databricks",)),
        ("databricks", None, {"cross_geo": "maybe"}, ("unknown",)),
        ("snowflake", "aws:eu-central-1", {}, ("unknown",)),
        ("snowflake", "aws:eu-central-1", {"cross_region": "DISABLED"}, ("aws:eu-central-1",)),
        ("snowflake", None, {"cross_region": "DISABLED"}, ("unknown",)),
        ("snowflake", None, {"cross_region": "AWS_US"}, ("area:snowflake:US",)),
        ("snowflake", None, {"cross_region": "AWS_EU"}, ("unknown",)),
        ("snowflake", None, {"cross_region": "AZURE_EU"}, ("unknown",)),
        ("snowflake", None, {"cross_region": "ANY_REGION"},
         ("elsewhere:aws", "elsewhere:azure", "elsewhere:gcp", "elsewhere:snowflake")),
    ],
)  # fmt: skip
def test_the_account_s_setting_decides(
    catalog: Catalog,
    now: float,
    kind: str,
    source: str | None,
    given: dict[str, str],
    places: tuple[str, ...],
) -> None:
    endpoint = Endpoint("e", kind, kind, "m", source, settings=given)
    found = footprint(endpoint, PLAIN_CALL, catalog, now)
    assert found.process.ids == places
    assert not found.operate.is_known


@pytest.mark.parametrize(
    ("source", "host", "inside"),
    [
        ("aws:eu-central-1", "x.eu-central-1.snowflakecomputing.com", True),
        ("aws:eu-central-1", "org-x.snowflakecomputing.com", True),
        ("aws:eu-central-1", "x.us-east-1.snowflakecomputing.com", False),
        ("aws:eu-central-1", "x.us-east-2.aws.snowflakecomputing.com", False),
        ("aws:eu-central-1", "x.west-europe.azure.snowflakecomputing.com", False),
        ("azure:westeurope", "x.west-europe.azure.snowflakecomputing.com", True),
        ("azure:westeurope", "x.north-europe.azure.snowflakecomputing.com", False),
        ("aws:eu-central-1", "snowflakecomputing.com.example", False),
    ],
)
def test_an_account_is_where_its_host_says(
    catalog: Catalog, now: float, source: str, host: str, inside: bool
) -> None:
    settings = {"cross_region": "DISABLED"}
    endpoint = Endpoint("e", "snowflake", "snowflake", "m", source, (f"https://{host}",), settings)
    found = footprint(endpoint, PLAIN_CALL, catalog, now).process
    assert found.is_known == inside
    assert (found.ids == (source,)) == inside
