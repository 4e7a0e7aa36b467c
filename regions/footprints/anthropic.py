"""Anthropic: `inference_geo` decides, and it can't be set through the compatible endpoint.

The host does not bound inference, on AWS neither: what a workspace's default is must be
declared, and a call without `inference_geo` or a declared default may run anywhere.
"""

from __future__ import annotations

from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated

_GEOS = ("us", "global")


def describe(draft: Draft) -> None:
    """The Messages API at api.anthropic.com."""
    geo = draft.setting("inference_geo") or draft.setting("default_inference_geo")
    if geo is not None and geo not in _GEOS:
        draft.process_unknown(f"what `inference_geo: {geo}` means; documented are us and global")
    else:
        offered(draft, "anthropic", geo or "omitted")
    operated(draft, "anthropic")


def describe_compatible(draft: Draft) -> None:
    """Anthropic's OpenAI-compatible endpoint, where `inference_geo` can't be set."""
    default = draft.setting("default_inference_geo")
    key = "us" if default == "us" else "openai-compatible"
    offered(draft, "anthropic", key)
    operated(draft, "anthropic")


def describe_on_aws(draft: Draft) -> None:
    """Claude Platform on AWS: Anthropic's data centres; the AWS region bounds nothing."""
    describe(draft)
    region = draft.own_region("aws")
    draft.operated_by("aws", (region.country,) if region else (), open_ended=region is None)


_SETTINGS = {
    "inference_geo": "`us` or `global`, sent with every call",
    "default_inference_geo": "the workspace's default, where calls don't send their own",
    "retention": "`zdr` where zero data retention is agreed with Anthropic",
}
_PLACES = {"inference_geo": "inference_geo"}

VENDOR = Vendor(describe, _SETTINGS, _PLACES, domains=("anthropic.com",))
ON_AWS = Vendor(describe_on_aws, _SETTINGS, _PLACES, domains=("api.aws",))
