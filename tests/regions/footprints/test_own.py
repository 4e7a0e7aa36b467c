import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Call, Endpoint, Footprint


def ask(catalog: Catalog, now: float, call: Call = PLAIN_CALL, **given: object) -> Footprint:
    fields: dict[str, object] = {"source": "self:fra1", "operate": ("DE",), "retain": "nothing"}
    endpoint = Endpoint("e", "vllm", "self", "m", **{**fields, **given})  # type: ignore[arg-type]
    return footprint(endpoint, call, catalog, now)


def test_all_three_axes_are_declared(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now)
    assert found.process.ids == ("self:fra1",)
    assert found.retain.is_nothing
    assert found.operate.codes == ("DE",)
    assert found.missing == ()
    assert found.good_until is None


def test_what_is_not_declared_is_unknown(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, operate=None, retain=None)
    assert found.process.is_known
    assert not found.retain.is_known
    assert not found.operate.is_known
    assert [m.partition(":")[0] for m in found.missing] == ["`operate`", "`retain`"]


@pytest.mark.parametrize(
    ("retain", "expected"),
    [("self:lon1", ("self:lon1",)), ("self:fra1, GB", ("area:self:GB", "self:fra1"))],
)
def test_retained_places(
    catalog: Catalog, now: float, retain: str, expected: tuple[str, ...]
) -> None:
    found = ask(catalog, now, retain=retain)
    assert found.retain.places(catalog.atlas).ids == expected


@pytest.mark.parametrize("retain", ["self:nowhere", "", "FR"])
def test_a_retained_place_that_is_not_in_the_catalog_is_unknown(
    catalog: Catalog, now: float, retain: str
) -> None:
    assert not ask(catalog, now, retain=retain).retain.is_known


@pytest.mark.parametrize("source", ["self:nowhere", None, ""])
def test_a_region_that_is_not_configured_is_unknown(
    catalog: Catalog, now: float, source: str | None
) -> None:
    assert not ask(catalog, now, source=source).process.is_known


@pytest.mark.parametrize(
    "url",
    ["https://api.openai.com/v1", "https://x.openai.azure.com", "eu.openrouter.ai:443",
     "https://bedrock-runtime.eu-west-1.amazonaws.com", "https://API.Mistral.AI./v1",
     "https://api.groq.com/openai/v1", "https://router.huggingface.co/v1", "api.deepseek.com"],
)  # fmt: skip
def test_a_vendor_s_host_is_not_self_operated(catalog: Catalog, now: float, url: str) -> None:
    assert not ask(catalog, now, urls=("http://10.0.0.1:8000", url)).process.is_known


def test_what_the_call_moves_is_added(catalog: Catalog, now: float) -> None:
    url = ask(catalog, now, Call("chat.completions", movers=frozenset({"url_input"})))
    assert url.process.ids == ("self:fra1", "unknown")
    assert "where `url_input` in the request sends bytes" in url.missing
    stored = ask(catalog, now, Call("responses", movers=frozenset({"stored"})))
    assert stored.retain.places(catalog.atlas).ids == ("self:fra1",)
    assert stored.process.is_known


def test_rented_machines_are_within_reach_of_the_cloud_s_owner(
    catalog: Catalog, now: float
) -> None:
    rented = ask(catalog, now, source="aws:eu-central-1")
    assert rented.process.ids == ("aws:eu-central-1",)
    assert rented.operate.codes == ("DE", "LU", "US")
    assert rented.retain.is_nothing
