"""What `policy export` writes: the endpoints inside a boundary, by host and as AWS routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from policies.export.aws import Document, role_policy, service_control_policy
from policies.export.egress import allow_list
from policies.export.routes import NoRoute, Route, regions_of, route_of
from policies.loader import Loaded
from regions.boundaries import boundary
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint
from regions.places import Boundary
from router.providers.aws import base_url, region_of


@dataclass(frozen=True, slots=True)
class Exported:
    """One boundary: its places, the endpoints inside, their hosts, and the AWS documents.

    `control` is by AWS partition. `left_out` are endpoints inside whose host or route is not
    known here, with why.
    """

    name: str
    within: Boundary
    endpoints: tuple[str, ...]
    hosts: tuple[str, ...]
    role: Document
    control: Mapping[str, Document]
    left_out: Mapping[str, str]


def exported(loaded: Loaded, words: Sequence[str], account: str, now: float) -> list[Exported]:
    """Each boundary, an expression over built-in and the policy's own names, at `now`.

    Raises:
        PlaceError: a word without meaning.
    """
    named = {name: timed.at(now) for name, timed in loaded.policy.boundaries.items()}
    atlas = loaded.policy.atlas
    return [_exported(loaded, w, boundary(w, atlas, named), account, now) for w in words]


def _exported(loaded: Loaded, name: str, within: Boundary, account: str, now: float) -> Exported:
    inside = [
        endpoint
        for endpoint in loaded.policy.endpoints.values()
        if within.contains(footprint(endpoint, PLAIN_CALL, loaded.catalog, now).process)
    ]
    hosts: dict[str, tuple[str, ...]] = {}
    routes: list[Route] = []
    left: dict[str, str] = {}
    for endpoint in inside:
        hosts[endpoint.name] = tuple(hosts_of(endpoint))
        if not hosts[endpoint.name]:
            left[endpoint.name] = "its hosts are found by discovery"
        if endpoint.kind != "bedrock":
            continue
        try:
            routes.append(route_of(endpoint, loaded.catalog, account))
        except NoRoute as problem:
            left[endpoint.name] = str(problem)
    return Exported(
        name,
        within,
        tuple(hosts),
        allow_list(hosts, hosts),
        role_policy(routes, within),
        {p: service_control_policy(within, p) for p in _partitions(within)},
        left,
    )


def hosts_of(endpoint: Endpoint) -> Iterator[str]:
    """Where the router connects for an endpoint: `host`, or `host:port` where one is written."""
    urls = endpoint.urls
    if endpoint.kind == "bedrock":
        url = urls[0] if urls else ""
        urls = (base_url("bedrock-runtime", region_of(endpoint.source), url),)
    for url in urls:
        yield urlsplit(url).netloc.rpartition("@")[2]


def _partitions(within: Boundary) -> list[str]:
    """The AWS partitions with regions inside; the commercial one in any case."""
    every = {p.name for p in within.atlas.partitions if p.provider == "aws"}
    return sorted(p for p in every if p == "aws" or regions_of(within, p))
