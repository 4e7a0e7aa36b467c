"""Baseline and rule files → a `Policy`, or every error at once, each with its place.

1. read and check the shape of every file; nothing that widens outside baseline files;
2. the catalog with the operator's own regions;
3. attributes, with those that only tenants and apps carry;
4. boundaries, each after those it names;
5. endpoints, models, apps, tenants: every reference leads somewhere;
6. rules, `match` tables expanded; assertions;
7. the digest, over the canonical content and the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.files import RegionConfig
from policies.gathered import Gathered, PolicyFile, gather_files
from policies.model import Policy
from policies.parts import Parts
from policies.rules import Rules
from policies.written import Errors
from regions.catalog import MAX_FACT_AGE, Catalog, OwnRegion
from regions.document import DocumentErrors
from regions.places import PlaceError


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy and the catalog it belongs to."""

    policy: Policy
    catalog: Catalog


def load(
    baseline: Sequence[PolicyFile],
    rules: Sequence[PolicyFile] = (),
    max_fact_age: float = MAX_FACT_AGE,
    data: Mapping[str, bytes] | None = None,
) -> Loaded:
    """The policy that these files describe.

    Args:
        baseline: files that may widen. Check their signatures first
            (`policies.signatures.require_signed`) when compliance keys are configured.
        rules: files that may only narrow.
        max_fact_age: seconds after which a vendor's fact reads as unknown.
        data: the catalog's files, instead of the package's own.

    Raises:
        DocumentErrors: everything wrong in any file.
    """
    errors = Errors()
    gathered = gather_files(baseline, rules, errors)
    if gathered.unread:  # every name of theirs that others use would be told as not defined
        raise DocumentErrors(errors.found)
    catalog = _catalog(gathered, errors, max_fact_age, data)
    parts = Parts(gathered, catalog.atlas, errors)
    policy = _policy(gathered, parts, errors, catalog)
    if errors.found:
        raise DocumentErrors(errors.found)
    return Loaded(policy, catalog)


def _policy(gathered: Gathered, parts: Parts, errors: Errors, catalog: Catalog) -> Policy:
    declared = parts.declared()
    places, countries = parts.boundaries()
    endpoints = parts.endpoints()
    models = parts.models(endpoints)
    apps = parts.apps(declared)
    tenants = parts.tenants(declared, models)
    reader = Rules(gathered, parts, errors, declared, tenants, apps, endpoints, models)
    return Policy(
        atlas=catalog.atlas,
        digest=gathered.digest(catalog.digest),
        declared=declared,
        tenants=tenants,
        apps=apps,
        models=models,
        endpoints=endpoints,
        boundaries=places,
        operators=countries,
        rules=reader.rules(),
        statements=reader.statements(),
        ensures=reader.ensures(),
    )


def _catalog(
    gathered: Gathered, errors: Errors, max_fact_age: float, data: Mapping[str, bytes] | None
) -> Catalog:
    own: dict[str, OwnRegion] = {}
    for name, entry in gathered.sections["regions"].items():
        if isinstance(entry.value, RegionConfig):
            place = entry.value
            own[name] = OwnRegion(
                place.country, place.subdivision, place.lat, place.lon, place.name
            )
    try:
        return Catalog.load(own, max_fact_age, data)
    except PlaceError:
        # Which of them, one by one: rare, so its cost doesn't matter.
        sound = {n: o for n, o in own.items() if _is_sound(gathered, n, o, errors, data)}
        return Catalog.load(sound, max_fact_age, data)


def _is_sound(
    gathered: Gathered,
    name: str,
    place: OwnRegion,
    errors: Errors,
    data: Mapping[str, bytes] | None,
) -> bool:
    try:
        Catalog.load({name: place}, data=data)
    except PlaceError as problem:
        entry = gathered.sections["regions"][name]
        errors.add(entry.document, entry.path, str(problem))
        return False
    return True
