"""Everything a check says about a policy before it acts: all findings at once, worst first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from policies import lint_reach, lint_rules
from policies.findings import DAY, Finding, Scene, Severity
from policies.loader import Loaded
from regions.document import Mark

Check = Callable[[Scene], Iterator[Finding]]

CHECKS: Final[tuple[Check, ...]] = (
    lint_rules.never_binding,
    lint_rules.shadowed,
    lint_rules.empty_intersections,
    lint_rules.unused,
    lint_rules.on_trial,
    lint_rules.running_out,
    lint_rules.meaning_of_grants,
    lint_reach.silence,
    lint_reach.models_without_places,
    lint_reach.open_ended,
    lint_reach.endpoints_nobody_uses,
    lint_reach.unpriced,
    lint_reach.caches_shared,
    lint_reach.halves_apart,
    lint_reach.rules_nobody_serves,
    lint_reach.boundaries_nobody_serves,
    lint_reach.unknown_facts,
    lint_reach.plain_ids,
    lint_reach.preferences,
    lint_reach.left_out_by_preference,
    lint_reach.stores,
)
_NOWHERE: Final = Mark("", 0, 0)


def lint(
    loaded: Loaded,
    now: float,
    stores: Mapping[str, str] | None = None,
    soon: float = 30 * DAY,
    paying: Collection[str] = (),
) -> tuple[Finding, ...]:
    """Every finding, errors first, then by place.

    Args:
        now: seconds since the epoch.
        stores: what the router writes to → the region it lies in.
        soon: seconds within which something that ends is warned about.
        paying: tenants with a key that has a budget in dollars.

    Raises:
        PlaceError: a store's region is not in the catalog.
    """
    scene = Scene(loaded.policy, loaded.catalog, now, soon, dict(stores or {}), frozenset(paying))
    found = {finding for check in CHECKS for finding in check(scene)}
    return tuple(sorted(found, key=lambda f: (f.severity, f.mark or _NOWHERE, f.code, f.message)))


def worst(findings: tuple[Finding, ...]) -> Severity | None:
    """The worst severity found; `None` for nothing."""
    return min((finding.severity for finding in findings), default=None)
