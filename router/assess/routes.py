"""Each LiteLLM deployment against a boundary, and the fallbacks that cross it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from regions.catalog import Catalog
from regions.footprints.question import Answer, Verdict, question
from regions.model import Axis
from router.assess.deployments import called
from router.assess.litellm import EVERY_GROUP, Bystander, Deployment, Fallback, LiteLLM
from router.assess.verdicts import exit_code, why, worst


@dataclass(frozen=True, slots=True)
class Bounds:
    """The boundaries asked about, and the time facts must not have aged at."""

    within: str
    at: float
    retain_within: str | None = None
    operated_by: str | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """One deployment: where its calls run, and how that stands to the boundaries."""

    deployment: Deployment
    answer: Answer
    verdict: Verdict
    reason: str

    @property
    def where(self) -> tuple[str, ...]:
        """The ids of the places it may run in."""
        return self.answer.footprint.process.ids


@dataclass(frozen=True, slots=True)
class Crossing:
    """One fallback: from how the group stands to how its targets do.

    `crosses` when the group lies inside and a target doesn't.
    """

    fallback: Fallback
    group: Verdict
    targets: tuple[tuple[str, Verdict], ...]

    @property
    def crosses(self) -> bool:
        """Whether a failure takes a call over the boundary."""
        return self.group is Verdict.INSIDE and self.verdict is not Verdict.INSIDE

    @property
    def verdict(self) -> Verdict:
        """The worst of the targets."""
        return worst(verdict for _, verdict in self.targets)


@dataclass(frozen=True, slots=True)
class Assessment:
    """A whole configuration, judged."""

    file: str
    bounds: Bounds
    routes: tuple[Route, ...]
    crossings: tuple[Crossing, ...]
    bystanders: tuple[Bystander, ...]
    not_read: tuple[str, ...]

    @property
    def mixed(self) -> tuple[str, ...]:
        """Groups whose traffic is balanced over deployments inside and not inside."""
        groups: dict[str, set[bool]] = {}
        for route in self.routes:
            inside = route.verdict is Verdict.INSIDE
            groups.setdefault(route.deployment.group, set()).add(inside)
        return tuple(sorted(name for name, found in groups.items() if len(found) > 1))

    @property
    def verdicts(self) -> Iterator[Verdict]:
        """All that decides the whole: routes, fallbacks, what else is sent prompts."""
        yield from (route.verdict for route in self.routes)
        if not self.routes:
            yield Verdict.UNKNOWN
        yield from (crossing.verdict for crossing in self.crossings)
        # Where a guardrail reads a prompt it is processed, and no file says where that is.
        yield from (Verdict.UNKNOWN for one in self.bystanders if self.judged(one))
        yield from (Verdict.UNKNOWN for _ in self.not_read)

    def judged(self, bystander: Bystander) -> bool:
        """Whether it counts: a guardrail processes, a callback only keeps."""
        return bystander.kind == "guardrail" or self.bounds.retain_within is not None

    @property
    def exit_code(self) -> int:
        """0 all inside, 3 something outside, 4 something unknown."""
        return exit_code(self.verdicts)


def assess(config: LiteLLM, catalog: Catalog, bounds: Bounds) -> Assessment:
    """Judge every deployment and fallback of a configuration.

    Raises:
        BoundaryError: a boundary that can't be read.
    """
    routes = tuple(_route(one, config, catalog, bounds) for one in config.deployments)
    groups = _groups(routes, config)
    crossings = tuple(_crossing(one, groups) for one in config.fallbacks)
    return Assessment(config.file, bounds, routes, crossings, config.bystanders, config.not_read)


def _route(deployment: Deployment, config: LiteLLM, catalog: Catalog, bounds: Bounds) -> Route:
    found = called(deployment, config.environment)
    answer = question(
        found.endpoint,
        catalog,
        bounds.at,
        bounds.within,
        bounds.retain_within,
        bounds.operated_by,
    )
    if found.missing:
        answer = _with_gaps(answer, found.missing)
    return Route(deployment, answer, answer.verdict, why(answer.judgements))


def _with_gaps(answer: Answer, missing: tuple[str, ...]) -> Answer:
    """What the file leaves open makes an axis that looked inside unknown, and is named first."""
    judgements = tuple(
        replace(
            one,
            verdict=Verdict.UNKNOWN if one.verdict is Verdict.INSIDE else one.verdict,
            missing=missing if one.axis is Axis.PROCESS else (*missing, *one.missing),
        )
        for one in answer.judgements
    )
    return replace(answer, judgements=judgements)


def _groups(routes: tuple[Route, ...], config: LiteLLM) -> dict[str, Verdict]:
    found: dict[str, list[Verdict]] = {}
    for route in routes:
        found.setdefault(route.deployment.group, []).append(route.verdict)
    groups = {name: worst(verdicts) for name, verdicts in found.items()}
    aliased = {a: groups[t] for a, t in config.aliases.items() if t in groups}
    return {**aliased, **groups}


def _crossing(fallback: Fallback, groups: dict[str, Verdict]) -> Crossing:
    if fallback.group == EVERY_GROUP:
        inside = [v for v in groups.values() if v is Verdict.INSIDE]
        group = Verdict.INSIDE if inside else worst(groups.values())
    else:
        group = groups.get(fallback.group, Verdict.UNKNOWN)
    targets = tuple((name, groups.get(name, Verdict.UNKNOWN)) for name in fallback.targets)
    return Crossing(fallback, group, targets)
