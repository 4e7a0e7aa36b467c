import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint, Footprint


def ask(
    catalog: Catalog, now: float, model: str = "gemini-3-pro", source: str | None = None,
    urls: tuple[str, ...] = (), kind: str = "vertex", **given: str,
) -> Footprint:  # fmt: skip
    endpoint = Endpoint("e", kind, "gcp", model, source, urls, given)
    return footprint(endpoint, PLAIN_CALL, catalog, now)


def test_locations(catalog: Catalog, now: float) -> None:
    assert ask(catalog, now, location="global").process.ids == ("elsewhere:gcp",)
    assert ask(catalog, now, location="us").process.ids == ("area:gcp:US",)
    europe = ask(catalog, now, location="eu").process
    assert len(europe) == 27
    assert not {"CH", "GB", "NO"} & europe.countries


def test_a_region_needs_googles_list(catalog: Catalog, now: float) -> None:
    listed = ask(catalog, now, source="gcp:europe-west4", residency_listed="true")
    assert listed.process.ids == ("gcp:europe-west4",)
    silent = ask(catalog, now, source="gcp:europe-west4")
    assert silent.process.ids == ("gcp:europe-west4", "unknown")
    assert not ask(catalog, now, source="gcp:mars-west1", residency_listed="true").process.is_known
    assert not ask(catalog, now).process.is_known


@pytest.mark.parametrize("location", ["eu", "us"])
def test_partner_models_need_it_in_a_multi_region_too(
    catalog: Catalog, now: float, location: str
) -> None:
    assert not ask(catalog, now, "claude-sonnet-4-6", location=location).process.is_known
    listed = ask(catalog, now, "claude-sonnet-4-6", location=location, residency_listed="true")
    assert listed.process.is_known


@pytest.mark.parametrize(
    ("location", "host", "known"),
    [
        ("eu", "aiplatform.eu.rep.googleapis.com", True),
        ("eu", "eu-aiplatform.googleapis.com", False),
        ("eu", "aiplatform.googleapis.com", False),
        ("global", "aiplatform.googleapis.com", True),
        ("eu", "127.0.0.1:9000", True),
        ("eu", "aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/x", True),
        ("eu", "aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/global/x", False),
        ("eu", "aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/us-central1", False),
    ],
)
def test_the_host_must_serve_the_location(
    catalog: Catalog, now: float, location: str, host: str, known: bool
) -> None:
    found = ask(catalog, now, urls=(f"https://{host}/v1",), location=location)
    assert found.process.is_known is known


def test_the_developer_api_has_no_location(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, kind="gemini", location="eu")
    assert found.process.ids == ("elsewhere:gcp",)
