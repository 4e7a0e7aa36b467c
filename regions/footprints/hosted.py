"""Vendors whose host decides: OpenAI, Mistral, OpenRouter, Cohere, and compatible hosts.

An endpoint of kind `openai` may point at any of them; its URLs say at which. A host that
is not in the catalog is unknown, and the name of a country in it says nothing.
"""

from __future__ import annotations

from regions.footprints import anthropic
from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated
from regions.footprints.own import hosts

_BY_DOMAIN = {
    "openai.com": "openai",
    "mistral.ai": "mistral",
    "openrouter.ai": "openrouter",
    "cohere.com": "cohere",
    "cohere.ai": "cohere",
    "anthropic.com": "anthropic",
}


def describe(draft: Draft) -> None:
    """Every host of the endpoint's URLs, by the vendor it belongs to."""
    found = hosts(draft.endpoint.urls)
    if not found:
        draft.process_unknown("`url`: the host decides where this endpoint processes")
    for host in found:
        _host(draft, host)


def _host(draft: Draft, host: str) -> None:
    domain = ".".join(host.split(".")[-2:])
    vendor = _BY_DOMAIN.get(domain)
    if vendor == "anthropic":
        anthropic.describe_compatible(draft)
    elif vendor is None:
        draft.process_unknown(
            f"the provider behind host `{host}`: use its vendor's `kind`, or a `self:` region when "
            "you run it"
        )
    else:
        key = _vault(draft) if vendor == "cohere" else None
        offered(draft, vendor, key or host)
        operated(draft, vendor)


def _vault(draft: Draft) -> str | None:
    """A Cohere Model Vault has its region in its name, which only its owner knows."""
    vault = draft.setting("vault")
    return f"vault/{vault}" if vault else None


_PLACES = {
    "inference_geo": "inference_geo",
    "models": "models",
    "plugins": "plugins",
    "project": "project_residency",
    "provider": "provider",
    "route": "route",
    "transforms": "transforms",
}

VENDOR = Vendor(
    describe,
    settings={
        "project_residency": "OpenAI: the region the project, or its requests, are bound to",
        "retention": "`zdr` where zero data retention is agreed with the vendor",
        "byok": "OpenRouter: `false` when no provider key of your own is used",
        "vault": "Cohere: the Model Vault's region, `us`, `eu` or `ca`",
    },
    place_parameters=_PLACES,
)
