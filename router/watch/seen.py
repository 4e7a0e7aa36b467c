"""What was seen of an endpoint → where it really runs, by the same rules as its footprint. Pure.

The endpoint is judged once more with what AWS says now in the place of what the catalog and the
configuration say: the profile's model ARNs, the guardrail's profile, the retention modes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from regions.catalog import Catalog
from regions.facts import BedrockFacts
from regions.footprints.base import PLAIN_CALL, footprint
from regions.footprints.bedrock import Form, read_identifier
from regions.footprints.joining import joined
from regions.model import Endpoint, Footprint


@dataclass(frozen=True, slots=True)
class Seen:
    """What AWS said of one endpoint; `None` or empty is what it was not asked for.

    Attributes:
        arns: the model ARNs behind its profile or prompt router.
        guardrail_profile: the guardrail's own, or `none`.
        modes: the account's retention modes, in the source region and the destinations.
    """

    arns: tuple[str, ...] | None = None
    guardrail_profile: str | None = None
    modes: frozenset[str] = frozenset()


def seen_footprint(endpoint: Endpoint, catalog: Catalog, seen: Seen, now: float) -> Footprint:
    """Where a plain call of the endpoint runs, as seen."""
    settings = dict(endpoint.settings)
    if seen.arns is not None:
        settings["resolves_to"] = " ".join(seen.arns)
        catalog = replace(catalog, bedrock=_without(catalog.bedrock, endpoint.model))
    if seen.guardrail_profile is not None:
        settings["guardrail_profile"] = seen.guardrail_profile
    found: Footprint | None = None
    for one in _by_mode(settings, seen.modes):
        made = footprint(replace(endpoint, settings=one), PLAIN_CALL, catalog, now)
        found = made if found is None else joined(found, made)
    return found or footprint(endpoint, PLAIN_CALL, catalog, now)


def _by_mode(settings: Mapping[str, str], modes: frozenset[str]) -> Iterator[Mapping[str, str]]:
    yield from ({**settings, "retention_mode": mode} for mode in sorted(modes))
    if not modes:
        yield settings


def _without(facts: BedrockFacts, model: str) -> BedrockFacts:
    """The facts without the profile's own routes: what is seen replaces them."""
    name = read_identifier(model, facts).name
    return replace(facts, profiles={n: p for n, p in facts.profiles.items() if n != name})


def asks_for(endpoint: Endpoint, facts: BedrockFacts) -> Form | None:
    """Which kind of list says where the endpoint runs; `None` where it can't change.

    A global profile may run anywhere already, a bare model id in its region only.
    """
    form = read_identifier(endpoint.model, facts).form
    listed = (Form.GEOGRAPHIC, Form.APPLICATION, Form.ROUTER, Form.UNKNOWN)
    return form if form in listed else None


def regions_of(arns: tuple[str, ...]) -> tuple[str, ...]:
    """The regions that model ARNs name, in order; `any` for one that names none."""
    return tuple(sorted({(arn.split(":", 5) + [""] * 4)[3] or "any" for arn in arns}))
