"""AWS policies against iam-simulate: for every (profile, source, boundary) its answer is ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import pytest

from policies.export.aws import (
    INVOKE,
    label,
    role_policy,
    service_control_policy,
    terraform,
)
from policies.export.routes import Route, inside, route_of
from regions.boundaries import boundary
from regions.catalog import Catalog
from regions.footprints.base import PLAIN_CALL, footprint
from regions.model import Endpoint
from regions.places import Boundary
from tests.policies.export.conftest import Check, Oracle

ACCOUNT = "123456789012"
Key = tuple[str, str, str]  # boundary, profile, source
WORDS = ("EU", "EU + CH + GB", "US", "CA + US", "JP", "AU", "worldwide", "worldwide - US",
         "partition:aws-us-gov", "aws:eu-central-1")  # fmt: skip


@cache
def catalog() -> Catalog:
    return Catalog.load()


def bounds() -> dict[str, Boundary]:
    return {word: boundary(word, catalog().atlas) for word in WORDS}


def route_from(model: str, source: str) -> Route:
    endpoint = Endpoint(model, "bedrock", "aws", model, source=f"aws:{source}")
    return route_of(endpoint, catalog(), ACCOUNT)


@cache
def routes() -> tuple[Route, ...]:
    """Every profile from every source, and every model that is called directly."""
    facts = catalog().bedrock
    pairs = [(p.id, s) for p in facts.profiles.values() for s in p.routes]
    pairs += [(p, s) for p, sources in facts.global_sources.items() for s in sorted(sources)]
    pairs += [(m, s) for m, known in facts.models.items() for s in sorted(known.runtime)]
    return tuple(route_from(profile, source) for profile, source in pairs)


def unlike() -> tuple[Route, ...]:
    """One route of each kind that differs in more than the model's name."""
    seen: dict[object, Route] = {}
    for route in routes():
        model = route.models[0].rpartition("/")[2]
        told = (route.source, (route.profile or "").replace(model, ""), route.regions)
        seen.setdefault(told, route)
    return tuple(seen.values())


def ours(route: Route, within: Boundary) -> bool:
    """By the footprint, not by the exported policies."""
    endpoint = Endpoint("e", "bedrock", "aws", route.name, source=f"aws:{route.source}")
    where = footprint(endpoint, PLAIN_CALL, catalog(), _now())
    assert where.process.is_known
    return within.contains(where.process)


def _now() -> float:
    return catalog().until(catalog().date) - 89 * 86_400.0


def checks(route: Route, **policies: str) -> Iterator[Check]:
    """What AWS authorizes for one call: the profile in its source, the model where it may run."""
    action = INVOKE[0]
    context = {} if route.profile is None else {"bedrock:InferenceProfileArn": route.profile}
    if route.profile is not None:
        here = {"aws:RequestedRegion": route.source}
        yield {"resource": route.profile, "context": here, "action": action, **policies}
    for arn in route.models:
        region = arn.split(":", 5)[3] or "unspecified"
        asked = {**context, "aws:RequestedRegion": region}
        yield {"resource": arn, "context": asked, "action": action, **policies}


def verdicts(
    oracle: Oracle, kind: str, documents: dict[str, object], chosen: tuple[Route, ...]
) -> dict[Key, bool]:

    wanted: list[tuple[Key, Check]] = [
        ((word, route.name, route.source), check)
        for word in documents
        for route in chosen
        for check in checks(route, **{kind: word})
    ]
    named = {word: {"kind": kind, "document": one} for word, one in documents.items()}
    answers = oracle(named, [check for _, check in wanted])
    found: dict[Key, bool] = {}
    for (key, _), allowed in zip(wanted, answers, strict=True):
        found[key] = found.get(key, True) and allowed
    return found


def partition(word: str) -> str:
    return "aws-us-gov" if word.endswith("gov") else "aws"


