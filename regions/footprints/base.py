"""`footprint(endpoint, call, catalog, now)`: where one call goes, before it is made.

The endpoint's vendor file says what is known of the endpoint; then everything in the call
that moves bytes is added. Pure: `now` is passed in, and decides only which facts have aged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from regions.catalog import Catalog
from regions.footprints import anthropic, azure, bedrock, hosted, own, platforms, region, vertex
from regions.footprints.draft import Draft, Vendor
from regions.footprints.joining import joined
from regions.model import Call, Endpoint, Footprint

VENDORS: Mapping[str, Vendor] = MappingProxyType(
    {
        "anthropic": anthropic.VENDOR,
        "anthropic-aws": anthropic.ON_AWS,
        "azure": azure.VENDOR,
        "bedrock": bedrock.VENDOR,
        "bedrock-mantle": bedrock.MANTLE,
        "cohere": hosted.VENDOR,
        "databricks": platforms.DATABRICKS,
        "gemini": vertex.GEMINI,
        "llamacpp": own.VENDOR,
        "mistral": hosted.VENDOR,
        "openai": hosted.VENDOR,
        "openrouter": hosted.VENDOR,
        "region": region.VENDOR,
        "self": own.VENDOR,
        "sglang": own.VENDOR,
        "snowflake": platforms.SNOWFLAKE,
        "vertex": vertex.VENDOR,
        "vllm": own.VENDOR,
    }
)

# Parts of a call by what they do. What isn't here moves bytes somewhere nobody named.
STORING = frozenset({"stored", "stored_object", "conversation", "background", "prompt_cache"})
# Models of vendors that ask the web by themselves, whatever a request says.
_SEARCHING = re.compile(r":online$|-search-(?:preview|api)\b|(?:^|/)sonar\b")
PLAIN_CALL = Call(surface="chat.completions")


def footprint(endpoint: Endpoint, call: Call, catalog: Catalog, now: float) -> Footprint:
    """Where this call of this endpoint is processed, kept, and who operates it.

    Args:
        now: seconds since the epoch; facts older than the catalog's `max_fact_age` at
            this time read as unknown.
    """
    found = _alone(endpoint, call, catalog, now)
    if endpoint.prefill is None:
        return found
    # The prompt is sent to both, and the cache that is made of it goes from one to the other.
    other = _alone(endpoint.prefill, call, catalog, now)
    return replace(joined(found, other), facts=(*found.facts, *other.facts))


def _alone(endpoint: Endpoint, call: Call, catalog: Catalog, now: float) -> Footprint:
    draft = Draft(catalog, endpoint, now)
    vendor = vendor_of(endpoint)
    if vendor is None:
        draft.process_unknown(f"what endpoints of kind `{endpoint.kind}` are")
    else:
        vendor.describe(draft)
        _check_hosts(draft, vendor)
        if not vendor.self_operated and _SEARCHING.search(endpoint.model.casefold()):
            draft.process_unknown(
                f"where `{endpoint.model}` searches the web, which it does unasked"
            )
    for mover in sorted(call.movers):
        _move(draft, mover)
    return draft.footprint()


def _check_hosts(draft: Draft, vendor: Vendor) -> None:
    """A URL outside the vendor's domains is a stranger between us and the vendor."""
    for host in own.hosts(draft.endpoint.urls) if vendor.domains else ():
        inside = any(host == d or host.endswith(f".{d}") for d in vendor.domains)
        if not inside and not own.is_loopback(host):
            draft.process_unknown(
                f"what host `{host}` does with the call: hosts of `{draft.endpoint.kind}` lie in "
                f"{', '.join(vendor.domains)}"
            )


def vendor_of(endpoint: Endpoint) -> Vendor | None:
    """The vendor file that describes an endpoint; `None` for a kind nobody describes."""
    if endpoint.self_operated and endpoint.kind == "openai":
        return own.VENDOR
    return VENDORS.get(endpoint.kind)


def _move(draft: Draft, mover: str) -> None:
    if mover in draft.forgets:
        return
    if mover not in STORING:
        draft.process_unknown(f"where `{mover}` in the request sends bytes")
    elif draft.storage is None:
        draft.retain_unknown(f"where `{mover}` in the request is stored")
    else:
        statement = f"`{mover}` in the request is stored in {', '.join(draft.storage.ids)}"
        draft.retained_in(draft.storage, statement, "where the endpoint stores")
