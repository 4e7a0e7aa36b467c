import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint, Footprint


def ask(
    catalog: Catalog, now: float, kind: str = "anthropic", source: str | None = None, **given: str
) -> Footprint:
    endpoint = Endpoint("e", kind, "anthropic", "claude-sonnet-4-6", source, settings=given)
    return footprint(endpoint, PLAIN_CALL, catalog, now)


@pytest.mark.parametrize(
    ("given", "places"),
    [
        ({}, ("elsewhere:anthropic",)),
        ({"inference_geo": "us"}, ("area:anthropic:US",)),
        ({"inference_geo": "global"}, ("elsewhere:anthropic",)),
        ({"default_inference_geo": "us"}, ("area:anthropic:US",)),
        ({"default_inference_geo": "us", "inference_geo": "global"}, ("elsewhere:anthropic",)),
        ({"inference_geo": "eu"}, ("unknown",)),
    ],
)
def test_inference_geo_decides(
    catalog: Catalog, now: float, given: dict[str, str], places: tuple[str, ...]
) -> None:
    assert ask(catalog, now, **given).process.ids == places


def test_at_rest_is_the_us_unless_nothing_is_kept(catalog: Catalog, now: float) -> None:
    kept = ask(catalog, now, inference_geo="us").retain
    assert kept.places(catalog.atlas).ids == ("area:anthropic:US",)
    assert ask(catalog, now, retention="zdr").retain.is_nothing


def test_an_aws_region_bounds_nothing_on_claude_platform(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, "anthropic-aws", "aws:eu-central-1")
    assert found.process.ids == ("elsewhere:anthropic",)
    assert set(found.operate.codes) >= {"US", "LU"}


def test_a_strangers_host_is_unknown(catalog: Catalog, now: float) -> None:
    endpoint = Endpoint(
        "e", "anthropic", "anthropic", "m", urls=("https://proxy.example",),
        settings={"inference_geo": "us"},
    )  # fmt: skip
    found = footprint(endpoint, PLAIN_CALL, catalog, now)
    assert not found.process.is_known
    assert any("what host `proxy.example` does" in m for m in found.missing)