def compare(found: dict[Key, bool], chosen: tuple[Route, ...]) -> None:
    every = {
        (word, route.name, route.source): ours(route, within)
        for word, within in bounds().items()
        for route in chosen
        if route.partition == partition(word)
    }
    assert {key: found[key] for key in every} == every
    assert len(set(every.values())) == 2


def test_a_route_is_inside_exactly_when_its_footprint_is() -> None:
    for route in unlike():
        for word, within in bounds().items():
            assert inside(route, within) == ours(route, within), (word, route)


def test_control_policies_are_what_the_footprints_say(oracle: Oracle) -> None:
    documents: dict[str, object] = {
        word: service_control_policy(within, partition(word)) for word, within in bounds().items()
    }
    compare(verdicts(oracle, "control", documents, unlike()), unlike())


def test_roles_are_what_the_footprints_say(oracle: Oracle) -> None:
    documents: dict[str, object] = {
        word: role_policy(unlike(), within) for word, within in bounds().items()
    }
    compare(verdicts(oracle, "identity", documents, unlike()), unlike())


@pytest.mark.slow
def test_control_policies_for_every_profile_source_and_boundary(oracle: Oracle) -> None:
    documents: dict[str, object] = {
        word: service_control_policy(within, partition(word)) for word, within in bounds().items()
    }
    compare(verdicts(oracle, "control", documents, routes()), routes())


@pytest.mark.slow
def test_roles_for_every_profile_source_and_boundary(oracle: Oracle) -> None:
    """A role for each model, as an operator would have it, not one that allows every model."""
    by_model: dict[str, list[Route]] = {}
    for route in routes():
        by_model.setdefault(route.models[0].rpartition("/")[2], []).append(route)
    found: dict[Key, bool] = {}
    for chosen in by_model.values():
        documents: dict[str, object] = {
            word: role_policy(chosen, within) for word, within in bounds().items()
        }
        found |= verdicts(oracle, "identity", documents, tuple(chosen))
    compare(found, routes())


def test_a_wider_profile_gains_nothing_from_a_region_it_shares(oracle: Oracle) -> None:
    """`eu.` from London may run in London: the EU's role allows its other regions, not it."""
    facts = catalog().bedrock
    profile = next(p for p in facts.profiles.values() if {"eu-west-2", "eu-west-1"} <= {*p.routes})
    eu = bounds()["EU"]
    chosen = [route_from(profile.id, source) for source in profile.routes]
    london = next(route for route in chosen if route.source == "eu-west-2")
    assert not inside(london, eu)
    documents: dict[str, object] = {"EU": role_policy(chosen, eu)}
    named = {"EU": {"kind": "identity", "document": documents["EU"]}}
    assert oracle(named, list(checks(london, identity="EU"))) == [False] * (1 + len(london.models))


def test_terraform_holds_the_same_documents() -> None:
    eu = bounds()["EU"]
    role, control = role_policy(unlike(), eu), service_control_policy(eu)
    made = json.loads(json.dumps(terraform({"EU + CH": role}, {"EU + CH": control})))
    resources = made["resource"]
    assert json.loads(resources["aws_iam_role_policy"]["eu-and-ch"]["policy"]) == role
    assert json.loads(resources["aws_organizations_policy"]["eu-and-ch"]["content"]) == control
    assert "${var.router_principal}" in resources["aws_iam_role"]["eu-and-ch"]["assume_role_policy"]
    assert made["variable"]["router_principal"] == {"type": "string"}
    assert "variable" not in terraform({}, {"EU": control})


def test_labels_are_words() -> None:
    assert label("EU + CH") == "eu-and-ch"
    assert label("worldwide - US") == "worldwide-without-us"
    assert label("partition:aws-us-gov") == "partition-aws-us-gov"


def test_nothing_inside_is_denied_whole(oracle: Oracle) -> None:
    nowhere = catalog().atlas.nowhere()
    found = verdicts(oracle, "control", {"n": service_control_policy(nowhere)}, unlike())
    assert not any(found.values())
    assert role_policy(unlike(), nowhere)["Statement"] == []
