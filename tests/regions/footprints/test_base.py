import pytest

from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, VENDORS, footprint, vendor_of
from regions.model import Call, Endpoint, Footprint


def known_axes(found: Footprint) -> tuple[bool, bool, bool]:
    return found.process.is_known, found.retain.is_known, found.operate.is_known


def test_a_kind_nobody_describes_is_unknown(catalog: Catalog, now: float) -> None:
    endpoint = Endpoint("e", "telepathy", "aws", "m", "aws:eu-west-1")
    found = footprint(endpoint, PLAIN_CALL, catalog, now)
    assert "what endpoints of kind `telepathy` are" in found.missing
    assert known_axes(found) == (False, False, False)


@pytest.mark.parametrize("kind", sorted(VENDORS))
def test_an_endpoint_that_says_nothing_is_never_known(
    catalog: Catalog, now: float, kind: str
) -> None:
    found = footprint(Endpoint("e", kind, "aws", ""), PLAIN_CALL, catalog, now)
    assert not found.retain.is_known or kind.startswith("anthropic")
    if kind not in ("anthropic", "anthropic-aws", "gemini"):
        assert not found.process.is_known


@pytest.mark.parametrize("kind", sorted(VENDORS))
def test_movers_only_ever_add(catalog: Catalog, now: float, kind: str) -> None:
    endpoint = Endpoint("e", kind, "self", "a.b", "self:fra1", operate=("DE",), retain="nothing")
    plain = footprint(endpoint, PLAIN_CALL, catalog, now)
    movers = frozenset({"url_input", "stored", "remote_mcp", "never heard of"})
    moved = footprint(endpoint, Call("responses", movers=movers), catalog, now)
    assert plain.process.mask & ~moved.process.mask == 0
    assert plain.retain.mask & ~moved.retain.mask == 0
    assert not moved.process.is_known
    for before, after in zip(known_axes(plain), known_axes(moved), strict=True):
        assert before or not after


def test_only_a_compatible_server_may_be_called_self_operated() -> None:
    own = Endpoint("e", "openai", "self", "m", self_operated=True)
    assert vendor_of(own) is VENDORS["vllm"]
    claimed = Endpoint("e", "bedrock", "self", "m", self_operated=True)
    assert vendor_of(claimed) is VENDORS["bedrock"]


def test_every_vendor_names_its_settings() -> None:
    for vendor in VENDORS.values():
        assert all(text for text in vendor.settings.values())
        assert vendor.self_operated == (vendor is VENDORS["vllm"])
