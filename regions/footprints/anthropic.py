"""Anthropic: `inference_geo` decides, and it can't be set through the compatible endpoint.

The host does not bound inference, on AWS neither: what a workspace's default is must be
declared, and a call without `inference_geo` or a declared default may run anywhere.
"""

from __future__ import annotations

import re

from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated

_GEOS = ("us", "global")
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")
_SINCE = (4, 6)
"""Opus and Sonnet take `inference_geo` from this version on; older models answer it with 400."""


def describe(draft: Draft) -> None:
    """The Messages API at api.anthropic.com."""
    sent = draft.setting("inference_geo")
    geo = sent or draft.setting("default_inference_geo")
    if geo is not None and geo not in _GEOS:
        draft.process_unknown(f"what `inference_geo: {geo}` means; documented are us and global")
    elif sent and _is_older(draft.endpoint.model):
        draft.process_unknown(
            f"how `{draft.endpoint.model}` takes `inference_geo`: it is older than Opus and Sonnet "
            "4.6, which are the first to; use a newer one"
        )
    else:
        offered(draft, "anthropic", geo or "omitted")
    operated(draft, "anthropic")


def _is_older(model: str) -> bool:
    """Whether an id names a model from before there were geographies; an unknown one does not."""
    found = _VERSION.search(model.casefold())
    return found is not None and (int(found[1]), int(found[2] or 0)) < _SINCE


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
    if region is not None and region.partition.name != "aws":
        draft.process_unknown(f"Claude Platform on AWS in `{region.partition.name}`")
    draft.operated_by("aws", (region.country,) if region else (), open_ended=region is None)


_SETTINGS = {
    "inference_geo": "`us` or `global`, sent with every call",
    "default_inference_geo": "the workspace's default, where calls don't send their own",
    "retention": "`zdr` where zero data retention is agreed with Anthropic",
}
_PLACES = {"inference_geo": "inference_geo"}

VENDOR = Vendor(describe, _SETTINGS, _PLACES, domains=("anthropic.com",))
ON_AWS = Vendor(describe_on_aws, _SETTINGS, _PLACES, domains=("api.aws",))
