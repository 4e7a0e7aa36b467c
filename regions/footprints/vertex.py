"""Google Vertex AI and the Gemini developer API: host and location decide.

A regional location promises ML processing there only for listed pairs of model and region;
`residency_listed: true` is the operator's statement that Google lists this pair.
"""

from __future__ import annotations

import re

from regions.footprints.draft import Draft, Vendor
from regions.footprints.offers import offered, operated
from regions.footprints.own import hosts, is_loopback
from regions.places import Region

_IN_PATH = re.compile(r"/locations/([^/?]+)")
_MULTI = {
    "global": "aiplatform.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
}


def describe(draft: Draft) -> None:
    """One model at one location: `location`, or else the endpoint's `source` region."""
    location = draft.setting("location") or _code(draft.endpoint.source)
    region: Region | None = None
    if location is None:
        draft.process_unknown("`location`: a region, `eu`, `us` or `global`")
    elif location in _MULTI:
        offered(draft, "vertex", location)
        _listed(draft, location)
    else:
        region = draft.region(f"gcp:{location}")
        if region is not None:
            offered(draft, "vertex", "regional", region)
    if location is not None:
        _host_fits(draft, location)
    operated(draft, "gcp", region)


def describe_gemini(draft: Draft) -> None:
    """generativelanguage.googleapis.com, which has no location."""
    offered(draft, "vertex", "gemini-developer-api")
    operated(draft, "gcp")


def _code(source: str | None) -> str | None:
    return source.rpartition(":")[2] or None if source else None


def _listed(draft: Draft, location: str) -> None:
    """Google's own promise covers Gemini; a partner's model must be on the list."""
    model = draft.endpoint.model
    listed = draft.setting("residency_listed") == "true"
    if location != "global" and model and not model.startswith("gemini") and not listed:
        draft.process_unknown(
            f"`residency_listed: true`: that Google lists `{model}` for location `{location}`"
        )


def _host_fits(draft: Draft, location: str) -> None:
    expected = _MULTI.get(location, f"{location}-aiplatform.googleapis.com")
    for host in hosts(draft.endpoint.urls):
        if host != expected and not is_loopback(host):
            draft.process_unknown(
                f"where host `{host}` processes: location `{location}` is served by `{expected}`"
            )
    for named in filter(None, map(_IN_PATH.search, draft.endpoint.urls)):
        if named[1] != location:
            draft.process_unknown(f"one location: the URL names `{named[1]}`, not `{location}`")


VENDOR = Vendor(
    describe,
    settings={
        "location": "`eu`, `us`, `global` or a region, as in `locations/…`",
        "residency_listed": "`true` when Google's data-residency tables list model and location",
        "project": "the Google Cloud project",
    },
    place_parameters={"vertex_location": "location", "vertex_project": "project"},
)
GEMINI = Vendor(describe_gemini, domains=("googleapis.com",))
