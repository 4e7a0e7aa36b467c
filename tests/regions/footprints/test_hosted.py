import pytest

from regions.catalog import DAY, Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Assurance, Call, Endpoint, Footprint, Retention

HOST = "https://eu.api.openai.com/v1"


def ask(catalog: Catalog, now: float, url: str, call: Call = PLAIN_CALL, **given: str) -> Footprint:
    endpoint = Endpoint("e", "openai", "openai", "m", urls=(url,), settings=given)
    return footprint(endpoint, call, catalog, now)


def test_openai_binds_host_and_project_together(catalog: Catalog, now: float) -> None:
    bound = ask(catalog, now, HOST, project_residency="eu")
    assert bound.process.is_known
    assert bound.process.countries >= {"DE", "CH", "NO"}
    assert set(bound.retain.places(catalog.atlas).ids) == set(bound.process.ids)
    for wrong in ("", "us", " "):
        loose = ask(catalog, now, HOST, project_residency=wrong)
        assert not loose.process.is_known
        assert loose.process.countries == bound.process.countries


def test_an_assurance_may_stand_for_the_project_while_it_holds(
    catalog: Catalog, now: float
) -> None:
    held = Assurance("project_residency:eu", "contracts/openai.pdf", "dpo", now + DAY)
    endpoint = Endpoint("e", "openai", "openai", "m", urls=(HOST,), assurances=(held,))
    found = footprint(endpoint, PLAIN_CALL, catalog, now)
    assert found.process.is_known
    assert found.good_until == now + DAY
    lapsed = footprint(endpoint, PLAIN_CALL, catalog, now + DAY)
    assert not lapsed.process.is_known


@pytest.mark.parametrize("word", ["gb", "au", "ca", "jp", "in", "sg", "kr"])
def test_storage_is_not_processing(catalog: Catalog, now: float, word: str) -> None:
    found = ask(catalog, now, f"https://{word}.api.openai.com", project_residency=word)
    assert not found.process.is_known
    kept = found.retain.places(catalog.atlas)
    assert kept.countries == {word.upper()}


def test_zero_retention_is_declared(catalog: Catalog, now: float) -> None:
    assert ask(catalog, now, HOST, project_residency="eu", retention="zdr").retain.is_nothing
    odd = ask(catalog, now, HOST, project_residency="eu", retention="yes")
    assert not odd.retain.is_nothing
    assert ask(catalog, now, "https://api.mistral.ai", retention="zdr").retain.is_nothing
    assert not ask(catalog, now, "https://openrouter.ai", retention="zdr").retain.is_known


def test_regional_inference_is_no_regional_storage(catalog: Catalog, now: float) -> None:
    kept = ask(catalog, now, "https://api.eu.mistral.ai").retain.places(catalog.atlas)
    assert kept.ids == ("elsewhere:mistral",)


def test_what_zero_retention_forgets_is_not_stored(catalog: Catalog, now: float) -> None:
    def kept(mover: str) -> Retention:
        call = Call("responses", movers=frozenset({mover}))
        given = {"project_residency": "eu", "retention": "zdr"}
        return ask(catalog, now, HOST, call, **given).retain

    assert kept("stored").is_nothing
    assert not kept("conversation").is_known


def test_stored_calls_are_kept_where_the_vendor_keeps_data(catalog: Catalog, now: float) -> None:
    call = Call("responses", movers=frozenset({"stored"}))
    kept = ask(catalog, now, HOST, call, project_residency="eu").retain
    assert kept.is_known
    assert not ask(catalog, now, HOST, call).retain.is_known
    mistral = ask(catalog, now, "https://api.eu.mistral.ai", call).retain
    assert mistral.places(catalog.atlas).ids == ("elsewhere:mistral",)


@pytest.mark.parametrize("call", ["url_input", "remote_mcp", "hosted_tool:web_search", "new"])
def test_what_moves_bytes_elsewhere_makes_the_place_unknown(
    catalog: Catalog, now: float, call: str
) -> None:
    moving = Call("chat.completions", movers=frozenset({call}))
    found = ask(catalog, now, HOST, moving, project_residency="eu")
    assert not found.process.is_known
    assert f"where `{call}` in the request sends bytes" in found.missing


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://api.openai.com/v1", "elsewhere:openai"),
        ("https://api.mistral.ai", "elsewhere:mistral"),
        ("https://API.EU.Mistral.ai/v1", "area:mistral:FR"),
        ("https://openrouter.ai/api/v1", "elsewhere:openrouter"),
        ("https://api.anthropic.com/v1", "elsewhere:anthropic"),
    ],
)
def test_the_host_decides_whatever_the_kind(
    catalog: Catalog, now: float, url: str, place: str
) -> None:
    assert place in ask(catalog, now, url).process.ids


@pytest.mark.parametrize(
    "url",
    [
        "https://openai.example.eu/v1",
        "https://eu.api.openai.com.evil.example",
        "https://xx.api.openai.com",
        "http://10.1.2.3:8000/v1",
        "https://api.cohere.com",
        "https://[eu.api.openai.com",
        "",
    ],
)
def test_other_hosts_are_unknown(catalog: Catalog, now: float, url: str) -> None:
    assert not ask(catalog, now, url, project_residency="eu").process.is_known


def test_no_url_is_unknown_and_several_are_all_counted(catalog: Catalog, now: float) -> None:
    none = Endpoint("e", "mistral", "mistral", "m")
    assert not footprint(none, PLAIN_CALL, catalog, now).process.is_known
    two = Endpoint(
        "e",
        "mistral",
        "mistral",
        "m",
        urls=("https://api.eu.mistral.ai", "https://api.us.mistral.ai"),
    )
    found = footprint(two, PLAIN_CALL, catalog, now)
    assert {"FR", "US"} <= found.process.countries


def test_a_cohere_vault_has_a_region(catalog: Catalog, now: float) -> None:
    found = ask(catalog, now, "https://api.cohere.com", vault="ca")
    assert found.process.ids == ("area:cohere:CA",)
    assert not ask(catalog, now, "https://api.cohere.com", vault="moon").process.is_known


def test_a_self_operated_server_of_this_api_is_described_as_one(
    catalog: Catalog, now: float
) -> None:
    endpoint = Endpoint(
        "e", "openai", "self", "m", "self:fra1", ("http://10.0.0.1:8080",),
        operate=("DE",), retain="nothing", self_operated=True,
    )  # fmt: skip
    found = footprint(endpoint, PLAIN_CALL, catalog, now)
    assert found.process.ids == ("self:fra1",)
    assert found.missing == ()
