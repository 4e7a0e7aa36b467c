"""Bedrock endpoints as AWS authorizes them: a profile in its source, models where they run.

AWS checks a call once for the profile's ARN in the source region, and once for the model's ARN
in every region the profile may choose; one refusal fails the call. So a call stays inside a
boundary exactly when each model ARN lies inside. A global profile's model is checked with an
ARN without a region.

Source: AWS User Guide, geographic and global cross-region inference; see the catalog's
`bedrock.yaml` for the routes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from regions.atlas import Atlas
from regions.catalog import Catalog
from regions.facts import BedrockFacts
from regions.footprints.bedrock import Form, Identifier, read_identifier
from regions.model import Endpoint
from regions.places import Boundary, PlaceError, Region

ANY_ACCOUNT = "*"


@dataclass(frozen=True, slots=True)
class Route:
    """One way to call a model.

    Attributes:
        name: the endpoint, or what the route is of.
        partition, source: where it is called, by AWS's names.
        profile: ARN of the inference profile; `None` for a direct call.
        models: ARNs of the models it may run; without a region for a global profile's.
    """

    name: str
    partition: str
    source: str
    profile: str | None
    models: tuple[str, ...]

    @property
    def regions(self) -> frozenset[str]:
        """The regions of the models; the empty one stands for any."""
        return frozenset(arn.split(":", 5)[3] for arn in self.models)


class NoRoute(ValueError):
    """An endpoint that can't be exported to AWS; the message says why."""


def route_of(endpoint: Endpoint, catalog: Catalog, account: str = ANY_ACCOUNT) -> Route:
    """The route of a Bedrock endpoint.

    Raises:
        NoRoute: no Bedrock endpoint, or its places are not known.
    """
    if endpoint.kind != "bedrock" or endpoint.source is None:
        raise NoRoute(f"endpoint `{endpoint.name}` is not called through Bedrock")
    source = _region(catalog.atlas, endpoint.source.partition(":")[2])
    if "resolves_to" in endpoint.settings:
        models = tuple(endpoint.settings["resolves_to"].replace(",", " ").split())
        return Route(endpoint.name, source.partition.name, source.code, endpoint.model, models)
    identifier = read_identifier(endpoint.model, catalog.bedrock)
    return _route(endpoint.name, identifier, source, catalog.bedrock, account)


def _route(
    name: str, identifier: Identifier, source: Region, facts: BedrockFacts, account: str
) -> Route:
    partition, code = source.partition.name, source.code
    model = identifier.name.partition(".")[2]
    profile = f"arn:{partition}:bedrock:{code}:{account}:inference-profile/{identifier.name}"
    if identifier.form in (Form.BARE, Form.MODEL_ARN):
        arn = _model(partition, code, identifier.name)
        return Route(name, partition, code, None, (arn,))
    if identifier.form is Form.GLOBAL:
        both = (_model(partition, code, model), _model(partition, "", model))
        return Route(name, partition, code, profile, both)
    known = facts.profiles.get(identifier.name)
    if identifier.form is not Form.GEOGRAPHIC or known is None or code not in known.routes:
        raise NoRoute(f"`{name}`: where `{identifier.name}` runs from {code} is not known")
    models = tuple(_model(partition, one, model) for one in known.routes[code])
    return Route(name, partition, code, profile, models)


def _model(partition: str, region: str, model: str) -> str:
    return f"arn:{partition}:bedrock:{region}::foundation-model/{model}"


def _region(atlas: Atlas, code: str) -> Region:
    try:
        return atlas.region(f"aws:{code}")
    except PlaceError as problem:
        raise NoRoute(str(problem)) from None


def inside(route: Route, boundary: Boundary) -> bool:
    """Whether each region the route may run in lies inside."""
    allowed = {*regions_of(boundary, route.partition)}
    if is_open_ended(boundary, route.partition):
        allowed.add("")
    return route.regions <= allowed


def regions_of(boundary: Boundary, partition: str) -> tuple[str, ...]:
    """The AWS regions of a partition surely inside a boundary, by AWS's names."""
    found: Iterable[Region] = (a for a in boundary.places if isinstance(a, Region))
    return tuple(
        sorted(r.code for r in found if r.provider == "aws" and r.partition.name == partition)
    )


def is_open_ended(boundary: Boundary, partition: str) -> bool:
    """Whether any place of an AWS partition is inside, listed today or not."""
    atlas = boundary.atlas
    known = next(p for p in atlas.partitions if p.provider == "aws" and p.name == partition)
    return boundary.contains(atlas.place(f"elsewhere:{known.id}"))
